"""Counters of the whole machine: the use of the processors, and their speed."""

import time
from dataclasses import dataclass
from pathlib import Path

import psutil

from steelyard.host.processes import own_work
from steelyard.host.system import read


@dataclass(frozen=True)
class CpuTimes:
    """Seconds since boot, summed over all processors; `busy_s` is work, without interrupts and steal."""

    busy_s: float
    interrupt_s: float
    steal_s: float
    total_s: float


@dataclass(frozen=True)
class Sample:
    """All counters at one moment.

    `at_ns` is `time.monotonic_ns()`, `own_s` the CPU time in seconds of this process and everything it started.
    `throttles` and `swapped_bytes` count since boot. None: the system does not report it. `stopped`: those of these processes
    that a signal has stopped, by their ids. `late_s`: by how much later than asked the thread that samples woke, seconds.
    """

    at_ns: int
    cpu: CpuTimes
    own_s: float
    frequency_mhz: float | None
    throttles: int | None
    swapped_bytes: int
    stopped: frozenset[int] = frozenset()
    late_s: float = 0.0


def take_sample() -> Sample:
    """Read all counters now (Linux only); costs about half a millisecond of CPU time."""
    at_ns, machine, (own_s, stopped) = time.monotonic_ns(), cpu_times(), own_work()
    return Sample(at_ns, machine, own_s, frequency_mhz(), thermal_throttles(), swapped_bytes(), stopped)


def cpu_times() -> CpuTimes:
    """Read the machine's CPU times (Linux only)."""
    times = psutil.cpu_times()
    busy = times.user + times.nice + times.system
    interrupts = times.irq + times.softirq
    # `guest` and `guest_nice` are left out of the sum: `user` and `nice` contain them.
    return CpuTimes(busy, interrupts, times.steal, busy + interrupts + times.steal + times.idle + times.iowait)


def frequency_mhz() -> float | None:
    """Return the mean of the processors' current frequencies; None where it is unknown, as in virtual machines."""
    try:
        found = psutil.cpu_freq()
    except (NotImplementedError, OSError):  # psutil's way to report that the kernel offers no frequency files
        return None
    # Without frequency control psutil returns the nominal frequency, and 0 as the highest.
    return float(found.current) if found and found.max else None


def thermal_throttles(root: Path = Path("/")) -> int | None:
    """Return how often a processor or its package has been slowed because of heat since boot; None if not counted."""
    # No library reports these counts.
    paths = (root / "sys/devices/system/cpu").glob("cpu[0-9]*/thermal_throttle/*_throttle_count")
    found = [int(text) for path in paths if (text := read(path).strip()).isdigit()]
    return sum(found) if found else None


def swapped_bytes() -> int:
    """Return the bytes swapped in and out since boot; on pages larger than 4 KiB psutil counts 4 KiB each."""
    swap = psutil.swap_memory()
    return int(swap.sin + swap.sout)
