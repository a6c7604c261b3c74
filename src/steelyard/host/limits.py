"""CPU and memory limits of this process's control groups, which no library reports."""

from pathlib import Path

from steelyard.host.system import read

# Version 1 writes "unlimited" as the largest multiple of the page size that 63 bits hold.
UNLIMITED_BYTES = 2**60


def control_group_limits(root: Path) -> tuple[float | None, int | None]:
    """Return the tightest limits in cores and in bytes; None where unlimited, and where there are no control groups."""
    cores: list[float] = []
    memory: list[int] = []
    for line in read(root / "proc/self/cgroup").splitlines():
        hierarchy, controllers, path = line.split(":", 2)
        # Version 2 has one hierarchy, number 0; version 1 mounts one per set of controllers.
        base = root / "sys/fs/cgroup" if hierarchy == "0" else root / "sys/fs/cgroup" / controllers
        for folder in _with_parents(base, path):
            cores += _cpu_limit(folder)
            memory += _memory_limit(folder)
    return min(cores, default=None), min(memory, default=None)


def _with_parents(base: Path, path: str) -> list[Path]:
    folder = base / path.lstrip("/")
    return [folder, *(parent for parent in folder.parents if parent.is_relative_to(base))]


def _cpu_limit(folder: Path) -> list[float]:
    quota, _, period = read(folder / "cpu.max").strip().partition(" ")
    if not quota:
        quota, period = (read(folder / f"cpu.cfs_{name}_us").strip() for name in ("quota", "period"))
    return [int(quota) / int(period)] if quota.isdigit() and period.isdigit() else []


def _memory_limit(folder: Path) -> list[int]:
    texts = [read(folder / name).strip() for name in ("memory.max", "memory.limit_in_bytes")]
    return [int(text) for text in texts if text.isdigit() and int(text) < UNLIMITED_BYTES]
