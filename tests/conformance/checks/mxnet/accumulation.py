"""What the MXNet adapter relies on: backward passes add to gradients (`grad_req`), also where graphs have static shapes."""

from checks import accumulation_effects
from checks.mxnet.shared import KNOBS
from steelyard_worker.case import Settings
from steelyard_worker.frameworks.mxnet.adapter import Adapter


def adapter_of(parts, mode="hybridized"):
    return Adapter(Settings(mode, precision="float64", knobs=KNOBS | {"accumulate": parts}))


def check_parts_of_a_batch_compute_the_same():
    for mode in ("hybridized", "imperative"):
        accumulation_effects.check_same("mxnet", lambda parts, mode=mode: adapter_of(parts, mode), 1e-6)


def check_a_step_computes_one_part_after_the_other():
    accumulation_effects.check_divided("mxnet", adapter_of(4), 4)
