"""What the MXNet adapter relies on: dropout."""

from unittest import mock

from mxnet import autograd, nd

from checks import dropout_effects
from checks.mxnet.shared import KNOBS
from steelyard_worker import dropout
from steelyard_worker.case import Settings
from steelyard_worker.frameworks.mxnet import layers
from steelyard_worker.frameworks.mxnet import settings as process
from steelyard_worker.frameworks.mxnet.adapter import Adapter


def check_dropout_has_its_rate_and_acts_in_training_only():
    def dropped(ones, rate):
        with dropout.built_as("on"):
            layer = layers.dropout(rate)
        with autograd.train_mode():
            return layer(nd.array(ones)).asnumpy()

    dropout_effects.check_layer(dropped)
    for mode, names in (("imperative", dropout_effects.NETWORKS), ("hybridized", ["vgg16"])):
        adapters = [Adapter(Settings(mode, knobs=KNOBS | {"dropout": each})) for each in ("off", "on")]
        dropout_effects.check_networks("mxnet", *adapters, names=names)


def check_dropout_without_effect_is_reported():
    asked = Settings("hybridized", knobs=KNOBS | {"dropout": "on"})
    assert process.read_back(asked)["dropout"] == "on"
    with mock.patch.object(layers, "dropout", lambda _: layers.Unchanged()):
        assert process.read_back(asked)["dropout"] == "off"
