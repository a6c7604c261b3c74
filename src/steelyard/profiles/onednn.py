"""oneDNN's log of a process: the kernels that ran, and the directions of convolutions."""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from steelyard_worker.protocol import PROFILE_BEGINS, PROFILE_ENDS

PREFIXES = ("onednn_verbose", "dnnl_verbose", "mkldnn_verbose")
EXECUTED = "exec"


@dataclass(frozen=True)
class Kernel:
    """One execution: the primitive, the implementation that oneDNN chose, its direction, and its time in milliseconds."""

    primitive: str
    implementation: str
    direction: str
    milliseconds: float


def kernels(lines: Iterable[str]) -> Iterator[Kernel]:
    """Yield the kernels of the profiled block from the log of its process; lines of another form are left out."""
    inside = False
    for line in lines:
        if line.startswith((PROFILE_BEGINS, PROFILE_ENDS)):
            inside = line.startswith(PROFILE_BEGINS)
        elif inside and line.startswith(PREFIXES):
            fields = line.strip().split(",")
            try:
                # ...,exec,cpu,convolution,jit:avx2,backward_data,...: oneDNN 2 and 3 have different numbers of fields before it.
                place = fields.index(EXECUTED)
                primitive, implementation, direction = fields[place + 2 : place + 5]
                yield Kernel(primitive, implementation, direction, float(fields[-1]))
            except ValueError:
                continue


def to_data(found: Iterable[Kernel]) -> float | None:
    """Return the share of gradients of data in the time of convolutions' backward passes; None without backward passes."""
    taken = Counter[str]()
    for each in found:
        if each.primitive == "convolution":
            taken[each.direction] += each.milliseconds  # type: ignore[assignment]
    backward = taken["backward_data"] + taken["backward_weights"]
    return taken["backward_data"] / backward if backward else None


def shares(found: Iterable[Kernel]) -> dict[tuple[str, str], float]:
    """Return the share of oneDNN's time by primitive and implementation, largest first."""
    taken: dict[tuple[str, str], float] = {}
    for each in found:
        key = each.primitive, each.implementation
        taken[key] = taken.get(key, 0.0) + each.milliseconds
    total = sum(taken.values())
    return {key: value / total for key, value in sorted(taken.items(), key=lambda item: -item[1])} if total else {}
