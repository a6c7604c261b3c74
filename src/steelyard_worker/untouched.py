"""Whether an implementation has replaced what measures, records and compares: clocks, the worker's own functions, NumPy's.

A library that an implementation imports may replace such functions for its own purposes. This finds what is still replaced at the
end. An implementation that means to deceive can restore everything before the end, or change what no name shows: nothing that
runs in one process with the implementation could rule that out.
"""

from __future__ import annotations

import builtins
import sys
import time
from types import FunctionType, ModuleType
from typing import Any

from steelyard_worker.protocol import Refusal

KIND = "altered"
CLOCKS = ("perf_counter_ns", "perf_counter", "process_time_ns", "process_time", "monotonic_ns", "monotonic")
# The functions of NumPy that batches, tensors and their comparison are made with. Others, such as `load`, are often replaced.
NUMPY = (
    "abs",
    "arange",
    "array",
    "array_equal",
    "asarray",
    "ascontiguousarray",
    "concatenate",
    "cos",
    "dot",
    "empty",
    "fromfile",
    "full",
    "max",
    "mean",
    "memmap",
    "minimum",
    "pad",
    "prod",
    "roll",
    "sort",
    "stack",
    "subtract",
    "take",
    "take_along_axis",
    "where",
    "zeros",
)
OWN = "steelyard_worker"
# Names to which the worker itself assigns other values.
CHANGING = {f"{OWN}.probes._found"}

Known = dict[str, tuple[Any, Any, str]]


def known() -> Known:
    """Return the objects that must not be replaced, by name: the owner, the object, and its name there.

    Called when the framework is loaded and no implementation is.
    """
    import numpy as np

    found: Known = {}
    _add(found, time, CLOCKS)
    _add(found, builtins, ("open",))
    _add(found, np, NUMPY)
    _add(found, np.linalg, ("norm",))
    for name, module in list(sys.modules.items()):
        if name.startswith(f"{OWN}.") and isinstance(module, ModuleType):
            _add_own(found, module)
    return {name: value for name, value in found.items() if name not in CHANGING}


def check(before: Known) -> None:
    """Refuse a process in which something was replaced since `known`."""
    for name, (place, value, attribute) in before.items():
        if vars(place).get(attribute) is not value:
            raise Refusal(
                KIND,
                f"{name} was replaced after the implementation was loaded, so what this process measured and recorded does not "
                f"count. Look for what replaces it, in the workload's folder and in what it imports.",
            )


def _add(found: Known, module: ModuleType, names: Any) -> None:
    for name in names:
        found[f"{module.__name__}.{name}"] = (module, vars(module)[name], name)


def _add_own(found: Known, module: ModuleType) -> None:
    """Add the values of a module of the worker, and the functions of its classes."""
    names = [name for name in vars(module) if not name.startswith("__")]
    _add(found, module, names)
    for each in [vars(module)[name] for name in names]:
        if isinstance(each, type) and each.__module__ == module.__name__:
            for name, value in vars(each).items():
                if isinstance(value, (FunctionType, property, classmethod, staticmethod)):
                    found[f"{each.__module__}.{each.__qualname__}.{name}"] = (each, value, name)
