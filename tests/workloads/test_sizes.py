"""Sizes of which no network can be made are refused in one sentence; all others give batches."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from steelyard.catalog import workloads
from steelyard.errors import UserError
from steelyard.inputs.data import synthetic
from steelyard_worker.network import Network

KNOWN = workloads.find()


@pytest.mark.parametrize(
    ("name", "size", "value", "why"),
    [
        ("bert", "hidden", 65, "hidden is 65 and must be a multiple of heads, which is 2"),
        ("bert", "length", 128, "length is 128 and must not exceed positions, 64"),
        ("bert", "masked", 15, "masked is 15 and must be at most 14 where length is 32"),
        ("bert", "gelu", "sigmoid", "gelu is 'sigmoid' and must be one of erf, tanh"),
        ("gnmt", "layers", 1, "layers is 1 and must be at least 2"),
        ("lstm-imdb", "readout", "first", "readout is 'first' and must be one of last, first+last"),
        ("resnet18", "stem", "large", "stem is 'large' and must be one of seed, cifar, imagenet"),
        ("resnet50", "variant", "v2", "variant is 'v2' and must be one of v1.5, v1"),
        ("tacotron2", "window", 4, "window is 4 and must be odd"),
        (
            "vgg16",
            "image",
            2,
            "a window of 2x2 does not fit into an image of 1x1, which is what one of its layers gets",
        ),
    ],
)
def test_the_reason_is_named(name: str, size: str, value: Any, why: str) -> None:
    preset = KNOWN[name].preset("tiny")
    with pytest.raises(UserError, match=re.escape(f"{name}:tiny cannot have these sizes: {why}.")):
        KNOWN[name].network(replace(preset, sizes=dict(preset.sizes) | {size: value}))


@pytest.mark.parametrize("name", sorted(KNOWN))
def test_every_network_that_is_described_has_batches(name: str) -> None:
    """Each size of the smallest preset gets values at and beyond the limits; at least one of them is possible."""
    preset, possible = KNOWN[name].preset("tiny"), 0
    for size, usual in preset.sizes.items():
        for value in _others(usual):
            try:
                network = workloads.described(KNOWN[name].folder, dict(preset.sizes) | {size: value})
            except UserError as error:
                assert "Error:" not in str(error), (size, value)
                continue
            _draw(network)
            possible += 1
    assert possible


def test_a_generator_that_fails_is_reported() -> None:
    def draw(generator: Any, batch: int) -> Any:
        raise IndexError(f"{batch} are too many")

    network = replace(KNOWN["bert"].network(KNOWN["bert"].preset("tiny")), draw=draw)
    with pytest.raises(UserError, match="cannot draw a batch of 4 at these sizes: IndexError: 4 are too many"):
        synthetic.check_inputs(network, 4, 1)


def _others(usual: Any) -> list[Any]:
    if isinstance(usual, str):
        return ["unknown"]
    return [1, 2, 3, usual + 1, usual * 8] if type(usual) is int else []


def _draw(network: Network) -> None:
    synthetic.check_inputs(network, 4, 1)
    if network.adversarial.draw:
        network.adversarial.draw(np.random.default_rng(1), 4)
