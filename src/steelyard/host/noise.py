"""Host noise: disturbances of the machine during an interval, and whether they were too large."""

import sys
from dataclasses import asdict, dataclass, field
from itertools import pairwise
from statistics import median
from typing import Any, NamedTuple

from steelyard.host.counters import Sample

# A round that exceeds one of these limits was disturbed.
STEAL_SHARE = 0.01
FOREIGN_CORES = 0.05
FREQUENCY_CHANGE = 0.03
SWAPPED_BYTES = 2**20
# A disturbance is unusual if it is this many times as severe as those of the run so far.
UNUSUAL = 2
# CPU times are counted in ticks of 10 ms: in shorter intervals a share of 1 % is mostly rounding.
SHORTEST_S = 2.0


@dataclass(frozen=True)
class HostNoise:
    """Load and speed of the machine during an interval. Cores are CPU seconds per second; None: not reported.

    `own_cores` is work of this process and everything it started, `foreign_cores` all other work (kernel threads
    included), `foreign_cores_worst` the most between two samples. `steal_share` is a share of all processors' time.
    `gpu_foreign` and `gpu_throttles` cover the whole life of the sampler. `unknown` maps a name to why it is unknown.
    """

    seconds: float
    samples: int
    steal_share: float = 0.0
    foreign_cores: float = 0.0
    foreign_cores_worst: float = 0.0
    own_cores: float = 0.0
    interrupt_cores: float = 0.0
    frequency_mhz: float | None = None
    throttles: int | None = None
    swapped_bytes: int = 0
    gpu_foreign: tuple[str, ...] = ()
    gpu_throttles: tuple[str, ...] = ()
    unknown: dict[str, str] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, for JSON."""
        return asdict(self)


def summarise(
    samples: list[Sample], gpu_foreign: tuple[str, ...] = (), gpu_throttles: tuple[str, ...] = ()
) -> HostNoise:
    """Return the noise between the first and the last sample."""
    if len(samples) < 2:
        return HostNoise(0.0, len(samples), unknown={"all": _why_nothing()})
    first, last = samples[0], samples[-1]
    seconds = max((last.at_ns - first.at_ns) / 1e9, 1e-9)
    machine_s = max(last.cpu.total_s - first.cpu.total_s, 1e-9)
    frequencies = [sample.frequency_mhz for sample in samples if sample.frequency_mhz]
    return HostNoise(
        seconds=seconds,
        samples=len(samples),
        steal_share=(last.cpu.steal_s - first.cpu.steal_s) / machine_s,
        foreign_cores=foreign_cores_between(first, last),
        foreign_cores_worst=max(foreign_cores_between(*pair) for pair in pairwise(samples)),
        own_cores=(last.own_s - first.own_s) / seconds,
        interrupt_cores=(last.cpu.interrupt_s - first.cpu.interrupt_s) / seconds,
        frequency_mhz=sum(frequencies) / len(frequencies) if frequencies else None,
        throttles=None if first.throttles is None else (last.throttles or 0) - first.throttles,
        swapped_bytes=last.swapped_bytes - first.swapped_bytes,
        gpu_foreign=gpu_foreign,
        gpu_throttles=gpu_throttles,
        unknown=_unknown(last),
    )


class Disturbance(NamedTuple):
    """A reason why times are not reliable. `severity`: the value relative to its limit, so above 1."""

    severity: float
    reason: str


def is_unusual(severity: float, earlier: list[float]) -> bool:
    """Return whether a disturbance is larger than usual on this machine; 0 stands for an undisturbed interval.

    Measuring again helps against a rare event, but not on a machine that is always disturbed: there, it only takes time.
    """
    return severity > max(1.0, UNUSUAL * median(earlier or [0.0]))


def judge(noise: HostNoise) -> list[Disturbance]:
    """Return the reasons why times measured in this interval are not reliable; empty if they are."""
    if noise.seconds < SHORTEST_S:
        return []
    foreign, throttles = len(noise.gpu_foreign), len(noise.gpu_throttles)
    checks = [
        (noise.steal_share / STEAL_SHARE, f"the hypervisor withheld {noise.steal_share:.1%} of the CPU time (steal)"),
        (noise.foreign_cores / FOREIGN_CORES, f"other processes used {noise.foreign_cores:.2f} cores"),
        (1 + (noise.throttles or 0), f"the processors were throttled {noise.throttles} times because of heat"),
        (noise.swapped_bytes / SWAPPED_BYTES, f"{noise.swapped_bytes / 2**20:.1f} MiB of memory were swapped"),
        (1 + foreign, f"other processes used the GPU: {', '.join(noise.gpu_foreign)}"),
        (1 + throttles, f"the GPU was throttled: {', '.join(noise.gpu_throttles)}"),
    ]
    return [Disturbance(float(severity), reason) for severity, reason in checks if severity > 1]


def unequal_frequencies(intervals: list[HostNoise]) -> list[Disturbance]:
    """Return why the intervals of one round's trials cannot be compared; empty if they can.

    Only intervals under the same kind of load are comparable: an idle processor lowers its frequency.
    """
    known = [each.frequency_mhz for each in intervals if each.frequency_mhz and each.seconds >= SHORTEST_S]
    change = max(known) / min(known) - 1 if len(known) > 1 else 0.0
    if change <= FREQUENCY_CHANGE:
        return []
    reason = f"the processors' mean frequency differed by {change:.1%} between contenders"
    return [Disturbance(change / FREQUENCY_CHANGE, reason)]


def foreign_cores_between(first: Sample, last: Sample) -> float:
    """Return the work of other programs between two samples, cores."""
    seconds = max((last.at_ns - first.at_ns) / 1e9, 1e-9)
    busy_s = last.cpu.busy_s - first.cpu.busy_s
    return max(0.0, (busy_s - (last.own_s - first.own_s)) / seconds)


def _unknown(sample: Sample) -> dict[str, str]:
    reasons = {
        "frequency_mhz": "the system does not report the processors' frequency, as is usual in virtual machines",
        "throttles": "the system does not count thermal throttling",
    }
    return {name: reason for name, reason in reasons.items() if getattr(sample, name) is None}


def _why_nothing() -> str:
    if sys.platform.startswith("linux"):
        return "the interval was too short to sample"
    return f"host noise is measured on Linux only, not on {sys.platform}"
