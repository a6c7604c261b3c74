"""NVIDIA GPUs through a replaced NVML: facts, foreign processes, throttling, and missing drivers."""

import os
import subprocess
import sys
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pynvml
import pytest

from steelyard.host import gpu, npu

NO_SUCH_PROCESS = 2**22 + 1  # above the highest process id of Linux


def unsupported(*_: object) -> None:
    raise pynvml.NVMLError(pynvml.NVML_ERROR_NOT_SUPPORTED)


@pytest.fixture
def nvml(monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[str]]:
    """Replace NVML by two idle GPUs: `nvml(FUNCTION=replacement)`; returns what was opened and closed."""
    calls: list[str] = []
    functions: dict[str, Any] = {
        "nvmlInit": lambda: calls.append("opened"),
        "nvmlShutdown": lambda: calls.append("closed"),
        "nvmlDeviceGetCount": lambda: 2,
        "nvmlDeviceGetHandleByIndex": lambda index: index,
        "nvmlSystemGetDriverVersion": lambda: "570.1",
        "nvmlDeviceGetName": lambda device: f"NVIDIA H{device}",
        "nvmlDeviceGetMemoryInfo": lambda device: SimpleNamespace(total=143771 * 2**20),
        "nvmlDeviceGetComputeRunningProcesses": lambda device: [],
        "nvmlDeviceGetCurrentClocksEventReasons": lambda device: pynvml.nvmlClocksEventReasonGpuIdle,
    }

    def replaced(**others: Any) -> list[str]:
        for name, function in {**functions, **others}.items():
            monkeypatch.setattr(pynvml, name, function)
        return calls

    return replaced


def test_each_gpu_is_described_by_name_memory_and_driver(nvml: Callable[..., list[str]]) -> None:
    calls = nvml()
    assert gpu.names() == ("NVIDIA H0, 143771 MiB, 570.1", "NVIDIA H1, 143771 MiB, 570.1")
    assert calls == ["opened", "closed"]


def test_what_a_gpu_does_not_report_is_unknown_and_nothing_fails(nvml: Callable[..., list[str]]) -> None:
    nvml(
        nvmlDeviceGetMemoryInfo=unsupported,
        nvmlDeviceGetComputeRunningProcesses=unsupported,
        nvmlDeviceGetCurrentClocksEventReasons=unsupported,
        nvmlDeviceGetCurrentClocksThrottleReasons=unsupported,
    )
    assert gpu.names()[0] == "NVIDIA H0, memory unknown, 570.1"
    assert gpu.load(set()) == gpu.GpuLoad([], [])


def test_the_peak_is_that_of_the_fastest_gpu(nvml: Callable[..., list[str]]) -> None:
    """A P100 in its PCIe form has 3,584 cores at 1,303 MHz, and 9.3 TFLOP/s in its data sheet."""
    clocks_mhz = {0: 1303, 1: 1000}
    nvml(
        nvmlDeviceGetNumGpuCores=lambda device: 3584,
        nvmlDeviceGetMaxClockInfo=lambda device, kind: clocks_mhz[device] if kind == pynvml.NVML_CLOCK_SM else 9999,
    )
    assert gpu.peak_gflops() == pytest.approx(9340, rel=1e-3)
    nvml(nvmlDeviceGetNumGpuCores=unsupported, nvmlDeviceGetMaxClockInfo=lambda device, kind: 1303)
    assert gpu.peak_gflops() is None


def test_without_a_driver_there_are_no_gpus(nvml: Callable[..., list[str]]) -> None:
    calls = nvml(nvmlInit=unsupported)
    assert gpu.names() == ()
    assert gpu.load(set()) == gpu.GpuLoad([], [])
    assert calls == []


def test_processes_of_others_are_foreign_and_those_of_another_namespace_are_left_out(
    nvml: Callable[..., list[str]],
) -> None:
    with subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"]) as other:
        pids = (os.getpid(), other.pid, NO_SUCH_PROCESS)
        nvml(nvmlDeviceGetComputeRunningProcesses=lambda device: [SimpleNamespace(pid=pid) for pid in pids])
        (found,) = gpu.load({os.getpid()}).foreign
        other.kill()
    assert found.endswith(f" ({other.pid})")
    assert "python" in found


@pytest.mark.parametrize(
    ("active", "reasons"),
    [
        (pynvml.nvmlClocksEventReasonSwPowerCap, []),
        (pynvml.nvmlClocksEventReasonGpuIdle, []),
        (0x48, ["hardware slowdown", "hardware thermal slowdown"]),
    ],
)
def test_throttling_is_reported_and_the_normal_power_cap_is_not(
    active: int, reasons: list[str], nvml: Callable[..., list[str]]
) -> None:
    nvml(nvmlDeviceGetCurrentClocksEventReasons=lambda device: active if device == 1 else 0)
    assert gpu.load(set()).throttles == reasons


def test_an_older_driver_is_queried_by_the_former_name(nvml: Callable[..., list[str]]) -> None:
    nvml(
        nvmlDeviceGetCurrentClocksEventReasons=unsupported,
        nvmlDeviceGetCurrentClocksThrottleReasons=lambda device: 0x80,
    )
    assert gpu.load(set()).throttles == ["power brake"]


def test_npus_are_listed_by_number(monkeypatch: pytest.MonkeyPatch) -> None:
    listing = "Total Count : 2\n\tNPU ID : 0\n\tChip Count : 1\n\n\tNPU ID : 5\n"
    monkeypatch.setattr(npu, "output_of", lambda *_: listing)
    assert npu.names() == ("Ascend NPU 0", "Ascend NPU 5")
    monkeypatch.setattr(npu, "output_of", lambda *_: "")
    assert npu.names() == ()
