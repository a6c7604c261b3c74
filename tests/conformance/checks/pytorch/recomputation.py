"""What the PyTorch adapter relies on: blocks that are computed twice to save memory."""

from unittest import mock

from checks import recomputation_effects
from checks.pytorch.shared import KNOBS
from steelyard_worker.case import Settings
from steelyard_worker.frameworks.pytorch import recomputation
from steelyard_worker.frameworks.pytorch import settings as process
from steelyard_worker.frameworks.pytorch.adapter import Adapter


def check_recomputation_changes_nothing_but_memory():
    """Batch norms would move their statistics twice without the context of the second pass."""
    adapters = [
        Adapter(Settings("eager", precision="float64", knobs=KNOBS | {"recomputation": each}))
        for each in ("none", "blocks")
    ]
    recomputation_effects.check_networks("pytorch", *adapters, names=("resnet18", "vgg16", "bert", "gnmt"))


def check_recomputation_without_effect_is_reported():
    asked = Settings("eager", knobs=KNOBS | {"recomputation": "blocks"})
    assert process.read_back(asked)["recomputation"] == "blocks"
    with mock.patch.object(recomputation, "checkpoint", lambda forward, x, **_: forward(x)):
        assert process.read_back(asked)["recomputation"] == "none"
