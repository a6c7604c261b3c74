"""Peak memory of this process, phase by phase, and the limit that it may have.

Linux keeps the largest resident set of a process; it begins again at the present size when 5 is written into
/proc/self/clear_refs (proc(5)), which visits no pages. Peaks are read and begun again between blocks, never inside a timed one.
Where a peak cannot begin again, that of a phase is known only if it is the highest so far.
"""

from __future__ import annotations

import resource
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from steelyard_worker.protocol import Refusal

if TYPE_CHECKING:
    from collections.abc import Callable

PROCESS = Path("/proc/self")
RESET_PEAK = "5"


class Peaks:
    """The peaks of the phases that have ended, by name; of a phase that occurs several times, the highest.

    `limit_bytes`: of the resident memory; 0: none. `process`: the folder of this process in /proc.
    """

    def __init__(self, limit_bytes: int = 0, process: Path = PROCESS) -> None:
        self.phases: dict[str, dict[str, int | None]] = {}
        self._limit = limit_bytes
        self._resident = _Peak(lambda: resident_bytes(process), lambda: _restart(process))
        self._device = _Peak(lambda: None, lambda: False)

    def of_device(self, adapter: Any) -> None:
        """Also follow the device memory that an adapter counts."""
        self._device = _Peak(adapter.peak_bytes, getattr(adapter, "reset_peak_bytes", lambda: False))

    def end(self, phase: str) -> None:
        """End a phase. Refusal: the process used more memory than its limit."""
        found = {"resident_bytes": self._resident.of_phase(), "device_bytes": self._device.of_phase()}
        known = self.phases.setdefault(phase, found)
        for name, value in found.items():
            known[name] = max(value or 0, known[name] or 0) or None
        if self._limit and self._resident.highest > self._limit:
            message = (
                f"The process used {self._resident.highest / 1e9:.2f} GB of memory until the end of its phase '{phase}', "
                f"more than its limit of {self._limit / 1e9:g} GB."
            )
            raise Refusal("out-of-memory", message)

    def end_aside(self, phase: str) -> None:
        """End a phase that belongs to no measurement: its peaks are its own, and no part of the highest, nor of the limit."""
        self.phases[phase] = {
            "resident_bytes": self._resident.aside(),
            "device_bytes": self._device.aside(),
        }

    @property
    def resident_bytes(self) -> int:
        """The highest peak of the resident memory."""
        return self._resident.highest

    @property
    def device_bytes(self) -> int | None:
        """The highest peak of the device memory; None if it is not known."""
        return self._device.highest or None

    def records(self) -> list[dict[str, Any]]:
        """Return the name and the peaks of every phase, as in the event `memory`."""
        return [{"name": name, **values} for name, values in self.phases.items()]


class _Peak:
    """One peak: `read` returns its bytes; `restart` begins it again and returns whether it could."""

    def __init__(self, read: Callable[[], int | None], restart: Callable[[], bool]) -> None:
        self.highest = 0
        self._read, self._restart, self._restarted = read, restart, True

    def of_phase(self) -> int | None:
        """Return the peak since the last call; None if it is not known."""
        found = self._read()
        if found is None:
            return None
        known = self._restarted or found > self.highest
        self.highest = max(self.highest, found)
        self._restarted = bool(self._restart())
        return found if known else None

    def aside(self) -> int | None:
        """Return the peak since the last call as `of_phase` does, and leave the highest as it is."""
        highest = self.highest
        found = self.of_phase()
        self.highest = highest
        return found


def resident_bytes(process: Path = PROCESS) -> int:
    """Return the largest resident set of this process, since it began or since it was begun again."""
    try:
        status = (process / "status").read_text(encoding="utf-8")
        (peak,) = (line.split()[1] for line in status.splitlines() if line.startswith("VmHWM:"))
        return int(peak) * 1024
    except (OSError, ValueError):
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def _restart(process: Path) -> bool:
    try:
        (process / "clear_refs").write_text(RESET_PEAK, encoding="utf-8")
    except OSError:
        return False
    return True
