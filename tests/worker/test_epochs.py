"""Processes that train whole epochs: which steps an epoch has, what is counted, and when the network is evaluated."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from worker.scripted_training import STEP_NS, STEPS, TEST_BATCHES, points, trained

from steelyard.results import trials
from steelyard.results.events import Shapes
from steelyard.results.quantities import quantity
from steelyard_worker import evaluation, measure, tensors
from steelyard_worker.protocol import NOT_SCORED, Data


@pytest.fixture
def data(tmp_path: Path) -> Data:
    return points(tmp_path)


def blocks(trial: trials.Trial) -> list[tuple[int, str, int]]:
    return [(block.epoch, block.phase, block.steps) for block in trial.blocks]


@pytest.mark.parametrize("name", ["epochs:3", "total:3"])
def test_every_epoch_counts_from_the_first_step_on(name: str, tmp_path: Path, data: Data) -> None:
    trial = trained(name, tmp_path / "t", data)
    counted = [(1, "counted", 1), (1, "counted", STEPS - 1), (2, "counted", STEPS), (3, "counted", STEPS)]
    assert blocks(trial) == counted
    assert trial.phases_ns["first-step"] == STEP_NS
    assert trial.location_ns("pipeline") == STEP_NS
    assert trial.epochs_ns == {1: 4 * STEP_NS, 2: 4 * STEP_NS, 3: 4 * STEP_NS}


def test_the_shapes_and_the_compilations_of_each_epoch_are_recorded(tmp_path: Path, data: Data) -> None:
    trial = trained("epochs:2", tmp_path / "t", data, compiling=(1, 2, 7))
    assert trial.shapes == {1: Shapes(1, 1, 1, 2), 2: Shapes(2, 1, 0, 1)}


def test_a_compilation_for_a_new_shape_is_no_cause_for_a_warning(
    tmp_path: Path, data: Data, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert [each["name"] for each in trained("epochs:2", tmp_path / "a", data, (7,)).warnings] == [
        "compiled-while-counted"
    ]
    monkeypatch.setattr(measure.batches.Source, "shapes", lambda _, steps: {(steps.start,)})
    trial = trained("epochs:2", tmp_path / "b", data, (7,))
    assert (trial.warnings, trial.shapes[2]) == ((), Shapes(2, 1, 1, 1))


def test_without_the_first_epoch_it_is_recorded_but_not_counted(tmp_path: Path, data: Data) -> None:
    trial = trained("epochs:3-first", tmp_path / "t", data)
    warmup = [(1, "first", 1), (1, "warm-up", STEPS - 1)]
    assert blocks(trial) == [*warmup, (2, "counted", STEPS), (3, "counted", STEPS)]
    assert trial.epochs_ns[1] == 4 * STEP_NS


def test_the_second_epoch_is_counted_and_evaluated_once_after_it(tmp_path: Path, data: Data) -> None:
    trial = trained("second-epoch", tmp_path / "t", data)
    assert blocks(trial) == [(1, "first", 1), (1, "warm-up", STEPS - 1), (2, "counted", STEPS)]
    assert [(each.steps, each.epoch) for each in trial.evaluations] == [(2 * STEPS, 0)]
    assert (trial.folder / "predictions" / "index.json").exists()


def test_fixed_steps_with_the_pipeline_are_no_epochs(tmp_path: Path, data: Data) -> None:
    trial = trained("fixed:3+7:pipeline", tmp_path / "t", data)
    assert blocks(trial) == [(0, "first", 1), (0, "warm-up", 3), (0, "counted", 7)]
    assert {block.input for block in trial.blocks} == {"pipeline"}
    assert trial.epochs_ns == {}


def test_a_long_epoch_is_timed_in_blocks_of_about_a_minute(
    tmp_path: Path, data: Data, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(measure, "EPOCH_BLOCK_NS", 3 * STEP_NS)
    trial = trained("epochs:2", tmp_path / "t", data)
    assert blocks(trial) == [(1, "counted", 1), (1, "counted", 3), (2, "counted", 3), (2, "counted", 1)]
    assert trial.epochs_ns == {1: 4 * STEP_NS, 2: 4 * STEP_NS}


def test_the_network_is_evaluated_after_each_epoch_off_the_clock(tmp_path: Path, data: Data) -> None:
    trial = trained("epochs:3-first", tmp_path / "t", data)
    assert [(each.epoch, each.steps) for each in trial.evaluations] == [(1, STEPS), (2, 2 * STEPS), (3, 3 * STEPS)]
    assert {each.elapsed_ns for each in trial.evaluations} == {TEST_BATCHES * STEP_NS // 2}
    assert trial.evaluation is trial.evaluations[-1]
    stored = [tensors.read(trial.folder / "predictions" / f"epoch{epoch}") for epoch in (1, 2, 3)]
    for evaluated, predictions in zip(trial.evaluations, stored, strict=True):
        right = np.mean(predictions["predicted"] == predictions["truth"])
        assert evaluated.scores == {"accuracy": right}
    assert trial.evaluations[0].scores["accuracy"] > 0.5  # it learns
    ends = [(block.start_ns, block.start_ns + block.elapsed_ns) for block in trial.blocks]
    assert ends[2][0] - ends[1][1] >= TEST_BATCHES * STEP_NS // 2  # between the blocks of two epochs


def test_an_evaluation_that_fails_loses_no_times(tmp_path: Path, data: Data, monkeypatch: pytest.MonkeyPatch) -> None:
    def wrong(outputs: Any, batch: Any) -> Any:
        return {"predicted": outputs["scores"]}

    monkeypatch.setattr(evaluation, "classified", wrong)
    trial = trained("epochs:2", tmp_path / "t", data)
    assert trial.done and trial.location_ns("pipeline") == STEP_NS
    assert (trial.evaluations, len(trial.warnings)) == ((), 2)
    assert trial.warnings[0] == {
        "name": NOT_SCORED,
        "reason": "the metric 'accuracy' failed with KeyError: 'scores'",
    }


def test_the_quantities_of_epochs(tmp_path: Path, data: Data) -> None:
    trial = trained("epochs:3-first", tmp_path / "t", data)
    slow = replace(trial.blocks[1], elapsed_ns=5 * STEP_NS)  # of the first epoch
    trial = replace(
        trial, blocks=(trial.blocks[0], slow, replace(trial.blocks[2], elapsed_ns=6 * STEP_NS), trial.blocks[3])
    )
    values = {
        name: quantity(name).read(trial, "process") for name in ("first epoch", "second epoch", "epoch", "total time")
    }
    expected = {"first epoch": 6.0, "second epoch": 6.0, "epoch": 5.0, "total time": 16.0}
    assert values == {name: value * STEP_NS for name, value in expected.items()}


def test_the_first_of_several_evaluations_does_not_count(tmp_path: Path, data: Data) -> None:
    trial = trained("epochs:2", tmp_path / "t", data)
    first, second = trial.evaluations
    found = quantity("evaluation time")
    several = replace(trial, evaluations=(replace(first, elapsed_ns=900), replace(second, elapsed_ns=30), second))
    assert found.read(several, "process") == (30 + second.elapsed_ns) / 2
    assert found.read(replace(trial, evaluations=(replace(first, elapsed_ns=900),)), "process") == 900
    assert found.read(replace(trial, evaluations=()), "process") is None


@pytest.mark.parametrize(("compiling", "warned"), [((1, 3), []), ((2, STEPS + 1), [1])])
def test_only_the_first_epoch_may_compile(
    compiling: tuple[int, ...], warned: list[int], tmp_path: Path, data: Data
) -> None:
    trial = trained("total:2", tmp_path / "t", data, compiling)
    assert [each["count"] for each in trial.warnings if each["name"] == "compiled-while-counted"] == warned


def test_damaged_predictions_of_one_epoch_are_named(tmp_path: Path, data: Data) -> None:
    (tmp_path / "trials").mkdir()
    trial = trained("epochs:2", tmp_path / "trials" / "t", data)
    (trial.folder / "predictions" / "epoch2" / "index.json").write_text("{")
    found, (sentence,) = trials.read_all(tmp_path)
    assert found == []
    assert "epoch2" in sentence


def test_a_single_epoch_of_a_single_step_is_one_block(tmp_path: Path, data: Data) -> None:
    arrays: dict[str, Any] = {name: array[:16] for name, array in tensors.read(Path(data.prepared)).items()}
    tensors.write(tmp_path / "few", arrays)
    tensors.write(tmp_path / "once", {"order": np.arange(16, dtype=np.int32)[None]})
    trial = trained("total:1", tmp_path / "t", Data("", str(tmp_path / "few"), str(tmp_path / "once")))
    assert blocks(trial) == [(1, "counted", 1)]
    assert len(trial.evaluations) == 1
