"""What the PyTorch adapter relies on: dropout."""

from unittest import mock

import torch

from checks import dropout_effects
from checks.pytorch.shared import KNOBS
from steelyard_worker import dropout
from steelyard_worker.case import Settings
from steelyard_worker.frameworks.pytorch import layers
from steelyard_worker.frameworks.pytorch import settings as process
from steelyard_worker.frameworks.pytorch.adapter import Adapter


def check_dropout_has_its_rate_and_acts_in_training_only():
    def dropped(ones, rate):
        with dropout.built_as("on"):
            return layers.dropout(rate).train()(torch.from_numpy(ones)).numpy()

    dropout_effects.check_layer(dropped)
    dropout_effects.check_networks(
        "pytorch", *(Adapter(Settings("eager", knobs=KNOBS | {"dropout": each})) for each in ("off", "on"))
    )


def check_dropout_without_effect_is_reported():
    asked = Settings("eager", knobs=KNOBS | {"dropout": "on"})
    assert process.read_back(asked)["dropout"] == "on"
    with mock.patch.object(layers, "dropout", lambda _: torch.nn.Identity()):
        assert process.read_back(asked)["dropout"] == "off"
