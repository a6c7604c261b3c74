"""How long others kept a process of this run from computing, according to the samples of the machine.

The sampler is another process than the one that is timed. It sees work of other programs, steal of the hypervisor, a machine that
stands still as a whole, and a process that was stopped. A process that waits by itself changes none of these.
"""

from collections.abc import Iterator, Sequence
from itertools import pairwise

from steelyard.host.counters import Sample
from steelyard.host.noise import FOREIGN_CORES, STEAL_SHARE, foreign_cores_between

LATE_S = 0.05
"""The sampler wakes within milliseconds of its time. If it is later than this, the machine did not run it."""


def withheld_s(samples: Sequence[Sample], start_ns: int, end_ns: int, pid: int = 0) -> float:
    """Return for how long, at most, others kept a process from computing between two readings of the monotonic clock, seconds.

    All CPU time that others took counts as waiting, in every interval between samples that the given interval touches, but only
    the part beyond the limits of an undisturbed machine. `pid`: of the process, to see whether it was stopped; 0: not known.
    Where nothing was sampled the result is 0.
    """
    total = 0.0
    for first, last in pairwise(samples):
        if last.at_ns > start_ns and first.at_ns < end_ns:
            total += _taken_s(first, last)
            total += sum(_common_s(*span, start_ns, end_ns) for span in _stops(first, last, start_ns, end_ns, pid))
    return total


def _taken_s(first: Sample, last: Sample) -> float:
    """Return the CPU time that other programs and the hypervisor took beyond the limits, seconds."""
    seconds, machine_s = (last.at_ns - first.at_ns) / 1e9, last.cpu.total_s - first.cpu.total_s
    foreign_s = (foreign_cores_between(first, last) - FOREIGN_CORES) * seconds
    stolen_s = last.cpu.steal_s - first.cpu.steal_s - STEAL_SHARE * machine_s
    return max(0.0, foreign_s) + max(0.0, stolen_s)


def _stops(first: Sample, last: Sample, start_ns: int, end_ns: int, pid: int) -> Iterator[tuple[int, int]]:
    """Yield when the process did not run: it was seen stopped within the given interval, or the sampler itself woke late."""
    if any(pid in each.stopped and start_ns < each.at_ns < end_ns for each in (first, last)):
        yield first.at_ns, last.at_ns
    elif last.late_s > LATE_S:
        yield last.at_ns - round(last.late_s * 1e9), last.at_ns


def _common_s(start_ns: int, end_ns: int, other_start_ns: int, other_end_ns: int) -> float:
    return max(0, min(end_ns, other_end_ns) - max(start_ns, other_start_ns)) / 1e9
