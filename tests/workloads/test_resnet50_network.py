"""ResNet-50, and the parts it shares with ResNet-18: published counts, strides, frozen tensors, top-5 predictions."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from steelyard.catalog import workloads
from steelyard_worker import classification
from steelyard_worker.network import Network


def described(workload: str, preset: str, **sizes: object) -> Network:
    known = workloads.find()[workload]
    wanted = known.preset(preset)
    return known.network(replace(wanted, sizes={**wanted.sizes, **sizes}))


@pytest.mark.parametrize(
    ("preset", "parameters", "macs"),
    [
        ("imagenet", 25_557_032, 4_089_184_256),
        ("imagenet-v1", 25_557_032, 3_857_973_248),
        ("cifar10-tl", 23_528_522, 83_431_424),
        ("tiny", 130_962, 2_927_104),
    ],
)
def test_parameters_and_multiplications_are_the_published_ones(preset: str, parameters: int, macs: int) -> None:
    network = described("resnet50", preset)
    assert (network.trainable_count, network.macs) == (parameters, macs)


@pytest.mark.parametrize(
    ("sizes", "parameters", "macs"),
    [
        ({}, 11_173_962, 140_186_624),
        ({"stem": "cifar"}, 11_173_962, 555_422_720),
        ({"stem": "imagenet"}, 11_181_642, 37_016_576),
        ({"stem": "imagenet", "image": 224, "classes": 1000}, 11_689_512, 1_814_073_344),
    ],
)
def test_every_stem_of_resnet18_has_the_published_counts(sizes: dict[str, object], parameters: int, macs: int) -> None:
    network = described("resnet18", "cifar10", **sizes)
    assert (network.trainable_count, network.macs) == (parameters, macs)


def test_the_variants_differ_in_cost_but_not_in_tensors() -> None:
    new, old = described("resnet50", "tiny"), described("resnet50", "tiny-v1")
    assert new.parameters == old.parameters
    assert new.macs > old.macs


def test_with_a_frozen_body_only_the_dense_layer_is_trained() -> None:
    network = described("resnet50", "tiny-frozen")
    assert [each.name for each in network.parameters if each.trainable] == ["head.weight", "head.bias"]


def test_weight_decay_applies_to_every_trained_tensor() -> None:
    known = workloads.find()["resnet50"]
    rule = known.optimizer(known.preset("imagenet"))
    trained = {each.name for each in described("resnet50", "imagenet").parameters if each.trainable}
    assert set(rule.decay) == trained
    assert (rule.weight_decay, rule.learning_rate, rule.momentum) == (1e-4, 0.1 * 64 / 256, 0.9)


def test_only_networks_of_many_classes_predict_five() -> None:
    assert described("resnet50", "imagenet").predictions is classification.with_five
    assert described("resnet50", "tiny").predictions is None


def test_the_true_class_is_among_five_if_fewer_than_five_score_better() -> None:
    logits = np.tile(np.arange(8, dtype=np.float32), (4, 1))
    logits[2] = 0  # all scores are equal, so the first five classes are the five
    logits[3] = np.nan
    found = classification.with_five({"logits": logits}, {"label": np.array([3, 2, 4, 0], np.int32)})
    assert found["among_five"].tolist() == [1, 0, 1, 0]
    assert found["predicted"].tolist()[:3] == [7, 7, 0]
    assert found["truth"].tolist() == [3, 2, 4, 0]
