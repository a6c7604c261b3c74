"""Advice where nothing is decided: little enough to choose by something else, or something that can be done and how long it takes."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations

import pytest
from reading import Page
from recorded import Script, options, view_of, write_run

from steelyard.analysis import commands
from steelyard.analysis.advice import advice, round_times
from steelyard.analysis.commands import Further
from steelyard.cli.commands import selection
from steelyard.cli.parser import parser
from steelyard.files import paths
from steelyard.plan import resolve
from steelyard.plan.options import Options
from steelyard.plan.protocols import protocol
from steelyard.report import as_json, page
from steelyard.results import record
from steelyard.statistics.decision import DecisionPlan, Ranking, Verdict

TITLES = {"a": "JAX", "b": "MXNet", "c": "PyTorch"}
SEQUENTIAL = protocol("sequential")
RESUME = "steelyard run --resume 20260102-x --minutes 0"
AGAIN = "steelyard run first-look"


def ranking(rounds_run=5, most=12, **needed):
    """Return a ranking in which A may be as fast as each of these, known within a factor of 1.3; `needed`: more rounds."""
    pairs = tuple(
        Verdict("undecided", 0.95, 0.77, 1.1, rounds_run, count, 0.02, "a", key, 0.01, 0.77, 1.1)
        for key, count in needed.items()
    )
    order = ("a", *needed)
    return Ranking(order, "a", pairs, frozenset(needed), rounds_run, 0.02, 0.1, DecisionPlan(most_rounds=most))


def closer(found, low=0.96):
    """Return a ranking whose intervals are narrow."""
    pairs = tuple(replace(each, low=low, high=1.02, joint_low=low, joint_high=1.02) for each in found.verdicts)
    return replace(found, verdicts=pairs)


def told(found, round_s=45.0, full_round_s=90.0, protocol=SEQUENTIAL, extends=True, again=AGAIN):
    """Return the advice on a ranking."""
    return advice(found, TITLES, protocol, Further(RESUME, again, round_s, full_round_s), extends)


def test_rounds_that_the_plan_still_allows_are_a_command_with_its_time():
    sentence = told(ranking(b=4))
    assert sentence == (
        "About 4 more rounds would settle it, in about 3 minutes: `steelyard run --resume 20260102-x --minutes 0`"
    )


@pytest.mark.parametrize(
    ("round_s", "words"), [(None, "it: "), (20.0, "it, in about 80 seconds: "), (7200, "8 hours: ")]
)
def test_the_time_has_a_fitting_unit_and_is_left_out_if_unknown(round_s, words):
    assert words in told(ranking(b=4), round_s)


def test_where_no_run_would_decide_candidates_are_equal_within_what_is_known():
    assert told(ranking(b=70)) == (
        "JAX and MXNet cannot be told apart here within 12 rounds: one may be up to 1.30x faster than the other."
    )


def test_where_no_run_would_decide_and_little_is_known_that_is_said_unless_the_headline_does():
    assert told(closer(ranking(b=70), 0.3)) == "JAX and MXNet cannot be told apart here within 12 rounds."
    first, second = closer(ranking(b=70, c=70)).verdicts
    far = replace(second, low=0.3, joint_low=0.3)
    mixed = replace(ranking(b=70, c=70), verdicts=(first, far, replace(far, a="b")))
    assert told(mixed) == (
        "JAX, MXNet and PyTorch cannot be told apart here within 12 rounds: of JAX and MXNet, one may be up to 1.05x faster than the "
        "other (not enough rounds for PyTorch)."
    )


def test_many_candidates_are_counted_and_not_named(monkeypatch):
    monkeypatch.setitem(TITLES, "d", "TensorFlow")
    monkeypatch.setitem(TITLES, "e", "MindSpore")
    monkeypatch.setitem(TITLES, "f", "Fake")
    five = ranking(b=70, c=70, d=70, e=70)
    pairs = [replace(five.verdicts[0], a=a, b=b) for a, b in combinations("abcde", 2)]
    known = replace(five, verdicts=tuple(pairs))
    text = "5 contenders cannot be told apart here within 12 rounds: one may be up to 1.30x faster than another"
    assert told(known) == f"{text}."
    far = [replace(pair, low=0.2, joint_low=0.2) if pair.b == "e" else pair for pair in pairs]
    assert told(replace(five, verdicts=tuple(far))) == f"{text} (not enough rounds for 1 of them)."
    assert (
        told(closer(known))
        == "These 5 contenders differ by at most 4.2 %: if that is little to you, choose by something else."
    )
    settled = told(ranking(b=70, c=2, d=2, e=2, f=2))
    assert "About 2 more rounds would settle PyTorch, TensorFlow, MindSpore and Fake, in" in settled
    monkeypatch.setitem(TITLES, "g", "Dummy")
    assert "About 2 more rounds would settle 5 others, in" in told(ranking(b=70, c=2, d=2, e=2, f=2, g=2))


def test_nothing_is_said_of_one_that_is_ruled_out():
    """MXNet is slower than PyTorch: whether it is slower than JAX, too, decides nothing."""
    found = ranking(b=70, c=5)
    slower = Verdict("worse", 1.3, 1.2, 1.4, 5, 0, 0.02, "b", "c", 0.01, 1.2, 1.4)
    assert told(replace(found, verdicts=(*found.verdicts, slower))) == (
        f"About 5 more rounds would settle PyTorch, in about 4 minutes: `{RESUME}`"
    )


@pytest.mark.parametrize(("needed", "resumes"), [(7, True), (8, False)])
def test_the_last_round_of_the_plan_is_the_limit(needed, resumes):
    assert ("--resume" in told(ranking(b=needed))) is resumes


def test_a_run_that_has_had_all_its_rounds_is_followed_by_a_new_one():
    """A study's quick size has three rounds; one more would do."""
    assert told(ranking(3, most=3, b=1)) == (
        "A new run of 4 rounds would settle it, in about 6 minutes: `steelyard run first-look --rounds 4 --minutes 0`"
    )
    assert "cannot be told apart here within 12 rounds" in told(ranking(12, b=1))


def test_no_new_run_is_advised_if_nobody_knows_how_to_start_it():
    assert told(ranking(3, most=3, b=1), again="") == (
        "JAX and MXNet cannot be told apart here within 3 rounds: one may be up to 1.30x faster than the other."
    )
    assert told(ranking(b=4), again="") == told(ranking(b=4))


def test_what_can_be_settled_is_told_from_what_cannot():
    assert told(ranking(b=40, c=6)) == (
        "JAX and MXNet cannot be told apart here within 12 rounds: one may be up to 1.30x faster than the other. "
        f"About 6 more rounds would settle PyTorch, in about 4 minutes: `{RESUME}`"
    )


def test_candidates_within_a_tenth_are_equal_in_practice():
    assert (
        told(closer(ranking(b=70)))
        == "JAX and MXNet differ by at most 4.2 %: if that is little to you, choose by something else."
    )
    assert "at most 4.3 %" in told(closer(ranking(b=70), 0.959))


def test_a_ranking_that_does_not_decide_about_the_rounds_needs_a_new_run():
    sentence = told(ranking(b=4), full_round_s=60.0, extends=False)
    assert sentence == (
        "A new run of 9 rounds would settle it, in about 9 minutes: `steelyard run first-look --rounds 9 --minutes 0`"
    )
    assert "--rounds" not in told(ranking(b=8), extends=False)


def test_a_fixed_protocol_has_no_limit_but_reason():
    fixed = protocol("fixed:10+20", "5")
    assert "--rounds 25" in told(ranking(most=5, b=20), protocol=fixed)
    assert "cannot be told apart here within 30 rounds" in told(ranking(most=5, b=200), protocol=fixed)


def test_fewer_rounds_than_possible_were_asked_for():
    few = protocol("sequential", "3-5")
    assert "--rounds 9" in told(ranking(most=5, b=4), protocol=few, extends=False)


@pytest.mark.parametrize("found", [ranking(), ranking(rounds_run=1, b=2)])
def test_nothing_is_advised_if_all_is_decided_or_after_one_round(found):
    assert told(found) == ""


def test_the_time_of_a_round_is_that_of_rounds_that_counted():
    lines = [
        {"group": "a", "kept": True, "host_noise": {"seconds": 30.0}},
        {"group": "a", "kept": True, "host_noise": {"seconds": 20.0}},
        {"group": "a", "kept": False, "host_noise": {"seconds": 90.0}},
        {"group": "b", "kept": True, "host_noise": {}},
    ]
    assert round_times(lines, "abc") == {"a": [30.0, 20.0], "b": [], "c": []}


def test_a_new_run_has_all_groups_with_all_contenders():
    """The third round of the first group was without those that were decided."""
    assert commands.full_round_s({"a": [30.0, 40.0, 5.0], "b": [10.0]}, {"a": 2, "b": 3}) == 45.0
    assert commands.full_round_s({"a": [30.0], "b": []}, {"a": 2, "b": 3}) is None


@pytest.fixture
def started(tmp_path):
    """Return the commands of a run that was started by these words, with these options."""

    def commands_of(command, folder=None, nodes=(), **more):
        given = replace(resolve.plan(options()), options=Options(**more))
        known = replace(record.new(given, command, "00"), nodes=nodes)
        run = (folder or paths.runs_folder()) / "20260102-x"
        return commands.resume(known, run), commands.again(known, run)

    return commands_of


def test_a_run_in_the_usual_folder_is_found_by_its_name(started):
    assert started("steelyard run") == ("steelyard run --resume 20260102-x --minutes 0", "steelyard run")


def test_a_run_in_another_folder_is_named_with_it(started, tmp_path):
    own = tmp_path / "my runs"
    assert started("steelyard run first-look --runs 'my runs'", own) == (
        f"steelyard run --resume 20260102-x --runs '{own}' --minutes 0",
        f"steelyard run first-look --runs '{own}'",
    )


def test_a_new_run_begins_with_the_same_file_of_weights_from_any_folder(started):
    _, again = started("steelyard run -w line --weights trained.pt", weights="pytorch:/home/me/trained.pt")
    assert again == "steelyard run -w line --weights pytorch:/home/me/trained.pt"


def test_a_new_run_has_the_options_that_decide_what_is_measured(started):
    command = (
        "steelyard run -w line --rounds 3-5 --minutes=2 --json --plain --if-changed --store=postgresql://host/db --no-guard "
        "--workloads own --env fake=python --data=d --mode 'fake=a,b'"
    )
    folders = {"data": "/data", "workload_folders": ("/w/own",), "external": {"fake": "/bin/python"}}
    assert started(command, **folders)[1] == (
        "steelyard run -w line --no-guard --mode fake=a,b --data /data --workloads /w/own --env fake=/bin/python"
    )


def test_a_run_on_a_cluster_goes_on_there(started):
    resume, again = started("steelyard run --on ray://host:1 --nodes=fingerprint=ab", nodes=("a", "b"))
    assert resume == "steelyard run --resume 20260102-x --on ray://host:1 --nodes=fingerprint=ab --minutes 0"
    assert again == "steelyard run --on ray://host:1 --nodes=fingerprint=ab"
    assert "--on ray --minutes 0" in started("damaged '", nodes=("a",))[0]


@pytest.mark.parametrize("command", ["steelyard advise --tune jax", "damaged '", "", "rm run"])
def test_a_run_that_no_such_command_started_cannot_be_started_again(started, command):
    assert started(command)[1] == ""


def test_words_of_a_record_cannot_become_another_command(started):
    assert started("steelyard run; rm -rf /")[1] == ""
    assert started("steelyard run '$(rm x)' '; rm'")[1] == "steelyard run '$(rm x)' '; rm'"


def test_a_home_folder_is_shortened_on_the_page_so_that_the_command_still_works(monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", str(tmp_path))
    scripts = {"fake": Script(rounds=1), "dummy": Script(12.0, rounds=1)}
    folder = write_run(tmp_path / "my runs", scripts)
    text = Page(page.render(view_of(folder))).text()
    assert "--runs '~/my runs' --rounds 5 --minutes 0" in text
    arguments = parser(["run"]).parse_args(["run", "--runs", "~/my runs"])
    assert selection.runs_of(arguments) == folder.parent, "a shell leaves this path to the command"


def test_page_terminal_and_json_have_the_advice(tmp_path, printed):
    scripts = {"fake": Script(10.0, process_scatter=0.03), "dummy": Script(10.1, process_scatter=0.03)}
    view = view_of(write_run(tmp_path, scripts, options(frameworks=("fake", "dummy"))))
    (comparison,) = view.comparisons
    (words,) = {each.words for each in Page(page.render(view)).all("p", class_="next")}
    told = comparison.advice[comparison.primary]
    assert words == told.replace("`", "")
    assert " ".join(told.split()) in " ".join(printed(view, 80).split())
    assert told.startswith("Fake and Dummy differ by at most") or "rounds" in told
    assert as_json.as_dict(view)["comparisons"][0]["advice"] == comparison.advice
