"""What the MindSpore adapter relies on: blocks that are computed twice to save memory."""

from unittest import mock

from checks import recomputation_effects
from checks.mindspore.shared import KNOBS
from steelyard_worker.case import Settings
from steelyard_worker.frameworks.mindspore import layers, runtime
from steelyard_worker.frameworks.mindspore.adapter import Adapter


def check_recomputation_changes_nothing_but_memory():
    """MindSpore's second pass moves the running statistics again; `compute_again` makes the two moves one."""
    with mock.patch.object(runtime, "_set_device"):  # MindSpore takes a device before the first kernel only
        # oneDNN has its instructions already: other checks ran before in this process.
        knobs = KNOBS | {"avx512": "on"}
        adapters = [Adapter(Settings("graph", knobs=knobs | {"recomputation": each})) for each in ("none", "blocks")]
        recomputation_effects.check_networks("mindspore", *adapters, names=("resnet18", "bert"), limit=1e-5)


def check_recomputation_without_effect_is_reported():
    assert layers.observed_recomputation("blocks") == "blocks"
    assert layers.observed_recomputation("none") == "none"
    with mock.patch.object(layers, "compute_again", lambda *_: None):
        assert layers.observed_recomputation("blocks") == "none"
