"""The least data that a step moves: what counts, and how often."""

from __future__ import annotations

from dataclasses import replace

import pytest

from steelyard.catalog import workloads
from steelyard.plan.traffic import Traffic, traffic
from steelyard_worker.case import NO_OPTIMIZER, Optimizer
from steelyard_worker.network import Input, Network, Parameter

DENSE = Parameter("dense", (10, 10), "dense", "")  # 100 scalars
STATISTICS = Parameter("mean", (7,), "running_mean", "", trainable=False)
WORDS = Parameter("words", (50, 10), "embedding", "")  # 500 scalars
NETWORK = Network((DENSE, STATISTICS), (Input("x", (3,), "float32"), Input("y", (), "int32")), macs=100, activations=40)
SGD = Optimizer("sgd", 0.1)
MOMENTUM = Optimizer("sgd", 0.1, momentum=0.9)
ADAM = Optimizer("adam", 0.1)


def test_plain_descent_reads_all_weights_once_and_writes_those_that_are_trained() -> None:
    # 107 scalars are read and 100 written; of 40 activations a quarter is written and read; 4 scalars are the batch.
    assert traffic(NETWORK, SGD, "float32") == Traffic(4 * 207, 4 * (2 * 10 + 4), 4 * 107, 4 * (10 + 4))


@pytest.mark.parametrize(("rule", "moments"), [(MOMENTUM, 1), (ADAM, 2), (Optimizer("lamb", 0.1), 2)])
def test_moments_are_read_and_written(rule: Optimizer, moments: int) -> None:
    assert traffic(NETWORK, rule, "float32").fixed == 4 * (207 + 200 * moments)
    assert traffic(NETWORK, rule, "float32").held_fixed == 4 * (107 + 100 * moments)


def test_gradients_count_where_all_must_be_known_before_the_first_update() -> None:
    assert traffic(NETWORK, replace(SGD, clip=1.0), "float32").fixed == 4 * (207 + 200)


def test_an_inference_reads_the_weights_and_the_batch() -> None:
    assert traffic(NETWORK, NO_OPTIMIZER, "float32") == Traffic(4 * 107, 4 * 4, 4 * 107, 4 * 4)


@pytest.mark.parametrize(("rule", "scalars"), [(SGD, 0), (NO_OPTIMIZER, 0), (MOMENTUM, 4 * 500), (ADAM, 6 * 500)])
def test_an_embedding_counts_only_where_all_of_its_rows_are_updated(rule: Optimizer, scalars: int) -> None:
    with_words = replace(NETWORK, parameters=(DENSE, STATISTICS, WORDS))
    assert traffic(with_words, rule, "float32").fixed - traffic(NETWORK, rule, "float32").fixed == 4 * scalars
    decayed = replace(SGD, weight_decay=0.1, decay=("words",))
    assert traffic(with_words, decayed, "float32").fixed == traffic(NETWORK, decayed, "float32").fixed + 4 * 1000


def test_frozen_word_vectors_do_not_count() -> None:
    frozen = replace(NETWORK, parameters=(DENSE, STATISTICS, replace(WORDS, trainable=False)))
    assert traffic(frozen, ADAM, "float32") == traffic(NETWORK, ADAM, "float32")


@pytest.mark.parametrize(("precision", "size"), [("float64", 8), ("float32", 4), ("bfloat16", 2), ("float16", 2)])
def test_scalars_have_the_size_of_the_precision(precision: str, size: int) -> None:
    found = traffic(NETWORK, SGD, precision)
    assert (found.fixed, found.sample) == (size * 207, size * 20 + 16)


def test_a_batch_moves_the_fixed_part_once() -> None:
    found = traffic(NETWORK, SGD, "float32")
    assert found.moved(3) == 828 + 3 * 96
    assert found.held(3) == 428 + 3 * 56


def test_every_preset_moves_something_and_holds_less_than_it_moves() -> None:
    for workload in workloads.find().values():
        for preset in workload.presets.values():
            network, rule = workload.network(preset), workload.optimizer(preset, None)
            for task_rule in (rule, NO_OPTIMIZER):
                found = traffic(network, task_rule, "float32")
                assert 0 < found.held(1) <= found.moved(1), preset.name
