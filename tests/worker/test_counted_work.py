"""The work of a training step that a description states."""

from __future__ import annotations

from dataclasses import replace

from steelyard_worker.network import Input, Network, Parameter

BODY = Parameter("body.weight", (4, 3, 3, 3), "conv", "constant:0", trainable=False)
HEAD = Parameter("head.weight", (2, 4), "dense", "constant:0")
TABLE = Parameter("table.weight", (9, 4), "embedding", "constant:0", trainable=False)
MEAN = Parameter("bn.running_mean", (4,), "running_mean", "constant:0", trainable=False)
IMAGE = Input("image", (3, 8, 8), "float32")


def test_a_step_is_three_forward_passes() -> None:
    assert Network((HEAD,), (IMAGE,), macs=100).training_flops == 3 * 200


def test_what_is_stated_to_be_frozen_is_not_differentiated() -> None:
    assert Network((BODY, HEAD), (IMAGE,), macs=100, frozen_macs=90).training_flops == 200 + 4 * 10


def test_of_frozen_weights_whose_work_is_not_stated_only_the_forward_pass_is_certain() -> None:
    network = Network((BODY, HEAD), (IMAGE,), macs=100)
    assert network.training_flops == network.forward_flops == 200
    assert replace(network, frozen_macs=0).training_flops == 600


def test_frozen_tensors_without_multiplications_change_nothing() -> None:
    assert Network((TABLE, MEAN, HEAD), (IMAGE,), macs=100).training_flops == 600
