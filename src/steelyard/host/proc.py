"""The numbers of /proc and /sys that tell who used the processors; parsing is pure, reading is cheap."""

import os
import re
from dataclasses import dataclass
from pathlib import Path

TICKS_PER_S = os.sysconf("SC_CLK_TCK") if hasattr(os, "sysconf") else 100


@dataclass(frozen=True)
class CpuTimes:
    """Seconds since boot, summed over all processors; `busy_s` is work, without interrupts and steal."""

    busy_s: float
    interrupt_s: float
    steal_s: float
    total_s: float


def parse_stat(text: str) -> CpuTimes:
    """Read the first line of /proc/stat (proc(5)): user nice system idle iowait irq softirq steal ..."""
    numbers = [int(word) / TICKS_PER_S for word in text.split("\n", 1)[0].split()[1:9]]
    user, nice, system, _, _, irq, softirq, steal = numbers
    return CpuTimes(user + nice + system, irq + softirq, steal, sum(numbers))


def parse_process(text: str) -> tuple[int, float]:
    """Parent id and CPU seconds of one /proc/<pid>/stat, with those of children it has waited for."""
    # The name stands in brackets and may hold anything, brackets included.
    words = text[text.rindex(")") + 2 :].split()
    return int(words[1]), sum(int(word) for word in words[11:15]) / TICKS_PER_S


def parse_pressure(text: str) -> float | None:
    """Seconds in which some task waited for a processor, from /proc/pressure/cpu."""
    found = re.search(r"^some .*total=(\d+)", text, re.MULTILINE)
    return int(found[1]) / 1e6 if found else None


def parse_swapped(text: str) -> int:
    """Pages swapped in and out since boot, from /proc/vmstat."""
    return sum(int(number) for number in re.findall(r"^pswp(?:in|out) (\d+)", text, re.MULTILINE))


def available_bytes(root: Path = Path("/")) -> int:
    """Memory that a new process may take without swapping, from /proc/meminfo; 0 where the system does not tell."""
    match = re.search(r"^MemAvailable:\s+(\d+) kB", read(root / "proc/meminfo"), re.MULTILINE)
    return int(match[1]) * 1024 if match else 0


def parse_load(text: str) -> float | None:
    """The one-minute load average, from /proc/loadavg."""
    words = text.split()
    return float(words[0]) if words else None


def tree_seconds(pid: int, root: Path = Path("/")) -> float:
    """CPU seconds of a process, of its living descendants, and of all that any of them has waited for.

    A descendant whose parent died before it belongs to nobody's tree any more and is not counted.
    """
    stats = (read(root / f"proc/{one}/stat") for one in descendants(pid, root))
    return sum(parse_process(stat)[1] for stat in stats if stat)


def descendants(pid: int, root: Path = Path("/")) -> set[int]:
    """A process and all that it started, as far as their parents live."""
    # Not every kernel lists children; the scan of all processes costs more the more there are.
    table = None if _tells_children(pid, root) else _children_by_parent(root)
    found: set[int] = set()
    waiting = [pid]
    while waiting:
        one = waiting.pop()
        found.add(one)
        waiting += _children(one, root) if table is None else table.get(one, [])
    return found


def _tells_children(pid: int, root: Path) -> bool:
    return (root / f"proc/{pid}/task/{pid}/children").exists()


def _children(pid: int, root: Path) -> list[int]:
    try:
        threads = os.listdir(root / f"proc/{pid}/task")  # noqa: PTH208
    except OSError:
        return []
    told = (read(root / f"proc/{pid}/task/{thread}/children") for thread in threads)
    return [int(child) for text in told for child in text.split()]


def _children_by_parent(root: Path) -> dict[int, list[int]]:
    children: dict[int, list[int]] = {}
    for path in (root / "proc").glob("[0-9]*/stat"):
        if stat := read(path):
            children.setdefault(parse_process(stat)[0], []).append(int(path.parent.name))
    return children


def frequency_mhz(root: Path = Path("/")) -> float | None:
    """Mean of the processors' present frequencies; None where the system hides them (virtual machines)."""
    paths = (root / "sys/devices/system/cpu").glob("cpu[0-9]*/cpufreq/scaling_cur_freq")
    found = [int(text) / 1000 for path in paths if (text := read(path).strip()).isdigit()]
    return sum(found) / len(found) if found else None


def throttles(root: Path = Path("/")) -> int | None:
    """How often a processor or its package was slowed for its heat since boot; None where not told."""
    paths = (root / "sys/devices/system/cpu").glob("cpu[0-9]*/thermal_throttle/*_throttle_count")
    found = [int(text) for path in paths if (text := read(path).strip()).isdigit()]
    return sum(found) if found else None


def read(path: Path) -> str:
    """A file's text, or nothing when it is not there (any more)."""
    try:
        with open(path, encoding="utf-8", errors="replace") as stream:  # noqa: PTH123
            return stream.read()
    except OSError:
        return ""
