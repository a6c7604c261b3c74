"""Learning curves of a trial: by step, by epoch, by second of training, without the time of evaluations."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest
import recorded_trials
from recorded_trials import training

from steelyard.results import learning, trials
from steelyard.results.learning import Course
from steelyard.statistics.survival import Arrival

if TYPE_CHECKING:
    from pathlib import Path


def test_a_course_has_a_value_for_each_epoch_at_the_time_of_training(tmp_path: Path) -> None:
    expected = Course((1, 2, 3), (2, 4, 6), (2, 6, 12), (5.5, 3.5, 1.5), {"accuracy": (0.5, 0.8, 0.7)})
    assert learning.course(training(tmp_path / "a")) == expected
    assert learning.course(training(tmp_path / "b", pause=50)) == expected


def test_an_epoch_without_an_evaluation_has_no_score(tmp_path: Path) -> None:
    found = learning.course(training(tmp_path / "t", (0.5, None, 0.7)))
    assert found
    assert np.isnan(found.scores["accuracy"][1])
    assert found.reaches(0.6, "epochs") == Arrival(3, arrived=True, after=1)


def test_a_threshold_is_reached_or_the_training_is_censored_at_its_end(tmp_path: Path) -> None:
    found = learning.course(training(tmp_path / "t"))
    assert found
    assert found.reaches(0.75, "epochs") == Arrival(2, arrived=True, after=1)
    assert found.reaches(0.75, "steps") == Arrival(4, arrived=True, after=2)
    assert found.reaches(0.75, "seconds") == Arrival(6, arrived=True, after=2)
    assert found.reaches(0.9, "seconds") == Arrival(12, arrived=False, after=12)
    with pytest.raises(ValueError, match="without evaluations"):
        replace(found, scores={}).reaches(0.9, "seconds")


def test_of_an_error_less_is_better(tmp_path: Path) -> None:
    found = replace(Course((1, 2), (1, 2), (3, 6), (0, 0), {}), scores={"WER": (0.9, 0.4)})
    assert found.reaches(0.5, "seconds") == Arrival(6, arrived=True, after=3)


def test_processes_that_train_no_epochs_have_no_course(tmp_path: Path) -> None:
    folder = recorded_trials.write(tmp_path / "t", recorded_trials.job(tmp_path), recorded_trials.events())
    assert learning.courses([trials.read(folder), training(tmp_path / "u")]) == [
        learning.course(training(tmp_path / "v"))
    ]


def test_losses_by_second_leave_out_the_time_between_blocks(tmp_path: Path) -> None:
    seconds, losses = learning.by_step(training(tmp_path / "t", pause=9), "pipeline")
    assert seconds.tolist() == [1, 2, 4, 6, 9, 12]
    assert losses.tolist() == [6, 5, 4, 3, 2, 1]
    assert learning.by_step(training(tmp_path / "u"), "cached")[0].size == 0
