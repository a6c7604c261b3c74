"""Learning curves on the page: those of all seeds, their bands, and when trainings reached a threshold."""

from __future__ import annotations

from dataclasses import replace

import pytest
from reading import Page
from recorded_trials import training

from steelyard.analysis import thresholds, trainings
from steelyard.analysis.learning_curves import learning
from steelyard.report import page
from steelyard.report.plots import learning_curves
from steelyard.report.sections import epochs
from steelyard.report.sections.subject import Subject
from steelyard.report.styles import styles
from steelyard.results.events import Shapes
from steelyard.results.learning import Course

FAST, SLOW = (0.5, 0.8, 0.9), (0.4, 0.7, 0.7)


@pytest.fixture
def view(recorded_view, tmp_path):
    """Fake was trained twice and is twice as fast as Dummy, which was trained once and never reaches 75 %."""
    (comparison,) = recorded_view.comparisons
    fake, dummy = comparison.contenders
    twice = (training(tmp_path / "a", FAST, speed=2), training(tmp_path / "b", (0.5, 0.7, 0.8), speed=2))
    nothing_else = {"speeds": {}, "standings": {}}
    contenders = (
        replace(fake, trials=twice, **nothing_else),
        replace(dummy, trials=(training(tmp_path / "c", SLOW),), **nothing_else),
    )
    trained = replace(comparison, contenders=contenders, thresholds=(0.6, 0.75))
    return replace(recorded_view, comparisons=(trained,))


def drawn(view):
    found = learning(view.comparisons)
    figures = learning_curves.figures_of(found, styles(view.comparisons))
    return found, {figure.title: figure for figure in figures}


def test_the_loss_and_the_metric_are_drawn_by_epoch_and_by_second(view):
    _, figures = drawn(view)
    assert list(figures) == [
        "Training loss by epoch",
        "Training loss by second",
        "Accuracy by epoch",
        "Accuracy by second",
        "Share that reached 60 %",
        "Share that reached 75 %",
    ]
    fake, dummy = figures["Accuracy by second"].data
    assert (fake["name"], dummy["name"]) == ("Fake", "Dummy")
    assert fake["x"] == [1, 3, 6]
    assert dummy["x"] == [2, 6, 12]
    assert fake["y"] == [50, 75, 85]
    assert "band" not in figures["Accuracy by second"].caption
    assert trainings.ONE_SEED in figures["Accuracy by second"].caption
    assert figures["Training loss by epoch"].data[0]["x"] == [1, 2, 3]
    assert figures["Training loss by epoch"].data[0]["y"] == [5.5, 3.5, 1.5]


def test_the_share_that_arrived_is_drawn_over_time(view):
    _, figures = drawn(view)
    fake, dummy = figures["Share that reached 75 %"].data
    assert (fake["x"], fake["y"]) == ([0, 1, 3, 6], [0, 0, 100, 100]), "the rounds are one training"
    assert (dummy["x"][-1], dummy["y"]) == (12, [0, 0, 0])


def test_the_table_says_when_half_of_the_trainings_arrived_and_how_many_did(view):
    found, _ = drawn(view)
    assert found.headings == ["accuracy 60 %", "accuracy 75 %", "mean over these"]
    assert [(row.title, row.cells) for row in found.rows] == [
        (
            "Fake",
            ["1.00 s to 3.00 s, epoch 2 (1 of 1)", "1.00 s to 3.00 s, epoch 2 (1 of 1)", "1.00 s to 3.00 s (1 of 1)"],
        ),
        ("Dummy", ["2.00 s to 6.00 s, epoch 2 (1 of 1)", "never (0 of 1)", "never (0 of 1)"]),
    ]


ANSWER = "Training until accuracy 75 %: Fake 1.00 s to 3.00 s, Dummy never."


def test_the_time_to_the_highest_threshold_is_the_first_answer_of_the_page(view):
    assert drawn(view)[0].sentence == ANSWER
    headlines = [each.words for each in Page(page.render(view)).all("p", class_="headline")]
    assert headlines[0] == ANSWER


def test_the_answer_is_about_the_highest_threshold_that_was_reached(view):
    assert answer_for(view, 0.6, 0.75, 0.999) == f"{ANSWER} None reached 99.9 %."
    assert answer_for(view, 0.99, 0.999) == "No training reached accuracy 99 %."


def answer_for(view, *thresholds):
    (comparison,) = view.comparisons
    return drawn(replace(view, comparisons=(replace(comparison, thresholds=thresholds),)))[0].sentence


def test_the_terminal_has_both_tables(view, printed):
    text = " ".join(printed(view, 160).split())
    assert ANSWER in text
    assert "Whole epochs" in text
    assert "Time to thresholds" in text
    assert "1.00 s to 3.00 s, epoch 2 (1 of 1)" in text
    assert "never (0 of 1)" in text
    assert trainings.ONE_SEED in text
    assert "Scores are known after whole epochs only" in text


@pytest.fixture
def line(view):
    def trained(title, *scores, otherwise="", seconds=2.0):
        """Return a contender that was trained for one epoch once for each score."""
        courses = {
            seed: [Course((1.0,), (9.0,), (seconds,), (0.1,), {"accuracy": (score,)})]
            for seed, score in enumerate(scores)
        }
        return trainings.Line(title, styles(view.comparisons)["fake/scripted"], courses, title, otherwise)

    return trained


def test_contenders_of_which_fewer_than_half_arrived_or_none_are_named_together(line):
    lines = [
        line("Half", 0.9, 0.9, 0.1),
        line("Late", 0.9, 0.1, 0.1),
        line("Later", 0.1, 0.1, 0.9),
        line("Never", 0.1, 0.1, 0.1),
        line("Nor", 0.1, 0.1, 0.1),
    ]
    end = "trainings, {} never (medians of 3 trainings each)."
    said = [thresholds.answer(each, [0.8], "accuracy")[0] for each in (lines, [lines[0], lines[1], lines[3]])]
    assert said == [
        f"Training until accuracy 80 %: Half up to 2.00 s, Late and Later in fewer than half of their {end.format('Never and Nor')}",
        f"Training until accuracy 80 %: Half up to 2.00 s, Late in fewer than half of its {end.format('Never')}",
    ]


def test_another_algorithm_has_a_sentence_of_its_own_and_a_mistake_has_none(line):
    same, other = line("Same", 0.9), line("Other", 0.9, otherwise="another algorithm", seconds=1.0)
    wrong = line("Wrong", 0.99, otherwise="wrong on purpose", seconds=0.5)
    assert thresholds.answer([same, other, wrong], [0.8, 0.95], "accuracy") == (
        "Training until accuracy 80 %: Same up to 2.00 s. None reached 95 %.",
        "With another algorithm: Other up to 1.00 s.",
    )
    assert thresholds.answer([other, wrong], [0.8], "accuracy") == (
        "With another algorithm, until accuracy 80 %: Other up to 1.00 s.",
        "",
    )
    assert thresholds.answer([wrong], [0.8], "accuracy") == ("", "")


def test_the_first_four_that_arrived_are_named(line):
    def among(count):
        return [line(f"C{each}", 0.9, seconds=each) for each in range(count, 0, -1)]

    first = "Training until accuracy 80 %: C1 up to 1.00 s, C2 up to 2.00 s, C3 up to 3.00 s, C4 up to 4.00 s"
    assert thresholds.answer(among(4), [0.8], "accuracy") == (f"{first}.", "")
    assert thresholds.answer(among(5), [0.8], "accuracy") == (f"{first}, C5 up to 5.00 s.", "")
    assert thresholds.answer(among(7), [0.8], "accuracy") == (f"{first}, 3 others up to 7.00 s.", "")
    late = [line(f"L{each}", 0.1) for each in range(5)]
    assert (
        thresholds.answer([*among(1), *late], [0.8], "accuracy")[0]
        == "Training until accuracy 80 %: C1 up to 1.00 s, 5 others never."
    )
    other = line("Other", 0.9, otherwise="another algorithm")
    assert thresholds.answer([*late, other], [0.8], "accuracy") == (
        "Training until accuracy 80 %: 5 contenders never.",
        "With another algorithm: Other up to 2.00 s.",
    )


def test_the_hardest_threshold_of_a_score_of_which_less_is_better_is_the_lowest(line):
    def trained(title, score):
        (course,) = line(title, score).courses
        return replace(line(title), trainings={1: [replace(course, scores={"perplexity": (score,)})]})

    first, second = trained("First", 20.0), trained("Second", 60.0)
    for values in ([50, 30, 10], [10, 30, 50]):
        found, _ = thresholds.answer([first, second], values, "perplexity")
        assert found == "Training until perplexity 30: First up to 2.00 s, Second never. None reached 10."
    assert thresholds.answer([second], [10, 50, 30], "perplexity")[0] == "No training reached perplexity 50."


def test_the_easiest_of_several_thresholds_is_named_where_none_was_reached(line):
    assert thresholds.answer([line("A", 0.5)], [0.9, 0.8], "accuracy")[0] == "No training reached accuracy 80 %."
    found, _ = thresholds.answer([line("A", 0.85)], [0.95, 0.8, 0.9], "accuracy")
    assert found == "Training until accuracy 80 %: A up to 2.00 s. None reached 90 %."


def test_seeds_are_drawn_together_and_count_as_trainings(view):
    (comparison,) = view.comparisons
    fake, dummy = comparison.contenders
    seeds = [
        with_seed(replace(comparison, contenders=(replace(fake, trials=(trial,)), dummy)), number)
        for number, trial in enumerate(fake.trials, 1)
    ]
    apart, _ = drawn(replace(view, comparisons=tuple(seeds)))
    assert apart.rows[0].cells[0] == "1.00 s to 3.00 s, epoch 2 (2 of 2) [1.00 s, -]"
    assert apart.rows[1].cells[0] == "2.00 s to 6.00 s, epoch 2 (2 of 2) [2.00 s, -]"  # Dummy's training is in both
    assert apart.basis == "Independent trainings: 2, one for each seed. A band needs 5 of them."


@pytest.fixture
def of_six(view, tmp_path):
    """Six seeds with two rounds each: Fake reaches 75 % in five of them, Dummy in all."""

    def seed(number):
        made = []
        for contender, ends in zip(comparison.contenders, ((0.7 if number == 6 else 0.8), 0.9), strict=True):
            name = f"{contender.case.framework}{number}"
            rounds = [training(tmp_path / f"{name}{each}", (0.5, 0.6 + number / 100, ends), speed=2) for each in "ab"]
            made.append(replace(contender, trials=tuple(rounds), speeds={}, standings={}))
        return with_seed(replace(comparison, contenders=tuple(made), thresholds=(0.55, 0.75)), number)

    (comparison,) = view.comparisons
    return replace(view, comparisons=tuple(map(seed, range(1, 7))))


def test_the_rounds_of_a_seed_are_one_training_and_intervals_say_how_many_they_rest_on(of_six):
    found, figures = drawn(of_six)
    assert found.basis == "Independent trainings: 6, one for each seed; 2 rounds of a seed count as one."
    low, high, fake, *_ = figures["Accuracy by epoch"].data
    assert (low["y"], fake["y"], high["y"]) == ([50, 61, 70], [50, 63.5, 80], [50, 66, 80])
    assert "a band holds the median of all trainings there could be with a probability of 97% or more" in (
        figures["Accuracy by epoch"].caption
    )
    assert found.basis in figures["Accuracy by second"].caption


def test_five_of_six_that_reach_a_value_have_a_time_and_the_sixth_counts_as_longer(of_six):
    found, _ = drawn(of_six)
    fake, dummy = found.rows
    assert fake.cells[:2] == [
        "1.00 s to 3.00 s, epoch 2 (6 of 6) [1.00 s, 3.00 s]",
        "3.00 s to 6.00 s, epoch 3 (5 of 6) [3.00 s, -]",
    ]
    assert fake.cells[2] == "2.00 s to 4.50 s (5 of 6) [2.00 s, -]"
    assert dummy.cells[1] == "3.00 s to 6.00 s, epoch 3 (6 of 6) [3.00 s, 6.00 s]"
    assert found.sentence == (
        "Training until accuracy 75 %: Fake 3.00 s to 6.00 s, Dummy 3.00 s to 6.00 s (medians of 6 trainings each)."
    )
    words = Page(page.render(of_six)).text()
    assert "with fewer than 6 it has no upper end" in words
    assert found.basis in words


def with_seed(comparison, seed):
    contenders = tuple(replace(each, case=replace(each.case, seed=seed)) for each in comparison.contenders)
    return replace(comparison, group=f"{comparison.group},seed={seed}", contenders=contenders)


def test_the_first_of_several_seeds_has_the_curves_of_all_and_another_batch_has_its_own(view):
    (comparison,) = view.comparisons
    one, two = with_seed(comparison, 1), with_seed(comparison, 2)
    cases = [replace(each.case, sizes={**each.case.sizes, "batch": 99}) for each in comparison.contenders]
    other = replace(
        one, contenders=tuple(replace(each, case=case) for each, case in zip(one.contenders, cases, strict=True))
    )
    among = (one, other, two)
    assert trainings.of_all_seeds(one, among) == [one, two]
    assert trainings.of_all_seeds(two, among) == []
    assert trainings.of_all_seeds(other, among) == [other]
    assert learning([]) is None
    headings = [each.words for each in Page(page.render(replace(view, comparisons=among))).all("h3")]
    assert headings.count("Learning curves of 2 seeds") == 1
    assert headings.count("Learning curves") == 1


def test_without_thresholds_there_are_curves_alone(view):
    (comparison,) = view.comparisons
    found, figures = drawn(replace(view, comparisons=(replace(comparison, thresholds=()),)))
    assert (found.headings, found.rows, len(figures)) == ([], [], 4)


def test_without_evaluations_only_the_loss_is_drawn(view, tmp_path):
    (comparison,) = view.comparisons
    silent = tuple(
        replace(each, trials=tuple(replace(t, evaluations=()) for t in each.trials)) for each in comparison.contenders
    )
    found, figures = drawn(replace(view, comparisons=(replace(comparison, contenders=silent),)))
    assert (found.rows, list(figures)) == ([], ["Training loss by epoch", "Training loss by second"])


def test_the_page_has_tables_and_plots_of_trainings_only_where_there_are_some(view, recorded_view):
    rendered = Page(page.render(view))
    names = {each.attributes["data-figure"] for each in rendered.all("div", class_="plot")}
    assert {"learning/line:small/accuracy/epochs", "arrived/line:small/0.75"} <= names
    headings = [each.words for each in rendered.all("h3")]
    assert "Whole epochs" in headings
    assert "Learning curves" in headings
    assert "never (0 of 1)" in rendered.html
    usual = Page(page.render(recorded_view))
    assert not {"Whole epochs", "Learning curves"} & {each.words for each in usual.all("h3")}


def test_the_table_of_epochs_has_the_numbers_of_shapes_only_where_batches_are_cut(view, printed):
    (comparison,) = view.comparisons
    shapes = {1: Shapes(1, 13, 13, 0), 2: Shapes(2, 11, 4, 0)}
    fake, dummy = (
        replace(
            each,
            case=replace(each.case, sizes={**each.case.sizes, "lengths": "own"}),
            trials=tuple(replace(trial, shapes=own) for trial in each.trials),
        )
        for each, own in zip(comparison.contenders, (shapes, {}), strict=True)
    )
    cut = replace(view, comparisons=(replace(comparison, contenders=(fake, dummy)),))
    (table, _) = epochs.blocks(Subject(cut.comparisons[0], cut.comparisons, styles(cut.comparisons)))[0].blocks
    headings = [column.heading for column in table.columns[1:]]
    cells = [dict(zip(headings, [cell.value for cell in row.cells], strict=True)) for row in table.rows]
    assert [each["shapes in epoch 1"] for each in cells] == ["13", "-"]
    assert [each["new shapes in epoch 2"] for each in cells] == ["4", "-"]
    for rendered, expected in ((page.render(cut), True), (page.render(view), False)):
        assert ("Different shapes of the batches of the first epoch" in rendered) == expected
    assert ("shapes in epoch 2" in " ".join(printed(cut, 160).split())) is True
    assert "shapes in epoch" not in " ".join(printed(view, 160).split())
