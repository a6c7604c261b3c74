"""Facts of the processor that psutil does not have: model, instruction sets, caches, NUMA nodes, governor."""

import platform
import re
from pathlib import Path

from steelyard.host.system import output_of, read

# The flags that decide which kernels a numerical library picks; `hypervisor` marks a virtual machine.
RELEVANT_FLAGS = re.compile(
    r"^(sse4_2|avx.*|fma|f16c|amx_.*|asimd.*|sve.*|bf16|i8mm|svebf16|fphp|hypervisor)$", re.IGNORECASE
)


def model_and_flags(root: Path) -> tuple[str, tuple[str, ...]]:
    """Return the processor's model and its relevant flags, sorted; no flags where the system does not list them."""
    model, flags = parse_cpuinfo(read(root / "proc/cpuinfo"))
    return model or output_of("sysctl", "-n", "machdep.cpu.brand_string") or platform.machine(), flags


def parse_cpuinfo(text: str) -> tuple[str, tuple[str, ...]]:
    """Read the first processor of /proc/cpuinfo: x86 has a model name and flags, ARM has part numbers and features."""
    first, _, _ = text.lstrip().partition("\n\n")
    split = (line.partition(":") for line in first.splitlines())
    facts = {key.strip(): value.strip() for key, colon, value in split if colon}
    parts = (facts.get("CPU implementer"), facts.get("CPU part"))
    model = facts.get("model name") or " ".join(filter(None, parts))
    flags = (facts.get("flags") or facts.get("Features") or "").split()
    return model, tuple(sorted(flag for flag in flags if RELEVANT_FLAGS.match(flag)))


def governor(root: Path) -> str:
    """Return the first processor's frequency governor; empty where there is no frequency control."""
    return read(root / "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor").strip()


def numa_nodes(root: Path) -> int | None:
    """Return the number of NUMA nodes; None if unknown."""
    return len(list((root / "sys/devices/system/node").glob("node[0-9]*"))) or None


def caches(root: Path) -> dict[str, int]:
    """Return the total size in bytes of each kind of cache: {"L1d": ..., "L1i": ..., "L2": ..., "L3": ...}."""
    kinds = {"Data": "d", "Instruction": "i"}
    sizes: dict[tuple[str, str], int] = {}  # every processor lists a shared cache, so key it by who shares it
    for index in (root / "sys/devices/system/cpu").glob("cpu[0-9]*/cache/index*"):
        level, kind, size, shared = (
            read(index / name).strip() for name in ("level", "type", "size", "shared_cpu_list")
        )
        if found := re.fullmatch(r"(\d+)K", size):
            sizes[f"L{level}{kinds.get(kind, '')}", shared] = int(found[1]) * 1024
    totals: dict[str, int] = {}
    for (name, _), size_bytes in sorted(sizes.items()):
        totals[name] = totals.get(name, 0) + size_bytes
    return totals
