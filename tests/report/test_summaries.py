"""What the top of a page says of trainings with several seeds, and of documents that nothing could be held against."""

from __future__ import annotations

from dataclasses import replace

import pytest
from reading import Page
from recorded import Script, view_of, write_run

from steelyard.analysis import formatting
from steelyard.analysis.learning_curves import Learning
from steelyard.analysis.summaries import Summary, summary
from steelyard.plan.options import Options
from steelyard.report import page

NO_VERDICT = "No verdict: only one process of each contender was measured."
NOTHING = "Nothing that was published could be held against this run."
SEEDS = Options(
    study="time-to-accuracy", size="C", workloads=("resnet18:digits",), seeds=(1, 2), frameworks=("pytorch", "jax")
)


def view_with(folder, rounds, **more):
    """Return the view of a run of two seeds with so many processes each."""
    scripts = {"pytorch": Script(10.0, rounds=rounds, **more), "jax": Script(9.0, rounds=rounds)}
    return view_of(write_run(folder, scripts, SEEDS))


@pytest.fixture(scope="module")
def view(tmp_path_factory):
    return view_with(tmp_path_factory.mktemp("runs"), 1)


@pytest.fixture(scope="module")
def rendered(view) -> Page:
    return Page(page.render(view))


def headlines(found: Page) -> list[str]:
    return [each.words for each in found.all("p", class_="headline")]


def test_of_seeds_with_one_process_each_it_is_said_once_that_there_is_no_verdict(rendered):
    assert headlines(rendered) == [NO_VERDICT, NOTHING]
    assert "ResNet-18, 2 seeds resnet18:digits" in [each.words for each in rendered.all("h2", class_="label")]
    (first, second) = [each.words for each in rendered.all("h2") if "seed=" in each.words]
    assert (first, second) == ("ResNet-18, seed 1 resnet18:digits,seed=1", "ResNet-18, seed 2 resnet18:digits,seed=2")


def test_a_sentence_does_not_end_twice_where_there_are_no_clauses(rendered):
    sentences = [each.words for each in rendered.all("p", class_="sentence")]
    assert any(each.startswith(NO_VERDICT) for each in sentences)
    assert not [each for each in sentences if ". ." in each]


REACHED = Learning([], [], [], (1, 2), "Training until accuracy 95 %: PyTorch 3 s, JAX 4 s.")


def test_what_the_trainings_of_all_seeds_reached_is_the_only_headline(view):
    one, two = view.comparisons
    assert summary(one, view.comparisons, REACHED, NO_VERDICT, ["a clause"], "advice") == Summary(
        "ResNet-18, 2 seeds", "resnet18:digits", [REACHED.sentence], [], ""
    )
    assert summary(two, view.comparisons, None, NO_VERDICT, ["a clause"], "advice") is None


def test_a_single_seed_and_seeds_with_verdicts_speak_for_themselves(view, tmp_path):
    (one, _), several = view.comparisons, view_with(tmp_path, 2).comparisons
    for comparison, among in ((one, (one,)), (several[0], several), (several[1], several)):
        found = summary(comparison, among, REACHED, "A verdict.", ["a clause"], "advice")
        assert found == Summary(
            comparison.title, comparison.group, [REACHED.sentence, "A verdict."], ["a clause"], "advice"
        )


def test_trainings_with_another_algorithm_come_before_what_follows_from_the_verdict(view):
    one, two = view.comparisons
    trained = replace(REACHED, otherwise="With another algorithm: MXNet 2 s.")
    beside = "With another algorithm: MXNet 2 s"
    alone = summary(one, (one,), trained, "A verdict.", ["a clause"], "")
    assert (alone.headlines, alone.clauses) == ([REACHED.sentence, "A verdict."], [beside, "a clause"])
    seeds = summary(one, (one, two), trained, NO_VERDICT, ["a clause"], "")
    assert (seeds.headlines, seeds.clauses) == ([REACHED.sentence], [beside])


def test_ranks_that_do_not_wait_come_before_what_follows_from_the_verdict(view):
    (one, _), ranks = view.comparisons, ["A does not wait. It is 1.1x."]
    trained = replace(REACHED, otherwise="With another algorithm: MXNet 2 s.")
    found = summary(one, (one,), trained, "A verdict.", ["a clause"], "", ranks)
    assert found.clauses == ["With another algorithm: MXNet 2 s", "A does not wait. It is 1.1x", "a clause"]


def test_that_results_are_not_certified_is_said_beside_what_trainings_reached(tmp_path):
    """Only what the trainings of all seeds explain is left out: that there is one process each."""
    one, two = view_with(tmp_path, 1, passed=False).comparisons
    invalid = formatting.headline(one, one.primary)
    assert "valid, certified" in invalid
    found = summary(one, (one, two), REACHED, invalid, [], "")
    assert found == Summary(one.title, one.group, [REACHED.sentence, invalid], [], "")


def test_seeds_with_unlike_numbers_of_processes_speak_for_themselves(view, tmp_path):
    (one, _), (_, two) = view.comparisons, view_with(tmp_path, 2).comparisons
    for each in (one, two):
        found = summary(each, (one, two), None, "What was found.", ["a clause"], "advice")
        assert found == Summary(each.title, each.group, ["What was found."], ["a clause"], "advice")
