"""The machine's energy meters, and the use of its GPU, as far as this process may read them. Nothing is estimated.

RAPL counts the energy of a processor package and of its memory (Linux's powercap: documentation of the kernel, "Power Capping
Framework"), NVML that of a whole GPU. Both count all programs, and what is used while nothing runs. They are read between blocks,
never inside a timed one.
"""

from __future__ import annotations

import ctypes
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

POWERCAP = Path("/sys/class/powercap")
NVML = "libnvidia-ml.so.1"
GPU = "GPU"


class Rapl:
    """One zone of RAPL: a counter of microjoules that begins again at 0 after `range_uj`."""

    def __init__(self, zone: Path) -> None:
        self._counter = zone / "energy_uj"
        self.range_uj = int((zone / "max_energy_range_uj").read_text(encoding="ascii")) + 1
        self.read()

    def read(self) -> int:
        """Return the counter. OSError: it cannot be read; ValueError: it is no number."""
        return int(self._counter.read_text(encoding="ascii"))


class Nvml:
    """The first GPU that this process may use."""

    range_uj = 0  # it never begins again

    def __init__(self, load: Callable[[str], Any] = ctypes.CDLL) -> None:
        self._library, self._device = load(NVML), ctypes.c_void_p()
        first = os.environ.get("CUDA_VISIBLE_DEVICES", "").partition(",")[0]
        self._call("nvmlInit_v2")
        self._call("nvmlDeviceGetHandleByIndex_v2", int(first) if first.isdigit() else 0, ctypes.byref(self._device))

    def read(self) -> int:
        """Return the energy since the driver was loaded, microjoules. OSError: this GPU does not count it."""
        millijoules = ctypes.c_ulonglong()
        self._call("nvmlDeviceGetTotalEnergyConsumption", self._device, ctypes.byref(millijoules))
        return 1000 * millijoules.value

    def use_percent(self) -> int:
        """Return the share of the last sampling period (up to one second) in which a kernel ran, percent. OSError: unknown."""
        rates = (ctypes.c_uint * 2)()  # of the cores, of the memory
        self._call("nvmlDeviceGetUtilizationRates", self._device, ctypes.byref(rates))
        return int(rates[0])

    def _call(self, name: str, *arguments: Any) -> None:
        if code := getattr(self._library, name)(*arguments):
            message = f"{name} returned {code}"
            raise OSError(message)


class Meters:
    """All meters that can be read here, by name, such as `package-0`, `package-0 dram` or `GPU`."""

    def __init__(self, device: str = "cpu", powercap: Path = POWERCAP, gpu: Callable[[], Nvml] = Nvml) -> None:
        self._all: dict[str, Any] = {}
        for zone in sorted(powercap.glob("intel-rapl:*")):
            if (name := _name(zone)) and (found := _opened(lambda zone=zone: Rapl(zone))):  # type: ignore[misc]
                self._all[name] = found
        self._gpu = _opened(gpu) if device == "cuda" else None
        if self._gpu and _read(self._gpu.read) is not None:
            self._all[GPU] = self._gpu

    def read(self) -> dict[str, int]:
        """Return the counters of all meters, microjoules; a meter that cannot be read now is left out."""
        found = {name: _read(meter.read) for name, meter in self._all.items()}
        return {name: value for name, value in found.items() if value is not None}

    def since(self, before: dict[str, int]) -> dict[str, int]:
        """Return the microjoules that each meter has counted since `before`, at most one turn of a counter ago."""
        found = {}
        for name, now in self.read().items():
            used = now - before.get(name, now)
            used += self._all[name].range_uj if used < 0 else 0
            if name in before and used >= 0:  # a GPU whose driver was loaded again counts from 0
                found[name] = used
        return found

    def gpu_percent(self) -> int | None:
        """Return the use of the GPU during the last second at most, percent; None without one that tells it."""
        return _read(self._gpu.use_percent) if self._gpu else None


def _name(zone: Path) -> str:
    """Return the name of a package, or of the memory beside it; empty for a zone that another one contains."""
    try:
        name = (zone / "name").read_text(encoding="ascii").strip()
        if name.startswith("package-"):
            return name
        parent = zone.parent / zone.name.rpartition(":")[0]
        return f"{(parent / 'name').read_text(encoding='ascii').strip()} dram" if name == "dram" else ""
    except (OSError, ValueError):
        return ""


def _opened(make: Callable[[], Any]) -> Any:
    """Return a meter; None if it does not exist, or only other users may read it."""
    try:
        return make()
    except (OSError, ValueError, AttributeError):
        return None


def _read(read: Callable[[], int]) -> int | None:
    try:
        return read()
    except (OSError, ValueError, AttributeError):
        return None
