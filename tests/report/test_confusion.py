"""Confusion matrices: counted from the recorded predictions, on the page, and in no way where there are none."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from reading import Page
from recorded import Script, view_of, write_run

from steelyard.report import as_json, page
from steelyard.report.plots import confusion
from steelyard.results import confusions
from steelyard.results.trials import Evaluation
from steelyard.statistics.confusion import counts
from steelyard_worker import tensors
from steelyard_worker.protocol import predictions_folder

MATRIX = [[9, 1], [2, 8]]
"""Of ten samples of each of two classes, the fourth is wrong, and the thirteenth and the sixteenth."""


@pytest.fixture(scope="module")
def view(tmp_path_factory):
    return view_of(
        write_run(tmp_path_factory.mktemp("runs"), {"fake": Script(10.0, rounds=1), "dummy": Script(12.0, rounds=1)})
    )


def test_predictions_are_counted_by_true_and_predicted_class() -> None:
    truth, predicted = np.array([0, 0, 1, 2, 2, 2]), np.array([0, 2, 1, 2, 2, 0])
    assert counts(truth, predicted, 3).tolist() == [[1, 0, 1], [0, 1, 0], [1, 0, 2]]


@pytest.mark.parametrize(
    ("truth", "predicted"), [([0, 1], [0]), ([], []), ([0, -1], [0, 0]), ([0, 3], [0, 0]), ([0.0, 1.0], [0.0, 1.0])]
)
def test_what_are_no_predictions_of_classes_is_refused(truth, predicted) -> None:
    with pytest.raises(ValueError, match="class"):
        counts(np.array(truth), np.array(predicted), 3)


def test_a_contender_has_the_matrix_of_its_evaluated_processes(view) -> None:
    contender = view.comparisons[0].contenders[0]

    assert confusions.matrix(contender.trials).tolist() == MATRIX
    twice = (*contender.trials, contender.trials[0])
    assert confusions.matrix(twice).tolist() == [[18, 2], [4, 16]]


def test_the_last_epoch_counts_and_matrices_of_other_sizes_are_added(view, tmp_path) -> None:
    first = view.comparisons[0].contenders[0].trials[0]
    for epoch, predicted in ((1, 0), (2, 2)):
        tensors.write(predictions_folder(tmp_path, epoch), {"truth": np.array([1]), "predicted": np.array([predicted])})
    evaluations = tuple(Evaluation(epoch, {"accuracy": 0.0}, 1, epoch) for epoch in (1, 2))
    trained = replace(first, folder=tmp_path, evaluations=evaluations)
    assert confusions.matrix([trained]).tolist() == [[0, 0, 0], [0, 0, 1], [0, 0, 0]]
    assert confusions.matrix([first, trained]).tolist() == [[9, 1, 0], [2, 8, 1], [0, 0, 0]]


def test_without_predictions_or_with_another_metric_there_is_none(view, tmp_path) -> None:
    (first, *_) = view.comparisons[0].contenders[0].trials
    assert confusions.matrix([replace(first, folder=tmp_path)]) is None
    assert confusions.matrix([replace(first, evaluations=())]) is None
    assert confusions.matrix([replace(first, job=replace(first.job, metric="speech"))]) is None
    tensors.write(
        predictions_folder(tmp_path, 0), {"truth": np.array([0]), "predicted": np.array([confusions.MOST_CLASSES])}
    )
    assert confusions.matrix([replace(first, folder=tmp_path)]) is None


def test_the_page_draws_the_matrix_of_each_contender(view) -> None:
    plots = confusion.plots(view.comparisons[0])
    assert [each.title for each in plots] == ["Confusion matrix of Fake", "Confusion matrix of Dummy"]
    (drawn,) = plots[0].data
    assert (drawn["z"], drawn["customdata"]) == ([[90, 10], [20, 80]], MATRIX)
    assert "20 predictions, of all evaluated processes together; 85 % of them are right" in plots[0].caption
    names = {each.attributes["data-figure"] for each in Page(page.render(view)).all("div", class_="plot")}
    assert {each.name for each in plots} <= names


def test_scripts_get_the_counts(view, capsys) -> None:
    as_json.show(view)
    found = json.loads(capsys.readouterr().out)["comparisons"][0]["contenders"]
    assert [each["confusion"] for each in found] == [MATRIX, MATRIX]
