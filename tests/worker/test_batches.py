"""Batches that are cut to their own longest sample: which places they have, how many shapes there are, and how they are joined."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest

from steelyard_worker import batches, evaluation, tensors
from steelyard_worker.protocol import Data

if TYPE_CHECKING:
    from pathlib import Path

CUT = {"sound": ((1, "frames"),), "text": ((0, "letters"),)}
LENGTHS = {"frames": [5, 2, 7, 1], "letters": [1, 3, 2, 0]}


@pytest.fixture
def data(tmp_path: Path) -> Data:
    """Four samples of two bins and eight frames with a text of up to four letters; padding is 0."""
    lengths = {name: np.array(values, np.int32) for name, values in LENGTHS.items()}
    sound = np.ones((4, 2, 8), np.float32) * (np.arange(8) < lengths["frames"][:, None])[:, None]
    text = np.full((4, 4), 9, np.int32) * (np.arange(4) < lengths["letters"][:, None])
    arrays = {"sound": sound, "text": text, **lengths}
    order = np.array([[0, 1], [2, 3], [3, 1], [1, 0]], np.int32)
    tensors.write(
        tmp_path / "p", {f"{split}/{name}": each for name, each in arrays.items() for split in ("train", "test")}
    )
    tensors.write(tmp_path / "o", {"order": order})
    tensors.write(tmp_path / "s", {name: array[1:] for name, array in arrays.items()})
    return Data(str(tmp_path / "s"), str(tmp_path / "p"), str(tmp_path / "o"), cut=CUT)


def test_a_batch_is_as_long_as_its_longest_sample_on_each_axis(data: Data) -> None:
    source = batches.open_source(data)
    shapes = [{name: array.shape for name, array in source.batch(step).items()} for step in range(3)]
    assert [each["sound"] for each in shapes] == [(2, 2, 5), (2, 2, 7), (2, 2, 2)]
    assert [each["text"] for each in shapes] == [(2, 3), (2, 2), (2, 3)]
    batch = source.batch(0)
    assert batch["sound"].sum(axis=(1, 2)).tolist() == [10, 4]
    assert batch["text"].tolist() == [[9, 0, 0], [9, 9, 9]]
    assert all(array.flags.c_contiguous for array in batch.values())


def test_a_batch_is_cut_to_the_next_multiple_within_the_arrays(data: Data) -> None:
    source = batches.open_source(replace(data, multiple=3))
    assert source.shapes(range(3)) == {(6, 3), (8, 3), (3, 3)}
    assert source.batch(1)["sound"].shape == (2, 2, 8)


def test_a_batch_of_empty_samples_has_one_place(data: Data, tmp_path: Path) -> None:
    split = batches.Split(
        {"text": np.zeros((2, 4), np.int32), "letters": np.zeros(2, np.int32)}, cut={"text": ((0, "letters"),)}
    )
    assert split.take(np.arange(2))["text"].shape == (2, 1)


def test_without_axes_to_cut_every_batch_has_the_extent_of_the_arrays(data: Data) -> None:
    padded = batches.open_source(Data(data.synthetic, data.prepared, data.order))
    assert {padded.batch(step)["sound"].shape for step in range(4)} == {(2, 2, 8)}
    assert len(padded.shapes(range(4))) == 1


def test_different_shapes_are_counted_over_the_steps_of_an_epoch(data: Data) -> None:
    source = batches.open_source(data)
    assert source.shapes(range(3)) == {(5, 3), (7, 2), (2, 3)}
    assert source.shapes(range(3, 4)) == {(5, 3)}  # the samples of step 0 in another order


def test_batches_for_evaluation_and_the_synthetic_batch_are_cut_as_well(data: Data) -> None:
    assert [each["sound"].shape for each in batches.evaluation_batches(data, 2)] == [(2, 2, 5), (2, 2, 7)]
    assert batches.synthetic_batch(data)["sound"].shape == (3, 2, 7)


def test_predictions_of_batches_of_different_lengths_are_padded_with_zeros() -> None:
    joined = evaluation.joined([np.ones((1, 2), np.int8), np.ones((2, 3), np.int8)])
    assert (joined.dtype, joined.tolist()) == (np.int8, [[1, 1, 0], [1, 1, 1], [1, 1, 1]])
    assert evaluation.joined([np.ones(2), np.zeros(1)]).tolist() == [1, 1, 0]
