"""VGG-16: published counts, biases without batch norm, the flattened image, decayed and frozen tensors."""

from __future__ import annotations

from dataclasses import replace

import pytest

from steelyard.catalog import workloads
from steelyard.errors import UserError
from steelyard_worker import classification, dropout
from steelyard_worker.network import Network


def described(preset: str, **sizes: object) -> Network:
    known = workloads.find()["vgg16"]
    wanted = known.preset(preset)
    return known.network(replace(wanted, sizes={**wanted.sizes, **sizes}))


@pytest.mark.parametrize(
    ("preset", "sizes", "parameters", "macs"),
    [
        ("imagenet", {}, 138_357_544, 15_470_264_320),
        ("imagenet", {"batch_norm": True}, 138_361_768, 15_470_264_320),
        ("imagenet80", {}, 43_985_704, 1_986_740_224),
        ("imagenet80", {"batch_norm": True}, 43_989_928, 1_986_740_224),
        ("cifar10-tl", {}, 14_719_818, 313_201_664),
        ("tiny", {}, 251_826, 20_370_048),
    ],
)
def test_parameters_and_multiplications_are_the_published_ones(
    preset: str, sizes: dict[str, object], parameters: int, macs: int
) -> None:
    network = described(preset, **sizes)
    assert (network.trainable_count, network.macs) == (parameters, macs)


def test_dropout_after_convolutions_adds_no_tensor_and_leaves_no_block_to_compute_again() -> None:
    """A block that is computed again would draw another mask."""
    plain, dropped = (described("tiny-recipe", conv_dropout=value) for value in (False, True))
    assert plain.parameters == dropped.parameters
    assert plain.blocks
    assert not dropped.blocks
    assert dropped.dropout
    assert described("tiny-recipe", dense=0).dropout
    assert not described("tiny-recipe", dense=0, conv_dropout=False).dropout


def test_a_frozen_body_has_no_dropout() -> None:
    with pytest.raises(UserError, match="a frozen body is not trained, so conv_dropout has no effect"):
        described("tiny-recipe", freeze_backbone=True)


def test_rates_of_dropout_are_those_of_the_paper() -> None:
    counts = {1: 2, 2: 2, 3: 3, 4: 3, 5: 3}
    rates = {
        stage: [dropout.after_convolution(stage, each, count) for each in range(1, count + 1)]
        for stage, count in counts.items()
    }
    assert rates == {1: [0.3, 0], 2: [0.4, 0], 3: [0.4, 0.4, 0], 4: [0.4, 0.4, 0], 5: [0.4, 0.4, 0]}


def test_a_convolution_has_a_bias_only_without_batch_norm() -> None:
    plain, normed = ({each.name for each in described(name).parameters} for name in ("tiny", "tiny-batch_norm"))
    convolutions = {name.removesuffix(".weight") for name in plain if ".conv" in name and name.endswith(".weight")}
    assert len(convolutions) == 13
    assert all(f"{name}.bias" in plain and f"{name}.bias" not in normed for name in convolutions)
    assert {name.replace("conv", "bn") + ".gamma" for name in convolutions} <= normed


def test_the_tiny_image_is_two_by_two_when_it_is_flattened() -> None:
    shapes = {each.name: each.shape for each in described("tiny").parameters}
    assert shapes["dense1.weight"][1] == 4 * shapes["stage5.conv3.weight"][0]


def test_the_last_pool_rounds_down_at_80_pixels() -> None:
    shapes = {each.name: each.shape for each in described("imagenet80").parameters}
    assert shapes["dense1.weight"] == (4096, 512 * 2 * 2)


def test_transfer_learning_has_one_dense_layer_and_may_freeze_the_rest() -> None:
    dense = {each.name for each in described("cifar10-tl").parameters if each.kind == "dense"}
    assert dense == {"head.weight"}
    frozen = described("cifar10-tl", freeze_backbone=True)
    assert frozen.trainable_count == 512 * 10 + 10


@pytest.mark.parametrize(("preset", "decay", "rate"), [("imagenet", 5e-4, 0.0025), ("imagenet80", 0.0, 1e-3)])
def test_weight_decay_and_rate_are_those_of_the_program_a_preset_is_taken_from(
    preset: str, decay: float, rate: float
) -> None:
    known = workloads.find()["vgg16"]
    rule = known.optimizer(known.preset(preset))
    assert (rule.weight_decay, rule.learning_rate) == (decay, rate)
    trained = {each.name for each in described(preset).parameters if each.trainable}
    assert set(rule.decay) == (trained if decay else set())


def test_an_image_too_small_for_five_pools_is_refused() -> None:
    with pytest.raises(UserError, match="does not fit"):
        described("tiny", image=31)


def test_only_networks_of_many_classes_predict_five() -> None:
    assert described("imagenet").predictions is classification.with_five
    assert described("tiny").predictions is None


def test_a_frozen_body_is_computed_forward_only() -> None:
    network, whole = described("cifar10-tl-frozen"), described("cifar10-tl")
    head = 10 * 512
    assert (network.macs, network.frozen_macs) == (whole.macs, whole.macs - head)
    assert network.forward_flops == whole.forward_flops == 2 * whole.macs
    assert network.training_flops == 2 * whole.macs + 4 * head
    assert whole.training_flops == 6 * whole.macs
    assert network.trainable_count == 10 * 512 + 10
