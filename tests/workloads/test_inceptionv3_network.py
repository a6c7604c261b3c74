"""Inception v3 as data: published counts with and without its auxiliary head, kernels that are not square."""

from __future__ import annotations

from dataclasses import replace

import pytest

from steelyard.catalog import workloads
from steelyard.errors import UserError
from steelyard_worker.network import Network


def described(preset: str, **sizes: object) -> Network:
    known = workloads.find()["inceptionv3"]
    wanted = known.preset(preset)
    return known.network(replace(wanted, sizes={**wanted.sizes, **sizes}))


@pytest.mark.parametrize(
    ("preset", "sizes", "parameters", "macs"),
    [
        ("imagenet", {}, 23_834_568, 5_713_216_096),
        ("imagenet", {"aux": True}, 27_161_264, 5_718_899_296),
        ("tiny", {}, 346_830, 8_450_388),
    ],
)
def test_parameters_and_multiplications_are_the_published_ones(
    preset: str, sizes: dict[str, object], parameters: int, macs: int
) -> None:
    network = described(preset, **sizes)
    assert (network.trainable_count, network.macs) == (parameters, macs)


def test_every_block_has_the_parameters_of_its_row_in_the_table() -> None:
    rows = {
        "conv1": 928,
        "conv2": 9_280,
        "conv3": 18_560,
        "conv4": 5_280,
        "conv5": 138_624,
        "a1": 255_904,
        "a2": 277_472,
        "a3": 285_152,
        "b": 1_153_280,
        "c1": 1_297_408,
        "c2": 1_691_008,
        "c3": 1_691_008,
        "c4": 2_141_952,
        "d": 1_698_304,
        "e1": 5_044_608,
        "e2": 6_076_800,
        "head": 2_049_000,
    }
    found = dict.fromkeys(rows, 0)
    for each in described("imagenet").parameters:
        found[each.name.split(".")[0]] += each.count if each.trainable else 0
    assert found == rows
    assert list(dict.fromkeys(each.name.split(".")[0] for each in described("imagenet").parameters)) == list(rows)


def test_kernels_are_wide_and_tall_in_the_order_of_the_definition() -> None:
    shapes = {each.name: each.shape[2:] for each in described("tiny").parameters if each.kind == "conv"}
    assert [shapes[f"c1.branch2.step{i}.conv.weight"] for i in (1, 2, 3)] == [(1, 1), (1, 7), (7, 1)]
    assert [shapes[f"c1.branch3.step{i}.conv.weight"] for i in (2, 3, 4, 5)] == [(7, 1), (1, 7), (7, 1), (1, 7)]
    assert (shapes["e2.branch3.wide.conv.weight"], shapes["e2.branch3.tall.conv.weight"]) == ((1, 3), (3, 1))


def test_an_image_too_small_for_the_auxiliary_head_is_refused() -> None:
    with pytest.raises(UserError, match="does not fit"):
        described("tiny", aux=True)
