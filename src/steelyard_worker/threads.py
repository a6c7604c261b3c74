"""How many threads of this process compute, for adapters whose framework cannot say how many it uses (Linux)."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

TASKS = Path("/proc/self/task")
# A thread that only waits or wakes others takes less than this share of the CPU time of the busiest one.
LEAST_SHARE = 0.1


def computing(work: Callable[[], object]) -> int:
    """Do some work, and return how many threads of this process computed meanwhile; 0 where the system does not tell.

    A thread counts if it took a tenth of the CPU time of the busiest one. So the work must be one that a framework divides
    equally, such as a large matrix product, and take some tenths of a second. Source: `schedstat` in proc(5), nanoseconds.
    """
    before = _cpu_ns()
    work()
    taken = [now - before.get(task, 0) for task, now in _cpu_ns().items()]
    most = max(taken, default=0)
    return sum(ns > LEAST_SHARE * most for ns in taken)


def _cpu_ns() -> dict[str, int]:
    """Return the CPU time of every thread by its id; threads that end meanwhile are left out."""
    found = {}
    for folder in TASKS.glob("*"):
        try:
            found[folder.name] = int((folder / "schedstat").read_text(encoding="ascii").split()[0])
        except (OSError, ValueError, IndexError):
            continue
    return found
