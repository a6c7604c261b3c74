"""GoogLeNet as data: published counts of all its variants, extents rounded up, order of the branches."""

from __future__ import annotations

from dataclasses import replace

import pytest

from steelyard.catalog import workloads
from steelyard_worker.convolutional import Extent, Step, concatenated, window
from steelyard_worker.network import Network


def described(preset: str, **sizes: object) -> Network:
    known = workloads.find()["googlenet"]
    wanted = known.preset(preset)
    return known.network(replace(wanted, sizes={**wanted.sizes, **sizes}))


@pytest.mark.parametrize(
    ("preset", "sizes", "parameters", "macs"),
    [
        ("cifar10", {}, 5_610_154, 1_497_362_432),
        ("cifar10", {"five_by_five": True}, 5_991_082, 1_581_658_112),
        ("imagenet", {}, 6_624_904, 1_498_376_192),
        ("tiny", {}, 91_410, 2_964_864),
    ],
)
def test_parameters_and_multiplications_are_the_published_ones(
    preset: str, sizes: dict[str, object], parameters: int, macs: int
) -> None:
    network = described(preset, **sizes)
    assert (network.trainable_count, network.macs) == (parameters, macs)


@pytest.mark.parametrize(("preset", "more"), [("cifar10", 4_350_484), ("imagenet", 6_379_984)])
def test_auxiliary_heads_add_the_published_number_of_parameters(preset: str, more: int) -> None:
    assert described(preset, aux=True).trainable_count - described(preset).trainable_count == more


def test_every_block_has_the_parameters_of_its_row_in_the_table() -> None:
    rows = {
        "conv1": 9_536,
        "conv2": 4_224,
        "conv3": 110_976,
        "inception3a": 155_872,
        "inception3b": 340_224,
        "inception4a": 364_512,
        "inception4b": 425_232,
        "inception4c": 486_192,
        "inception4d": 573_312,
        "inception4e": 803_840,
        "inception5a": 978_944,
        "inception5b": 1_347_040,
        "head": 10_250,
    }
    found = dict.fromkeys(rows, 0)
    for each in described("cifar10").parameters:
        found[each.name.split(".")[0]] += each.count if each.trainable else 0
    assert found == rows


def test_tensors_are_in_network_order_with_an_auxiliary_head_after_its_block() -> None:
    names = [each.name.split(".")[0] for each in described("tiny-aux").parameters]
    blocks = list(dict.fromkeys(names))
    assert blocks[3:10] == [
        "inception3a",
        "inception3b",
        "inception4a",
        "aux1",
        "inception4b",
        "inception4c",
        "inception4d",
    ]
    assert blocks[10] == "aux2"


def test_only_shifts_of_batch_norms_are_initialised_differently_in_tiny_presets() -> None:
    starts = {each.kind: each.initial for each in described("cifar10").parameters}
    assert (starts["gamma"], starts["beta"]) == ("constant:1", "constant:0")
    assert (starts["conv"], starts["dense"], starts["bias"]) == ("trunc_normal:0.01", "trunc_normal:0.01", "constant:0")
    tiny = {each.kind: each.initial for each in described("tiny").parameters}
    assert {kind for kind in starts if tiny[kind] != starts[kind]} == {"beta"}


def test_a_window_rounded_up_covers_the_last_row() -> None:
    assert window(Extent(1, 112, 112), 3, 2, ceil=True) == Extent(1, 56, 56)
    assert window(Extent(1, 112, 112), 3, 2) == Extent(1, 55, 55)
    assert window(Extent(1, 5, 14), 2, 2, ceil=True) == Extent(1, 3, 7)


def test_a_window_larger_than_the_image_is_an_error() -> None:
    with pytest.raises(ValueError, match="does not fit"):
        window(Extent(1, 4, 9), 5, 1)


def test_branches_of_different_extents_are_an_error() -> None:
    with pytest.raises(ValueError, match="concatenated"):
        concatenated((Extent(1, 4, 4), Extent(1, 4, 3)))
    assert concatenated((Extent(1, 4, 3), Extent(2, 4, 3))) == Extent(3, 4, 3)
    assert Step(8).kernel == 1
