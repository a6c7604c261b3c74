"""What the PyTorch adapter relies on: gradients of parts of a batch add up to those of the whole."""

from checks import accumulation_effects
from checks.pytorch.shared import KNOBS
from steelyard_worker.case import Settings
from steelyard_worker.frameworks.pytorch.adapter import Adapter


def adapter_of(parts):
    return Adapter(Settings("eager", precision="float64", knobs=KNOBS | {"accumulate": parts}))


def check_parts_of_a_batch_compute_the_same():
    accumulation_effects.check_same("pytorch", adapter_of)


def check_a_step_computes_one_part_after_the_other():
    accumulation_effects.check_parts("pytorch", adapter_of(4), 4)
