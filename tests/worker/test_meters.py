"""Energy meters in a scripted powercap tree and a scripted GPU library; this machine may have neither."""

from __future__ import annotations

import ctypes
import itertools
from pathlib import Path
from typing import Any

import pytest

from steelyard_worker import timing
from steelyard_worker.meters import Meters, Nvml

RANGE = 262_143_328_850


def zone(root: Path, number: str, name: str, energy_uj: int) -> Path:
    """Write one zone, such as intel-rapl:0; returns its counter."""
    folder = root / number
    folder.mkdir(parents=True)
    (folder / "name").write_text(f"{name}\n")
    (folder / "max_energy_range_uj").write_text(f"{RANGE}\n")
    (folder / "energy_uj").write_text(f"{energy_uj}\n")
    return folder / "energy_uj"


def no_gpu() -> Nvml:
    raise OSError("libnvidia-ml.so.1: cannot open shared object file")


def meters(root: Path) -> Meters:
    return Meters("cpu", root, no_gpu)


def test_packages_and_their_memory_are_read_and_parts_of_a_package_are_not(tmp_path: Path) -> None:
    zone(tmp_path, "intel-rapl:0", "package-0", 100)
    zone(tmp_path, "intel-rapl:0:0", "core", 60)
    zone(tmp_path, "intel-rapl:0:1", "dram", 30)
    zone(tmp_path, "intel-rapl:0:2", "uncore", 20)
    zone(tmp_path, "intel-rapl:1", "psys", 500)
    zone(tmp_path, "intel-rapl-mmio:0", "package-0", 100)
    (tmp_path / "intel-rapl").mkdir()
    assert meters(tmp_path).read() == {"package-0": 100, "package-0 dram": 30}


def test_energy_is_the_difference_of_two_readings(tmp_path: Path) -> None:
    counter = zone(tmp_path, "intel-rapl:0", "package-0", 100)
    found = meters(tmp_path)
    before = found.read()
    counter.write_text("1350\n")
    assert found.since(before) == {"package-0": 1250}


def test_a_counter_that_began_again_is_continued(tmp_path: Path) -> None:
    counter = zone(tmp_path, "intel-rapl:0", "package-0", RANGE - 10)
    found = meters(tmp_path)
    before = found.read()
    counter.write_text("29\n")
    assert found.since(before) == {"package-0": 40}, "ten to the largest value, one to 0, and 29"


@pytest.mark.parametrize("fault", ["missing", "text", "unreadable"])
def test_a_meter_that_cannot_be_read_is_none(fault: str, tmp_path: Path) -> None:
    counter = zone(tmp_path, "intel-rapl:0", "package-0", 100)
    counter.unlink()
    if fault == "text":
        counter.write_text("<not counted>\n")
    if fault == "unreadable":
        counter.mkdir()  # as only root may read it, tests as root need another error of the same kind
    assert meters(tmp_path).read() == {}


def test_a_meter_that_disappears_is_left_out(tmp_path: Path) -> None:
    counter = zone(tmp_path, "intel-rapl:0", "package-0", 100)
    found = meters(tmp_path)
    before = found.read()
    counter.unlink()
    assert found.since(before) == {}


def test_without_the_folder_there_is_nothing(tmp_path: Path) -> None:
    found = meters(tmp_path / "powercap")
    assert (found.read(), found.since({}), found.gpu_percent()) == ({}, {}, None)


class Library:
    """NVML with one GPU: every call returns a code, and values through pointers."""

    def __init__(self, **codes: int) -> None:
        self.codes, self.index, self.energy_mj = codes, -1, 7000

    def __getattr__(self, name: str) -> Any:
        return lambda *arguments: self.codes.get(name, 0) or self._answer(name, arguments)

    def _answer(self, name: str, arguments: tuple[Any, ...]) -> int:
        if name == "nvmlDeviceGetHandleByIndex_v2":
            self.index = arguments[0]
        if name == "nvmlDeviceGetTotalEnergyConsumption":
            ctypes.cast(arguments[1], ctypes.POINTER(ctypes.c_ulonglong))[0] = self.energy_mj
        if name == "nvmlDeviceGetUtilizationRates":
            ctypes.cast(arguments[1], ctypes.POINTER(ctypes.c_uint))[0] = 83
        return 0


def test_a_gpu_counts_millijoules_and_tells_its_use(tmp_path: Path) -> None:
    library = Library()
    found = Meters("cuda", tmp_path, lambda: Nvml(lambda _: library))
    before = found.read()
    library.energy_mj += 12
    assert (before, found.since(before), found.gpu_percent()) == ({"GPU": 7_000_000}, {"GPU": 12_000}, 83)


def test_a_gpu_whose_driver_was_loaded_again_has_no_energy(tmp_path: Path) -> None:
    library = Library()
    found = Meters("cuda", tmp_path, lambda: Nvml(lambda _: library))
    before = found.read()
    library.energy_mj = 3
    assert found.since(before) == {}


def test_a_gpu_that_counts_no_energy_still_tells_its_use(tmp_path: Path) -> None:
    library = Library(nvmlDeviceGetTotalEnergyConsumption=3)
    found = Meters("cuda", tmp_path, lambda: Nvml(lambda _: library))
    assert (found.read(), found.gpu_percent()) == ({}, 83)


def test_the_gpu_is_the_first_that_frameworks_see(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    library = Library()
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "2,3")
    Meters("cuda", tmp_path, lambda: Nvml(lambda _: library))
    assert library.index == 2


def test_where_the_processor_computes_no_gpu_is_read(tmp_path: Path) -> None:
    library = Library()
    assert Meters("cpu", tmp_path, lambda: Nvml(lambda _: library)).read() == {}
    assert library.index == -1


@pytest.mark.parametrize("gpu", [no_gpu, lambda: Nvml(lambda _: Library(nvmlInit_v2=9))])
def test_without_a_driver_there_is_no_gpu(gpu: Any, tmp_path: Path) -> None:
    found = Meters("cuda", tmp_path, gpu)
    assert (found.read(), found.gpu_percent()) == ({}, None)


class Steps:
    """Steps that use a tenth of a joule each."""

    def __init__(self, counter: Path) -> None:
        self.counter, self.log = counter, []

    def step(self, batch: int) -> int:
        self.log.append("step")
        self.counter.write_text(str(int(self.counter.read_text()) + 100_000))
        return batch

    def synchronise(self) -> None:
        self.log.append("synchronise")


def test_a_block_has_the_energy_of_its_steps_and_meters_are_read_outside_of_its_time(tmp_path: Path) -> None:
    steps = Steps(zone(tmp_path, "intel-rapl:0", "package-0", 5))
    read = meters(tmp_path)
    clock = itertools.count()
    original = read.read

    def noted() -> dict[str, int]:
        steps.log.append("meters")
        return original()

    def told() -> int:
        steps.log.append("clock")
        return next(clock)

    read.read = noted  # type: ignore[method-assign]
    block = timing.time_block(steps, iter(range(9)), 2, told, read)  # type: ignore[arg-type]
    assert block.energy_uj == {"package-0": 200_000}
    assert steps.log == [
        "synchronise",
        "meters",
        "clock",
        "step",
        "clock",
        "step",
        "clock",
        "synchronise",
        "clock",
        "meters",
    ]


def test_without_meters_a_block_has_no_energy(tmp_path: Path) -> None:
    steps = Steps(zone(tmp_path, "intel-rapl:0", "package-0", 5))
    block = timing.time_block(steps, iter(range(9)), 2, lambda: 0)  # type: ignore[arg-type]
    assert (block.energy_uj, block.gpu_percent) == ({}, None)
