"""Claims on accuracy beside what trainings reached, over seeds."""

from __future__ import annotations

from dataclasses import replace

import pytest
from recorded import Script, unstated, view_of, write_run
from recorded_trials import training

from steelyard.analysis import measured_groups, published_rows
from steelyard.analysis.matching import beside
from steelyard.plan import studies
from steelyard.published.documents import documents
from steelyard.published.gathering import gather
from steelyard.published.study_tables import StudyTable
from steelyard.statistics import scores

ARMS = {"mindspore": "fake", "pytorch": "dummy", "tensorflow": "fake", "mxnet": "dummy"}
# PyTorch, whose part Dummy takes, is said to be more accurate.
CLAIM = StudyTable("S0:claim-speed-and-accuracy", "score", where={"quantity": "accuracy"}, sides=ARMS)
HIGH, LOW = {1: 0.90, 2: 0.84, 3: 0.88}, {1: 0.88, 2: 0.825, 3: 0.86}


@pytest.fixture(scope="module")
def view(tmp_path_factory):
    root = tmp_path_factory.mktemp("scores")
    return view_of(write_run(root, {"fake": Script(10.0), "dummy": Script(12.0)}))


def rows(view, root, fake, dummy, held=CLAIM):
    """Return the rows of a claim beside trainings that ended with these scores, by seed."""
    comparison, group = view.comparisons[0], view.record.plan.groups[0]
    among = [_seed(comparison, number, root, {"fake": fake, "dummy": dummy}) for number in sorted(fake | dummy)]
    groups = measured_groups.scored(held.quantity, among, lambda _: group)
    (table,) = unstated(gather("mindspore-training", (held,), "P")).tables
    statements = tuple(replace(each, cell="", optimizer="") for each in table.statements[:1])
    return beside(replace(table, statements=statements), groups)


def _seed(comparison, number, root, ends):
    contenders = []
    for each in comparison.contenders:
        name, end = each.case.framework, ends[each.case.framework].get(number)
        trained = () if end is None else (training(root / f"{name}{number}", (0.3, end + 0.01, end)),)
        contenders.append(replace(each, case=replace(each.case, seed=number), trials=trained))
    return replace(comparison, contenders=tuple(contenders))


@pytest.mark.parametrize(
    ("fake", "dummy", "word"),
    [(LOW, HIGH, "same order"), (HIGH, LOW, "opposite order"), (HIGH, {**HIGH, 1: 0.899, 2: 0.841}, "open")],
)
def test_an_order_of_accuracies_is_judged_over_seeds(view, tmp_path, fake, dummy, word):
    (row,) = rows(view, tmp_path, fake, dummy)
    assert (row.sides, row.judgement) == (("Dummy", "Fake"), word)
    assert row.measured.rounds == 3
    assert row.values == tuple(f"{100 * sum(each.values()) / 3:.4g} % (3 seeds)" for each in (dummy, fake))


def test_seeds_are_paired(view, tmp_path):
    """Seeds differ by 6 points, the contenders by 2: without pairs, nothing could be said."""
    (row,) = rows(view, tmp_path, LOW, HIGH)
    assert 1 < row.measured.low < row.measured.high < 1.05


@pytest.mark.parametrize("seeds", [(1,), (1, 2)])
def test_with_too_few_seeds_a_claim_is_open_and_the_row_says_why(view, tmp_path, seeds):
    fake, dummy = ({number: each[number] for number in seeds} for each in (LOW, HIGH))
    (row,) = rows(view, tmp_path, fake, dummy)
    assert row.judgement == "open"
    assert (
        published_rows.ratio(row, "score").interval
        == f"{len(seeds)} seed{'s' * (len(seeds) > 1)}, of 3 that an interval needs"
    )


def test_without_trainings_there_is_the_reason(view, tmp_path):
    (row,) = rows(view, tmp_path, {1: 0.9, 2: 0.9, 3: 0.9}, {})
    assert (row.judgement, row.reason) == (None, "It was not trained for whole epochs with an evaluation after each.")


def test_a_contender_without_a_certificate_is_held_against_nothing(tmp_path):
    scripts = {"fake": Script(10.0, passed=False), "dummy": Script(12.0)}
    found = view_of(write_run(tmp_path / "run", scripts))
    (row,) = rows(found, tmp_path, LOW, HIGH)
    assert (row.judgement, row.reason) == (None, "Fake is not certified.")


def test_equal_accuracies_are_a_claim_too(view, tmp_path):
    equal = StudyTable("S3:claim-equal-results", "score", sides={"tensorflow": "fake", "pytorch": "dummy"})
    near = {number: value * (1.004 if number == 2 else 1.001) for number, value in HIGH.items()}
    assert [row.judgement for row in rows(view, tmp_path / "a", HIGH, near, equal)] == ["same size"]
    far = {number: value * 0.9 for number, value in HIGH.items()}
    assert [row.judgement for row in rows(view, tmp_path / "b", HIGH, far, equal)] == ["other size"]


@pytest.mark.parametrize(
    ("quantity", "text"),
    [(scores.SCORE, "87.33 %"), (scores.BEST, "88.33 %"), (scores.CONVERGENCE, "68.56 %"), (scores.LOSS, "1.5")],
)
def test_each_quantity_is_read_from_the_trainings(view, tmp_path, quantity, text):
    (row,) = rows(view, tmp_path, HIGH, HIGH, replace(CLAIM, quantity=quantity))
    assert row.values[0] == f"{text} (3 seeds)"
    assert measured_groups.label(quantity) != quantity


def test_scores_are_held_against_claims_on_scores_alone():
    speed = StudyTable("S0:claim-speed-and-accuracy", sides=ARMS)
    tables = gather("mindspore-training", (speed, replace(CLAIM, where={})), "P").tables
    assert [[each.first.framework for each in table.statements] for table in tables] == [["fake"], ["dummy"]]
    assert [each.printed for each in tables[0].figures] == ["better than mindspore"]


def test_every_document_that_speaks_of_accuracy_is_judged_by_a_study():
    found = {}
    for study in studies.all_studies().values():
        for table in gather(study.name, study.published, "P").tables:
            if table.quantity in scores.QUANTITIES and table.statements:
                found.setdefault(table.entry.partition(":")[0], set()).add(study.name)
    assert found == {
        "S0": {"mindspore-training", "time-to-accuracy"},
        "S2": {"resnet18-convergence", "time-to-accuracy", "fit-against-loop"},
        "S3": {"transfer-cifar10"},
        "S4": {"lstm-imdb-convergence"},
    }
    said = {
        f"{short}:{entry.id}"
        for short, document in documents().items()
        for entry in document.entries
        for value in entry.values
        if value.quantity in scores.OF_DOCUMENTS and value.relation in ("order", "equal")
    }
    held = {
        each.entry
        for study in studies.all_studies().values()
        for each in study.published
        if each.quantity in scores.QUANTITIES
    }
    assert said == held


def test_the_decaying_rate_of_a_figure_is_a_setting_of_it():
    found = gather("lstm-imdb-convergence", studies.all_studies()["lstm-imdb-convergence"].published, "P").tables
    decayed, fastest = (table.statements[0].conditions[0] for table in found if table.statements)
    assert (decayed.schedule, decayed.batches) == ("x0.9 every 10 epochs", (256,))
    assert (fastest.schedule, fastest.batches) == ("", (1024,))
