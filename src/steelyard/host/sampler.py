"""A thread of the orchestrator that samples the machine's counters while workers measure."""

import sys
import threading
import time
from dataclasses import replace

from steelyard.host import gpu
from steelyard.host.counters import Sample, take_sample
from steelyard.host.noise import HostNoise, summarise
from steelyard.host.processes import own_processes

GPU_PERIOD_S = 10.0


class Sampler:
    """Samples once per period while the `with` block runs; `summary()` may be called at any time.

    Work of this process and of everything it starts counts as its own; all other work is foreign. On systems
    other than Linux nothing is sampled: there, ended children no longer show their CPU time, so work of this run
    could not be told from work of others.
    """

    def __init__(self, period_s: float = 1.0) -> None:
        self._period_s = period_s
        self._samples: list[Sample] = []
        self._late_s = 0.0
        self._gpu_foreign: set[str] = set()
        self._gpu_throttles: set[str] = set()
        self._stop = threading.Event()
        self._supported = sys.platform.startswith("linux")
        self._thread = threading.Thread(target=self._watch, name="host-noise", daemon=True)

    def __enter__(self) -> "Sampler":
        self._sample()
        self._thread.start()
        return self

    def __exit__(self, *ended: object) -> None:
        self._stop.set()
        self._thread.join()
        self._sample()

    @property
    def samples(self) -> tuple[Sample, ...]:
        """The samples until now, the first first."""
        return tuple(self._samples)

    def summary(self, since_ns: int = 0, until_ns: int | None = None) -> HostNoise:
        """Return the noise between two readings of `time.monotonic_ns()`; by default, of the whole time."""
        until_ns = sys.maxsize if until_ns is None else until_ns
        chosen = [sample for sample in list(self._samples) if since_ns <= sample.at_ns <= until_ns]
        return summarise(chosen, tuple(sorted(self._gpu_foreign)), tuple(sorted(self._gpu_throttles)))

    def _watch(self) -> None:
        watches_gpus = self._supported and bool(gpu.names())
        next_gpu_s = 0.0
        while not self._wait():
            self._sample()
            if watches_gpus and time.monotonic() >= next_gpu_s:
                self._sample_gpus()
                next_gpu_s = time.monotonic() + GPU_PERIOD_S

    def _wait(self) -> bool:
        """Wait for one period, and note by how much it was longer; return whether the sampler was ended."""
        began_s = time.monotonic()
        ended = self._stop.wait(self._period_s)
        self._late_s = max(0.0, time.monotonic() - began_s - self._period_s)
        return ended

    def _sample(self) -> None:
        if self._supported:
            self._samples.append(replace(take_sample(), late_s=self._late_s))
            self._late_s = 0.0

    def _sample_gpus(self) -> None:
        load = gpu.load({process.pid for process in own_processes()})
        self._gpu_foreign.update(load.foreign)
        self._gpu_throttles.update(load.throttles)
