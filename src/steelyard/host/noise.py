"""How quiet the machine was: sampled once a second from the orchestrator, never in a worker."""

import os
import sys
import threading
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from steelyard.host import proc
from steelyard.host.gpu import foreign_gpu_processes, has_gpu, throttle_reasons

# Limits of what a measurement bears: a round during which one was passed is measured again, whole.
STEAL_SHARE = 0.01
FOREIGN_CORES = 0.05
FREQUENCY_CHANGE = 0.03
SWAPPED_PAGES = 256
GPU_PERIOD_S = 10.0
# /proc counts in ticks of 10 ms: below this length a share of 1 % is mostly rounding.
SHORTEST_S = 2.0


@dataclass(frozen=True)
class Sample:
    """Counters at one moment; `own_s` is the CPU time of this process and of all it started."""

    at_ns: int
    cpu: proc.CpuTimes
    own_s: float
    pressure_s: float | None
    load: float | None
    frequency_mhz: float | None
    throttles: int | None
    swapped_pages: int


@dataclass(frozen=True)
class HostNoise:
    """An interval in figures. Cores are CPU seconds per second; None where the system does not tell.

    `foreign_cores` is work of others (kernel threads included), `foreign_cores_worst` that of the worst
    second. `pressure_share` is recorded and not judged: a worker's own threads make it, too.
    """

    seconds: float
    samples: int
    steal_share: float = 0.0
    foreign_cores: float = 0.0
    foreign_cores_worst: float = 0.0
    own_cores: float = 0.0
    interrupt_cores: float = 0.0
    pressure_share: float | None = None
    load: float | None = None
    frequency_mhz: float | None = None
    throttles: int | None = None
    swapped_pages: int = 0
    gpu_foreign: tuple[str, ...] = ()
    gpu_throttles: tuple[str, ...] = ()
    unknown: dict[str, str] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """The same as plain values, for JSON."""
        return asdict(self)


def take_sample(root: Path = Path("/"), pid: int | None = None) -> Sample:
    """Read all counters now (about a millisecond)."""
    return Sample(
        time.monotonic_ns(),
        proc.parse_stat(proc.read(root / "proc/stat")),
        proc.tree_seconds(os.getpid() if pid is None else pid, root),
        proc.parse_pressure(proc.read(root / "proc/pressure/cpu")),
        proc.parse_load(proc.read(root / "proc/loadavg")),
        proc.frequency_mhz(root),
        proc.throttles(root),
        proc.parse_swapped(proc.read(root / "proc/vmstat")),
    )


def summarise(
    samples: list[Sample], gpu_foreign: tuple[str, ...] = (), gpu_throttles: tuple[str, ...] = ()
) -> HostNoise:
    """The interval from the first to the last sample."""
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
        foreign_cores=_foreign_cores(first, last),
        foreign_cores_worst=max(map(_foreign_cores, samples, samples[1:]), default=0.0),
        own_cores=(last.own_s - first.own_s) / seconds,
        interrupt_cores=(last.cpu.interrupt_s - first.cpu.interrupt_s) / seconds,
        pressure_share=_difference(first.pressure_s, last.pressure_s, seconds),
        load=last.load,
        frequency_mhz=sum(frequencies) / len(frequencies) if frequencies else None,
        throttles=None if first.throttles is None else (last.throttles or 0) - first.throttles,
        swapped_pages=last.swapped_pages - first.swapped_pages,
        gpu_foreign=gpu_foreign,
        gpu_throttles=gpu_throttles,
        unknown=_unknown(last),
    )


def judge(host_noise: HostNoise) -> list[str]:
    """Why the interval is not to be trusted; empty when it is."""
    if host_noise.seconds < SHORTEST_S:
        return []
    reasons = _processor_reasons(host_noise)
    if host_noise.gpu_foreign:
        reasons.append(f"others used the GPU: {', '.join(host_noise.gpu_foreign)}")
    if host_noise.gpu_throttles:
        reasons.append(f"the GPU was slowed: {', '.join(host_noise.gpu_throttles)}")
    return reasons


def unequal_frequencies(arms: list[HostNoise]) -> list[str]:
    """Why intervals under the same kind of load cannot be compared: an idle machine's frequency would say nothing."""
    known = [arm.frequency_mhz for arm in arms if arm.frequency_mhz and arm.seconds >= SHORTEST_S]
    if len(known) < 2 or max(known) <= (1 + FREQUENCY_CHANGE) * min(known):
        return []
    return [f"the processors' mean frequency differed by {max(known) / min(known) - 1:.1%} between contenders"]


def _processor_reasons(host_noise: HostNoise) -> list[str]:
    reasons = []
    if host_noise.steal_share > STEAL_SHARE:
        reasons.append(f"the host took {host_noise.steal_share:.1%} of the processors away (steal)")
    if host_noise.foreign_cores > FOREIGN_CORES:
        reasons.append(f"other processes used {host_noise.foreign_cores:.2f} cores")
    if host_noise.throttles:
        reasons.append(f"the processors were slowed {host_noise.throttles} times for their heat")
    if host_noise.swapped_pages > SWAPPED_PAGES:
        reasons.append(f"{host_noise.swapped_pages} pages of memory were swapped")
    return reasons


class Sampler:
    """A thread that samples while the `with` block runs; `summary()` may be asked at any time.

    Work of this process and of everything it starts is its own; all other work is foreign.
    """

    def __init__(self, period_s: float = 1.0, root: Path = Path("/")) -> None:
        self._period_s = period_s
        self._root = root
        self._samples: list[Sample] = []
        self._gpu_foreign: set[str] = set()
        self._gpu_throttles: set[str] = set()
        self._stop = threading.Event()
        self._able = sys.platform.startswith("linux")
        self._thread = threading.Thread(target=self._watch, name="noise", daemon=True)

    def __enter__(self) -> "Sampler":
        self._take()
        self._thread.start()
        return self

    def __exit__(self, *ended: object) -> None:
        self._stop.set()
        self._thread.join()
        self._take()

    def summary(self, since_ns: int = 0, until_ns: int | None = None) -> HostNoise:
        """The interval between two readings of `time.monotonic_ns()`, the whole by default."""
        until_ns = sys.maxsize if until_ns is None else until_ns
        chosen = [sample for sample in list(self._samples) if since_ns <= sample.at_ns <= until_ns]
        return summarise(chosen, tuple(sorted(self._gpu_foreign)), tuple(sorted(self._gpu_throttles)))

    def _watch(self) -> None:
        gpu = self._able and has_gpu()
        next_gpu_s = 0.0
        while not self._stop.wait(self._period_s):
            self._take()
            if gpu and time.monotonic() >= next_gpu_s:
                self._gpu_foreign.update(foreign_gpu_processes(os.getpid()))
                self._gpu_throttles.update(throttle_reasons())
                next_gpu_s = time.monotonic() + GPU_PERIOD_S

    def _take(self) -> None:
        if self._able:
            self._samples.append(take_sample(self._root))


def _foreign_cores(first: Sample, last: Sample) -> float:
    seconds = max((last.at_ns - first.at_ns) / 1e9, 1e-9)
    busy_s = last.cpu.busy_s - first.cpu.busy_s
    return max(0.0, (busy_s - (last.own_s - first.own_s)) / seconds)


def _difference(first: float | None, last: float | None, seconds: float) -> float | None:
    return None if first is None or last is None else (last - first) / seconds


def _unknown(sample: Sample) -> dict[str, str]:
    reasons = {
        "frequency_mhz": "the system hides the processors' frequency, as virtual machines do",
        "throttles": "the system counts no thermal throttling",
        "pressure_s": "the kernel counts no pressure (/proc/pressure)",
    }
    return {name: reason for name, reason in reasons.items() if getattr(sample, name) is None}


def _why_nothing() -> str:
    if sys.platform.startswith("linux"):
        return "the interval was too short to sample"
    return f"noise is read from /proc, which {sys.platform} does not have"
