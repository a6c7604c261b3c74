"""What the MindSpore adapter relies on: dropout."""

from unittest import mock

import mindspore
from mindspore import Tensor, nn

from checks import dropout_effects
from checks.mindspore.shared import KNOBS
from steelyard_worker import dropout
from steelyard_worker.case import Settings
from steelyard_worker.frameworks.mindspore import layers, runtime
from steelyard_worker.frameworks.mindspore.adapter import Adapter


def check_dropout_has_its_rate_and_acts_in_training_only():
    def dropped(ones, rate):
        with dropout.built_as("on"):
            return layers.dropout(rate).set_train()(Tensor(ones)).asnumpy()

    dropout_effects.check_layer(dropped)
    before = mindspore.get_context("mode")
    try:
        with mock.patch.object(runtime, "_set_device"):  # MindSpore takes a device before the first kernel only
            # oneDNN has its instructions already: other checks ran before in this process.
            knobs = KNOBS | {"avx512": "on"}
            adapters = [Adapter(Settings("pynative", knobs=knobs | {"dropout": each})) for each in ("off", "on")]
        dropout_effects.check_networks("mindspore", *adapters, names=["vgg16", "vgg16:convolutions"])
    finally:
        mindspore.set_context(mode=before)


def check_dropout_without_effect_is_reported():
    assert layers.observed_dropout("on") == "on"
    with mock.patch.object(layers, "dropout", lambda _: nn.Identity()):
        assert layers.observed_dropout("on") == "off"
