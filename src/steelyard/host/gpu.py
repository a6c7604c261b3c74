"""NVIDIA GPUs: their names, other processes that use them, and whether they are throttled."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import psutil
import pynvml

# The power cap is a GPU's normal state under load, and low clocks when idle or as set by the user are no disturbance.
THROTTLES = {
    pynvml.nvmlClocksEventReasonHwSlowdown: "hardware slowdown",
    pynvml.nvmlClocksEventReasonSwThermalSlowdown: "software thermal slowdown",
    pynvml.nvmlClocksEventReasonHwThermalSlowdown: "hardware thermal slowdown",
    pynvml.nvmlClocksEventReasonHwPowerBrakeSlowdown: "power brake",
}


@dataclass(frozen=True)
class GpuLoad:
    """`foreign`: `name (pid)` of other processes on any GPU; `throttles`: why the clocks of any GPU are reduced."""

    foreign: list[str]
    throttles: list[str]


def names() -> tuple[str, ...]:
    """Return `name, memory, driver` of each GPU; empty without the NVIDIA driver."""
    with _devices() as devices:
        driver = _query(pynvml.nvmlSystemGetDriverVersion) if devices else None
        return tuple(f"{_query(pynvml.nvmlDeviceGetName, each)}, {_memory(each)}, {driver}" for each in devices)


def peak_gflops() -> float | None:
    """Return the float32 peak of the fastest GPU outside its tensor cores, GFLOP/s; None where it is not known.

    Every core does one multiplication and one addition per cycle of the highest clock (NVIDIA's data sheets).
    """
    with _devices() as devices:
        known = [
            (
                _query(pynvml.nvmlDeviceGetNumGpuCores, each),
                _query(pynvml.nvmlDeviceGetMaxClockInfo, each, pynvml.NVML_CLOCK_SM),
            )
            for each in devices
        ]
    return max((2 * cores * clock_mhz / 1000 for cores, clock_mhz in known if cores and clock_mhz), default=None)


def load(own: set[int]) -> GpuLoad:
    """Return the present load of all GPUs; `own` are the process ids that are not foreign."""
    with _devices() as devices:
        pids = {
            int(process.pid)
            for device in devices
            for process in _query(pynvml.nvmlDeviceGetComputeRunningProcesses, device) or ()
        }
        active = [_active_reasons(device) for device in devices]
    throttles = [reason for bit, reason in THROTTLES.items() if any(reasons & bit for reasons in active)]
    return GpuLoad(_named(pids - own), throttles)


@contextmanager
def _devices() -> Iterator[list[Any]]:
    """Yield NVML's handles of the GPUs; none without the NVIDIA driver."""
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError:
        yield []
        return
    try:
        count = _query(pynvml.nvmlDeviceGetCount) or 0
        handles = (_query(pynvml.nvmlDeviceGetHandleByIndex, index) for index in range(count))
        yield [handle for handle in handles if handle is not None]
    finally:
        _query(pynvml.nvmlShutdown)


def _query(function: Callable[..., Any], *arguments: Any) -> Any:
    """Call NVML; None where a GPU or its driver does not answer this query."""
    try:
        return function(*arguments)
    except pynvml.NVMLError:
        return None


def _memory(device: Any) -> str:
    memory = _query(pynvml.nvmlDeviceGetMemoryInfo, device)
    return f"{memory.total // 2**20} MiB" if memory else "memory unknown"


def _active_reasons(device: Any) -> int:
    """Return the bits of the reasons that reduce a GPU's clocks now (NVML API reference, nvmlClocksEventReasons)."""
    reasons = _query(pynvml.nvmlDeviceGetCurrentClocksEventReasons, device)
    if reasons is None:  # drivers before 535 have the query under its former name
        reasons = _query(pynvml.nvmlDeviceGetCurrentClocksThrottleReasons, device)
    return int(reasons or 0)


def _named(pids: set[int]) -> list[str]:
    """Return `name (pid)` of the processes that exist here.

    Others belong to another PID namespace: inside a container its own processes cannot be told from foreign ones.
    """
    found = []
    for pid in sorted(pids):
        try:
            found.append(f"{psutil.Process(pid).name()} ({pid})")
        except psutil.NoSuchProcess:
            continue
    return found
