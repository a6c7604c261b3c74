"""What the TensorFlow adapter relies on: blocks that are computed twice to save memory."""

from unittest import mock

from checks import recomputation_effects
from checks.tensorflow.shared import adapter_of
from steelyard_worker.frameworks.tensorflow import layers


def check_recomputation_changes_nothing_but_memory():
    for mode, names in (("eager", ("resnet18", "vgg16", "gnmt")), ("graph", ("resnet18", "bert"))):
        adapters = [adapter_of(mode, recomputation=each) for each in ("none", "blocks")]
        recomputation_effects.check_networks("tensorflow", *adapters, names=names, limit=1e-5)


def check_recomputation_without_effect_is_reported():
    adapter = adapter_of("graph", recomputation="blocks")
    assert adapter.applied()["recomputation"] == "blocks"
    with mock.patch.object(layers.Variables, "block", lambda _, part: part):
        assert adapter.applied()["recomputation"] == "none"
