"""What to choose: a choice where the verdicts single one out, a refusal where not, and sentences for what is not known."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from reading import Page
from recorded import WORKLOADS, Script, options, view_of, write_run
from recorded_trials import training

from steelyard.analysis import choices, goals, tried
from steelyard.analysis.goals import NONE, Wishes
from steelyard.analysis.learning_curves import learning
from steelyard.analysis.recommendation import recommendation
from steelyard.report import advice, page
from steelyard.report.plots import trade_offs
from steelyard.report.sections.what_to_choose import probabilities
from steelyard.report.styles import styles
from steelyard.results.quantities import PEAK_MEMORY
from steelyard.statistics.decision import Ranking

QUICK = {"scatter": 0.0, "process_scatter": 0.001}
CLEAR = {"fake": Script(10.0, first_step_ms=4010.0, **QUICK), "dummy": Script(12.0, first_step_ms=12.0, **QUICK)}
"""Fake is faster by a fifth and starts 4 seconds later, which takes 2,000 steps to make good; Dummy needs more memory."""


def run(folder, scripts=CLEAR, **more):
    return view_of(write_run(folder, scripts, **more))


@pytest.fixture(scope="module")
def view(tmp_path_factory):
    return run(tmp_path_factory.mktemp("runs"))


def told(view, *conditions, steps=0, epochs=0, thresholds=(), **weights):
    """Return {goals: sentence} of the first comparison; a goal's name has `_` for `-`."""
    weights = {name.replace("_", "-"): weight for name, weight in weights.items()}
    found = answers(view, Wishes(weights, conditions, steps, epochs, thresholds))
    return {", ".join(each.goals): sentence for each, sentence in found.choices}


def answers(view, wishes):
    found = choices.answers(view.comparisons[0], view.comparisons, wishes)
    assert found is not None
    return found


def test_each_goal_has_its_own_choice(view):
    found = told(view)
    assert found["speed"].startswith("Choose Fake. Next comes Dummy, with 1.20x [")
    assert found["speed"].endswith("the time per step of Fake.")
    assert found["short-jobs"].startswith("Choose Dummy. Next comes Fake, with ")
    assert found["memory"].startswith("Choose Fake. Next comes Dummy, with 1.03x [")


@pytest.mark.parametrize(("steps", "who"), [(100, "Dummy"), (100_000, "Fake")])
def test_a_short_job_is_as_long_as_asked(view, steps, who):
    ((made, sentence),) = answers(view, Wishes({"short-jobs": 1}, steps=steps)).choices
    assert made.thing == f"time of a job of {steps:,} steps"
    assert sentence.startswith(f"Choose {who}.")


def test_the_ranking_by_speed_is_that_of_the_run(recorded_view):
    (comparison,) = recorded_view.comparisons
    (found, _), *_ = answers(recorded_view, Wishes({"speed": 3.0})).choices
    assert isinstance(found.ranking, Ranking)
    for verdict in comparison.rankings[comparison.primary].verdicts:
        other = found.ranking.between(verdict.a, verdict.b)
        assert (other.kind, other.error) == (verdict.kind, verdict.error)
        assert (other.ratio, other.low, other.high) == pytest.approx((verdict.ratio, verdict.low, verdict.high))


def test_weights_decide_between_goals(tmp_path):
    """Fake is faster by a fifth, and Dummy needs 3 % less memory, which matters only where memory is nearly all that does."""
    found = run(
        tmp_path,
        {"dummy": Script(12.0, **QUICK), "fake": Script(10.0, **QUICK)},
        wanted=options(frameworks=("dummy", "fake")),
    )
    assert told(found, speed=1, memory=1)["speed, memory"].startswith("Choose Fake.")
    assert told(found, speed=1, memory=1000)["speed, memory"].startswith("Choose Dummy.")
    ((made, _),) = answers(found, Wishes({"speed": 1, "memory": 1000})).choices
    assert made.thing == "combined cost"
    assert sorted(made.ratios["memory"].values()) == pytest.approx([1.0, 310 / 300])


def test_what_the_verdicts_do_not_tell_apart_is_not_recommended(tmp_path):
    close = {"fake": Script(10.0, process_scatter=0.1), "dummy": Script(10.2, process_scatter=0.1)}
    found = run(tmp_path, close)
    sentence = told(found, speed=1)["speed"]
    assert "Choose" not in sentence
    assert "the verdicts of this run do not tell them apart." in sentence
    assert found.comparisons[0].advice["pipeline"] in sentence
    assert "Of these, Fake has the least peak memory." in told(found)["speed"]


def test_a_sentence_and_the_table_give_the_same_probabilities(tmp_path):
    """A contender that is the best with 96 % is not "not told apart" from one with less than 1 %."""
    scripts = {
        "fake": Script(10.0, process_scatter=0.03, rounds=3),
        "dummy": Script(10.6, process_scatter=0.03, rounds=3),
    }
    found = run(tmp_path, scripts)
    shown = recommendation(found.comparisons[0], found.comparisons)
    (made, sentence), *_ = shown.answers.choices
    assert len(made.candidates) == 2, "the verdicts leave it open"
    likely = max(made.probabilities.values())
    assert likely >= choices.PROBABLE
    assert sentence.startswith("Probably ")
    assert "not certain enough for a verdict" in sentence
    assert "not tell them apart" not in sentence
    (table,) = probabilities(shown)
    place = [column.heading for column in table.columns[1:]].index("speed")
    assert len(table.rows) == 2
    for row in table.rows:
        assert f"{row.title.value} ({row.cells[place].value})" in sentence


def test_all_goals_are_answered_in_one_sentence_first(view):
    shown = recommendation(view.comparisons[0], view.comparisons)
    assert shown.in_short == "Choose Fake for speed and memory, Dummy for short jobs."


def test_what_is_not_decided_is_said_in_that_sentence_too(tmp_path):
    found = run(tmp_path, {"fake": Script(10.0, process_scatter=0.1), "dummy": Script(10.2, process_scatter=0.1)})
    shown = recommendation(found.comparisons[0], found.comparisons)
    assert shown.in_short == "Choose Fake for memory; for speed and short jobs, this run does not single one out."


@pytest.mark.parametrize(
    ("scripts", "reason"),
    [
        (
            {name: replace(each, passed=None) for name, each in CLEAR.items()},
            "Fake has no certificate; Dummy has no certificate. Measure with certificates: start the run again without --no-certify.",
        ),
        (
            {name: replace(each, passed=False) for name, each in CLEAR.items()},
            "Fake does not compute what the reference does; Dummy does not compute what the reference does.",
        ),
        (
            {
                "fake": replace(CLEAR["fake"], passed=False),
                "dummy": replace(CLEAR["dummy"], failure=("crash", "It ended.")),
            },
            "Fake does not compute what the reference does; Dummy failed (It ended",
        ),
    ],
)
def test_a_run_in_which_nothing_may_be_chosen_says_why(tmp_path, capsys, scripts, reason):
    found = run(tmp_path, scripts)
    assert not advice.show(found, Wishes({}))
    printed = " ".join(capsys.readouterr().out.split())
    assert f"Nothing can be chosen, because no result may be in a verdict: {reason}" in printed
    assert not advice.show(found, Wishes({}), as_json=True)
    (comparison,) = json.loads(capsys.readouterr().out)
    assert comparison["choices"] == []
    assert reason in comparison["reason"]


def test_retired_frameworks_can_be_left_out_without_being_asked_for(view):
    found = answers(retired(view), Wishes({}, only_maintained=True))
    assert {sentence for _, sentence in found.choices} == {"Only Dummy is left, so there is nothing to choose from."}
    assert ("maintained", "Maintained: Dummy. Retired: Fake (https://example.org/retired).") in found.conditions


def test_where_all_are_retired_the_option_that_chooses_among_them_is_named(view):
    (comparison,) = view.comparisons
    contenders = tuple(replace(each, facts=replace(each.facts, maintained=False)) for each in comparison.contenders)
    none_left = replace(view, comparisons=(replace(comparison, contenders=contenders),))
    found = answers(none_left, Wishes({}, only_maintained=True))
    assert not found.choices
    assert found.missing[-1][1] == (
        "No framework of this run is still maintained: Fake (retired) and Dummy (retired). To choose among them: "
        "`steelyard advise --any`"
    )


def test_what_would_decide_another_goal_than_speed_is_a_new_run(tmp_path):
    close = {
        "fake": Script(10.0, process_scatter=0.03, rounds=3),
        "dummy": Script(10.6, process_scatter=0.03, rounds=3),
    }
    sentence = told(run(tmp_path, close), short_jobs=1)["short-jobs"]
    assert "Choose" not in sentence
    assert "--rounds" in sentence
    assert "--resume" not in sentence


def test_equal_contenders_are_called_equal_and_another_goal_decides(tmp_path):
    found = run(tmp_path, {"fake": Script(10.0, **QUICK), "dummy": Script(10.01, **QUICK)})
    assert told(found)["speed"] == (
        "Fake and Dummy are practically the same (within 2 %): choose by something else. Of these, Fake has the least peak memory."
    )
    assert told(found, speed=1)["speed"].endswith("choose by something else.")


def test_one_round_names_nobody(tmp_path):
    found = run(tmp_path, {name: replace(each, rounds=1) for name, each in CLEAR.items()})
    again = f"steelyard run -f fake -f dummy --workloads {WORKLOADS} --runs {tmp_path} --rounds 5 --minutes 0"
    assert set(told(found).values()) == {
        f"One process of each shows no scatter, so none is named. Run again: `{again}`"
    }
    shown = recommendation(found.comparisons[0], found.comparisons)
    assert not probabilities(shown)
    assert not shown.trade_offs


@pytest.mark.parametrize("fault", [{"passed": False}, {"passed": None}, {"failure": ("crash", "It ended.")}])
def test_what_is_in_no_verdict_is_never_chosen(tmp_path, fault):
    found = told(run(tmp_path, {"fake": Script(5.0, **fault), "dummy": CLEAR["dummy"]}))
    assert found["speed"] == "Only Dummy is left, so there is nothing to choose from."


def retired(view, **more):
    """Return a view in which Fake's framework is retired, or has other facts."""
    (comparison,) = view.comparisons
    more = more or {"maintained": False, "maintained_source": "https://example.org/retired"}
    contenders = tuple(
        replace(each, facts=replace(each.facts, **more)) if each.title == "Fake" else each
        for each in comparison.contenders
    )
    return replace(view, comparisons=(replace(comparison, contenders=contenders),))


def test_a_retired_choice_is_marked_and_the_best_maintained_one_is_named(view):
    found = told(retired(view))["speed"]
    assert found.startswith("Choose Fake (retired).")
    assert found.endswith("Of the maintained ones, Dummy.")


def test_a_condition_sets_contenders_aside_and_says_where_it_is_said(view):
    found = answers(retired(view), Wishes({"speed": 1}, ("maintained",)))
    assert found.choices[0][1] == "Only Dummy is left, so there is nothing to choose from."
    assert found.conditions == [("maintained", "Maintained: Dummy. Retired: Fake (https://example.org/retired).")]


def test_an_export_that_was_not_certified_here_names_the_run_that_would(view):
    found = answers(retired(view, exported_to=("onnxruntime",)), Wishes({}, ("exchange",)))
    ((_, sentence),) = found.conditions
    assert sentence.startswith(
        "Possible, but not certified in this run: Fake. A run that certifies it: `steelyard run -w line:small "
    )
    assert "--task inference -f fake -f onnxruntime`" in sentence
    assert sentence.endswith("No export of networks of Dummy is known to this run.")
    assert {sentence for _, sentence in found.choices} == {"Only Fake is left, so there is nothing to choose from."}


def test_an_export_that_was_certified_counts_and_one_that_failed_does_not(view):
    """Dummy stands for a runtime of Fake's networks."""
    (comparison,) = retired(view, exported_to=("dummy",)).comparisons

    def with_runtime(**more):
        contenders = tuple(
            replace(each, facts=replace(each.facts, exporters={each.mode: "fake@1.0+onnx"}), **more)
            if each.title == "Dummy"
            else each
            for each in comparison.contenders
        )
        return replace(view, comparisons=(replace(comparison, contenders=contenders),))

    certified = answers(with_runtime(), Wishes({}, ("exchange",)))
    assert certified.conditions == [("exchange", "Certified as an exported network: Fake; Dummy.")]
    failed = answers(with_runtime(failure="It cannot be exported (unsupported; see log)."), Wishes({}, ("exchange",)))
    assert failed.conditions[0][1] == "Not Fake: It cannot be exported."
    assert not failed.choices


def test_a_run_without_epochs_names_the_run_that_would_have_them(view):
    found = answers(view, Wishes({"accuracy-in-time": 1}))
    assert not found.choices
    assert found.missing == [
        (
            "accuracy-in-time",
            "No whole epochs were trained and evaluated. A run that does: `steelyard run -w line:small -f fake -f dummy --protocol epochs:5 --threshold 0.9`",
        )
    ]
    ((_, reason),) = answers(view, Wishes({"short-jobs": 1}, epochs=3)).missing
    assert reason.endswith("--protocol epochs:3`")


@pytest.fixture
def learnt(view, tmp_path):
    def made(fake, dummy, speed=2.0, rounds=1):
        """Return a run of as many seeds as there are scores; Fake is faster by `speed`, and seeds differ by up to 1 % in time."""
        (comparison,) = view.comparisons
        seeds = []
        for seed, both in enumerate(zip(fake, dummy, strict=True), 1):
            contenders = []
            for contender, scores, fast in zip(comparison.contenders, both, (speed, 1.0), strict=True):
                pace = fast * (1 + (seed * 7 % 5) / 500)
                name = f"{contender.case.framework}{seed}"
                trials = tuple(
                    numbered(training(tmp_path / f"{name}{each}", scores, speed=pace), each) for each in range(rounds)
                )
                contenders.append(replace(contender, case=replace(contender.case, seed=seed), trials=trials))
            seeds.append(replace(comparison, group=f"g{seed}", contenders=tuple(contenders)))
        return replace(view, comparisons=tuple(seeds))

    return made


GOOD, LATE, BAD = (0.3, 0.5, 0.9), (0.3, 0.4, 0.9), (0.3, 0.5, 0.7)


def numbered(trial, number):
    return replace(trial, job=replace(trial.job, round=number))


def accuracy(view, *thresholds):
    found = choices.answers(
        view.comparisons[0], view.comparisons, Wishes({"accuracy-in-time": 1}, thresholds=thresholds)
    )
    (made,) = found.choices
    return found, *made


def test_the_time_to_an_accuracy_is_compared_over_seeds(learnt):
    """Fake reaches 75 % between 0.6 and 1.2 s, Dummy between 6 and 12 s."""
    view = learnt([GOOD] * 4, [GOOD] * 4, speed=10.0)
    _, made, sentence = accuracy(view, 0.75)
    assert made.thing == "time of training until the test metric has reached 0.75"
    assert made.ranking.rounds_run == 4, "seeds are the replicates"
    assert made.candidates == (view.comparisons[0].contenders[0].case.id,)
    assert sorted(made.ratios["accuracy-in-time"].values()) == pytest.approx([1.0, 10.0])
    assert sentence.startswith("Choose Fake. Next comes Dummy, with ")


def test_times_whose_intervals_between_evaluations_overlap_are_no_verdict(learnt):
    """Fake reaches 75 % after more than 4 and at most 8 s, Dummy after more than 6 and at most 12 s, in every seed."""
    _, made, sentence = accuracy(learnt([GOOD] * 5, [GOOD] * 5, speed=1.5), 0.75)
    assert len(made.candidates) == 2
    assert made.probabilities == {}
    assert sentence.startswith("The best is Fake or Dummy: the verdicts of this run do not tell them apart.")
    assert "Times are known to the interval between two evaluations" in sentence
    pair = made.ranking.verdicts[0]
    assert pair.low < 4 / 12 * 1.02
    assert pair.high > 8 / 6 * 0.98


@pytest.mark.parametrize(
    ("seeds", "words"), [(1, "All trainings have one seed"), (2, "There are trainings of 2 seeds only")]
)
def test_rounds_of_one_or_two_seeds_name_none(learnt, seeds, words):
    _, made, sentence = accuracy(learnt([GOOD] * seeds, [GOOD] * seeds, speed=10.0, rounds=4), 0.75)
    assert sentence.startswith(words)
    assert "`--seed 1,2,3,4,5,6`" in sentence
    assert made.ranking.rounds_run == seeds


def test_who_reached_an_accuracy_in_four_of_five_trainings_stays_with_a_time(learnt):
    found, made, sentence = accuracy(learnt([GOOD] * 5, [GOOD] * 4 + [BAD], speed=10.0), 0.75)
    ((who, what),) = found.aside
    assert who == "accuracy-in-time: Dummy"
    assert what == (
        "4 of its 5 trainings reached 0.75, half of them within 12.0 s; the other counts as longer than it lasted, so it cannot "
        "be shown to be faster than another."
    )
    assert len(made.ranking.order) == 2
    assert sentence.startswith("Choose Fake. Next comes Dummy")


def test_who_missed_an_accuracy_once_is_not_shown_to_be_faster(learnt):
    _, made, _ = accuracy(learnt([GOOD] * 4 + [BAD], [GOOD] * 5, speed=10.0), 0.75)
    assert len(made.candidates) == 2


def test_who_never_reached_an_accuracy_is_set_aside_with_the_reason(learnt):
    view = learnt([GOOD] * 3, [BAD] * 3)
    found, _, sentence = accuracy(view, 0.75)
    assert found.aside == [("accuracy-in-time: Dummy", "None of its 3 trainings reached 0.75.")]
    assert sentence == "Only Fake is left, so there is nothing to choose from."
    none = answers(view, Wishes({"accuracy-in-time": 1}, thresholds=(0.99,)))
    assert none.missing[0][1].startswith("No training of any contender reached 0.99.")


def test_page_and_advice_have_one_mean_over_thresholds(learnt):
    view = learnt([GOOD, LATE, GOOD], [LATE, GOOD, GOOD])
    _, made, _ = accuracy(view, 0.45, 0.75)
    assert made.thing == "mean time of training until the test metric has reached 0.45 and 0.75"
    alike = [replace(each, thresholds=(0.45, 0.75)) for each in view.comparisons]
    (fake, _) = learning(alike).rows
    known = goals.costs("accuracy-in-time", alike[0], list(alike[0].contenders), NONE, alike)
    values = known.values[alike[0].contenders[0].case.id]
    assert values == pytest.approx({1: (3 + 6) / 2 / 1.004, 2: 6 / 1.008, 3: (3 + 6) / 2 / 1.002}, rel=1e-3)
    assert f"to {sorted(values.values())[1]:.2f} s (3 of 3)" in fake.cells[-1]


def test_speed_and_accuracy_are_weighed_by_seed(learnt):
    view = learnt([GOOD] * 4, [GOOD] * 4, speed=10.0, rounds=2)
    wishes = Wishes({"accuracy-in-time": 1, "memory": 1}, thresholds=(0.75,))
    found = choices.answers(view.comparisons[0], view.comparisons, wishes)
    assert [goal for goal, _ in found.missing] == ["memory"]
    known = goals.costs("speed", view.comparisons[0], list(view.comparisons[0].contenders), wishes)
    by_seed = goals.over_seeds("speed", view.comparisons[0], known, wishes, view.comparisons)
    (fake, _) = by_seed.values.values()
    assert sorted(fake) == [1, 2, 3, 4]
    assert fake[1] / fake[2] == pytest.approx(1.008 / 1.004, rel=1e-3)
    both = Wishes({"accuracy-in-time": 1, "speed": 1}, thresholds=(0.75,))
    ((made, sentence),) = choices.answers(view.comparisons[0], view.comparisons, both).choices
    assert made.ranking.rounds_run == 4
    assert sentence.startswith("Choose Fake.")


def test_a_run_with_curves_but_without_thresholds_says_how_to_name_one(learnt):
    ((_, reason),) = answers(learnt([GOOD], [GOOD]), Wishes({"accuracy-in-time": 1})).missing
    assert reason == "No value of the test metric was named. Name one with: `steelyard advise --threshold 0.9`"


def test_the_trade_off_names_who_is_not_beaten(view):
    found = recommendation(view.comparisons[0], view.comparisons)
    memory, start = found.trade_offs
    assert (
        memory.sentence
        == "Fake is at least as good as every other in time per step and peak memory, and better in one of them."
    )
    assert start.sentence.startswith("No contender is shown to beat another in time per step and time to start")
    assert [each.title for each in memory.best] == ["Fake"]
    fake, dummy = trade_offs.figure(view.comparisons[0], memory, styles(view.comparisons)).data
    assert (fake["marker"]["opacity"], dummy["marker"]["opacity"]) == (1, trade_offs.FADED)
    assert fake["x"] == pytest.approx([0.010], rel=0.01)
    assert fake["y"] == pytest.approx([300])


def test_page_and_terminal_and_json_say_the_same(view, capsys):
    html = Page(page.render(view))
    assert "What to choose" in html.text()
    assert "trade-off/line:small/bytes" in html.figures()
    sentence = told(view)["memory"]
    assert sentence in html.text().replace(" .", ".").replace(" ,", ",")
    assert advice.show(view, Wishes({}), as_json=False)
    printed = " ".join(capsys.readouterr().out.split())
    assert sentence in printed
    assert "probability of being the best speed short-jobs memory Fake >99 % <1 % >99 %" in printed
    assert advice.show(view, Wishes({"speed": 2, "memory": 1}), as_json=True)
    (comparison,) = json.loads(capsys.readouterr().out)
    (made,) = comparison["choices"]
    assert made["goals"] == ["speed", "memory"]
    assert made["candidates"] == ["line:small/fake/scripted"]
    assert [each["probability"] for each in made["contenders"]] == [1.0, 0.0]
    assert comparison["trade_offs"][0]["best"] == ["line:small/fake/scripted"]


def test_a_page_that_ranks_another_quantity_has_no_such_section(tmp_path):
    folder = write_run(tmp_path, CLEAR)
    assert "What to choose" not in page.render(view_of(folder, PEAK_MEMORY))


def test_contenders_without_a_common_round_are_not_compared(view):
    (comparison,) = view.comparisons
    fake, dummy = comparison.contenders
    apart = (replace(fake, trials=fake.trials[:2]), replace(dummy, trials=dummy.trials[3:]))
    found = replace(view, comparisons=(replace(comparison, contenders=apart),))
    assert told(found)["speed"] == "The contenders have no round in common, so none is named."


def test_what_a_setting_brought_is_said_where_the_verdicts_show_it(tmp_path):
    scripts = {
        "step_us=10000": Script(10.0, **QUICK),
        "step_us=6000": Script(6.0, **QUICK),
        "step_us=12000": Script(12.0, **QUICK),
        "dummy": Script(5.0, **QUICK),
    }
    found = run(tmp_path, scripts, wanted=options(knobs=("fake.step_us=10000,6000,12000",)))
    (comparison,) = found.comparisons
    (sentence,) = tried.sentences(comparison, list(comparison.contenders))
    first, rest = sentence.split(". Not shown ")
    assert first == "Fake, step_us 6000 is 1.67x [1.66, 1.67] faster than Fake, step_us 10000"
    assert rest == "to be faster than Fake, step_us 10000: Fake, step_us 12000."
