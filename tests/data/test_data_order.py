"""The order of samples, and synthetic batches: seeded, complete, the same on every machine."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from steelyard.errors import UserError
from steelyard.inputs.data.order import batch_order, bucketed_order, write_order
from steelyard.inputs.data.synthetic import random_input, synthesise
from steelyard_worker.network import Input, Network
from steelyard_worker.tensors import read


@given(st.integers(1, 60), st.integers(1, 20), st.integers(0, 40), st.integers(0, 2**32))
def test_an_epoch_has_no_sample_twice_and_drops_the_partial_batch(count, batch, steps, seed):
    if batch > count:
        with pytest.raises(UserError, match=f"batch of {batch} cannot be filled from {count}"):
            batch_order(count, batch, steps, seed)
        return
    order = batch_order(count, batch, steps, seed)
    assert (order.shape, order.dtype) == ((steps, batch), np.int32)
    per_epoch = count // batch
    for start in range(0, steps, per_epoch):
        epoch = order[start : start + per_epoch].ravel()
        assert len(set(epoch.tolist())) == len(epoch)
        assert set(epoch.tolist()) <= set(range(count))


@given(st.integers(1, 40), st.integers(0, 30), st.integers(0, 30), st.integers(0, 99))
def test_a_longer_order_begins_with_the_shorter_one(count, steps, more, seed):
    batch = max(count // 3, 1)
    longer = batch_order(count, batch, steps + more, seed)
    np.testing.assert_array_equal(batch_order(count, batch, steps, seed), longer[:steps])


def test_another_seed_or_epoch_has_another_order():
    order = batch_order(100, 10, 20, seed=0)
    assert (order[:10] != order[10:]).any()
    assert (order != batch_order(100, 10, 20, seed=1)).any()


def test_the_order_of_a_seed_never_changes():
    assert batch_order(7, 3, 3, seed=5).tolist() == [[1, 4, 2], [3, 6, 5], [0, 1, 3]]


def test_a_written_order_is_reused():
    folder = write_order(10, 2, 7, seed=3)
    np.testing.assert_array_equal(read(folder)["order"], batch_order(10, 2, 7, seed=3))
    assert write_order(10, 2, 7, seed=3) == folder
    assert write_order(10, 2, 8, seed=3) != folder


@given(st.integers(2, 60), st.integers(1, 6), st.integers(1, 9), st.integers(0, 40), st.integers(0, 99))
def test_a_bucketed_epoch_has_no_sample_twice_and_its_batches_are_within_one_bucket(count, batch, buckets, steps, seed):
    lengths = np.random.default_rng(seed).integers(1, 20, count, dtype=np.int32)
    per_epoch = count // batch
    if not 0 < buckets <= per_epoch:
        return
    order = bucketed_order(lengths, batch, steps, seed, buckets)
    assert (order.shape, order.dtype) == ((steps, batch), np.int32)
    place = np.empty(count, int)  # of each sample in the order of lengths
    place[np.argsort(lengths, kind="stable")] = np.arange(count)
    edges = [number * per_epoch // buckets * batch for number in range(1, buckets)]
    bucket = np.searchsorted(edges, place, side="right")
    for start in range(0, steps, per_epoch):
        epoch = order[start : start + per_epoch]
        assert len(set(epoch.ravel().tolist())) == epoch.size
        assert all(len(set(bucket[row])) == 1 for row in epoch)
    longer = bucketed_order(lengths, batch, steps + 3, seed, buckets)
    np.testing.assert_array_equal(longer[:steps], order)


def test_with_one_bucket_per_batch_every_epoch_has_the_same_batches_in_another_order():
    order = bucketed_order(np.array([3, 1, 4, 1, 5, 9, 2, 6]), 2, 8, seed=1, buckets=4)
    first, second = ([frozenset(row) for row in epoch.tolist()] for epoch in (order[:4], order[4:]))
    assert set(first) == set(second) == {frozenset(pair) for pair in ((1, 3), (6, 0), (2, 4), (7, 5))}
    assert first != second


def test_more_buckets_than_batches_are_refused():
    with pytest.raises(UserError, match="4 batches cannot be divided into 5 buckets; choose at most 4"):
        bucketed_order(np.arange(9), 2, 1, 0, 5)


def test_a_written_order_depends_on_the_buckets_and_on_the_lengths():
    lengths = np.arange(10, dtype=np.int32)
    folder = write_order(10, 2, 7, 3, lengths, 5)
    np.testing.assert_array_equal(read(folder)["order"], bucketed_order(lengths, 2, 7, 3, 5))
    others = [
        write_order(10, 2, 7, 3),
        write_order(10, 2, 7, 3, lengths, 2),
        write_order(10, 2, 7, 3, lengths[::-1].copy(), 5),
    ]
    assert len({folder, *others}) == 4
    assert write_order(10, 2, 7, 3, lengths, 1) == write_order(10, 2, 7, 3)


IMAGE = Input("image", (3, 8, 8), "float32")
TOKENS = Input("tokens", (500,), "int32", 7)
LABEL = Input("label", (), "int32", 4)


def test_a_synthetic_batch_has_normal_floats_uniform_labels_and_no_padding_ids():
    arrays = read(synthesise(Network((), (IMAGE, TOKENS, LABEL), 0), 64, seed=1))
    assert {name: (each.shape, each.dtype.str) for name, each in arrays.items()} == {
        "image": ((64, 3, 8, 8), "<f4"),
        "tokens": ((64, 500), "<i4"),
        "label": ((64,), "<i4"),
    }
    assert abs(float(arrays["image"].mean())) < 0.05
    assert abs(float(arrays["image"].std()) - 1) < 0.05
    assert set(np.unique(arrays["tokens"])) == set(range(1, 7))
    assert set(np.unique(arrays["label"])) == set(range(4))


def test_an_input_does_not_depend_on_the_other_inputs():
    alone, together = (read(synthesise(Network((), inputs, 0), 8, 1)) for inputs in ((LABEL,), (IMAGE, LABEL)))
    np.testing.assert_array_equal(alone["label"], together["label"])


WRONG = [replace(LABEL, high=0), replace(TOKENS, high=1), replace(LABEL, dtype="bool")]


@pytest.mark.parametrize("wrong", WRONG)
def test_an_input_with_an_invalid_bound_or_type_is_reported(wrong: Input):
    with pytest.raises(UserError, match=f"input '{wrong.name}' of type"):
        random_input(wrong, 4, 0)


def test_a_synthetic_batch_needs_a_sample():
    with pytest.raises(UserError, match="at least 1"):
        synthesise(Network((), (LABEL,), 0), 0, 0)
