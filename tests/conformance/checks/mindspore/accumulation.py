"""What the MindSpore adapter relies on: gradients of parts of a batch add up to those of the whole, in one graph."""

from unittest import mock

from checks import accumulation_effects
from checks.mindspore.shared import KNOBS
from steelyard_worker.case import Settings
from steelyard_worker.frameworks.mindspore import runtime
from steelyard_worker.frameworks.mindspore.adapter import Adapter


def adapter_of(parts):
    with mock.patch.object(runtime, "_set_device"):  # MindSpore takes a device before the first kernel only
        # oneDNN has its instructions already: other checks ran before in this process.
        return Adapter(Settings("graph", knobs=KNOBS | {"avx512": "on", "accumulate": parts}))


def check_parts_of_a_batch_compute_the_same():
    accumulation_effects.check_same("mindspore", adapter_of, 1e-5)


def check_a_step_computes_one_part_after_the_other():
    accumulation_effects.check_divided("mindspore", adapter_of(4), 4)
