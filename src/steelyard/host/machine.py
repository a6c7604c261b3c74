"""What this machine is: read from /proc and /sys, so that a result can say where it was measured."""

import hashlib
import json
import os
import platform
import re
import shutil
import subprocess
import sys
from dataclasses import asdict, dataclass, field
from pathlib import Path

# Of a processor's flags, those that decide which kernels a numerical library picks.
TELLING_FLAGS = re.compile(
    r"^(sse4_2|avx.*|fma|f16c|amx_.*|asimd.*|sve.*|bf16|i8mm|svebf16|fphp|hypervisor)$", re.IGNORECASE
)
CONTAINERS = ("docker", "kubepods", "containerd", "libpod", "lxc", "podman")


@dataclass(frozen=True)
class Machine:
    """Facts of one machine. None or empty means that the system does not tell; `unknown` says why.

    `cpu_limit_cores` and `memory_limit_bytes` are a control group's limits. `caches` are
    bytes in all, by level.
    """

    cpu_model: str
    cores_physical: int | None
    cores_logical: int
    cores_usable: int
    memory_bytes: int | None
    architecture: str
    system: str
    kernel: str
    smt: bool | None = None
    caches: dict[str, int] = field(default_factory=dict)
    numa_nodes: int | None = None
    cpu_limit_cores: float | None = None
    memory_limit_bytes: int | None = None
    cpu_flags: tuple[str, ...] = ()
    governor: str = ""
    virtualised: str = ""
    container: str = ""
    gpus: tuple[str, ...] = ()
    npus: tuple[str, ...] = ()
    unknown: dict[str, str] = field(default_factory=dict)

    def fingerprint(self) -> str:
        """Hash (16 hexadecimal digits) that changes when speed or noise may: calibrations are kept by it."""
        facts = asdict(self)
        del facts["unknown"]
        # Virtual machines get a little more or less memory at each start; kernels change by their patches.
        facts["memory_bytes"] = round((self.memory_bytes or 0) / 2**30)
        facts["kernel"] = ".".join(self.kernel.split(".")[:2])
        return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()[:16]


@dataclass(frozen=True)
class Processor:
    """What /proc/cpuinfo says."""

    model: str
    cores_physical: int | None
    cores_logical: int
    flags: tuple[str, ...]


def describe(root: Path = Path("/")) -> Machine:
    """The facts of this machine; `root` is where /proc and /sys are looked for."""
    return _linux(root) if sys.platform.startswith("linux") else _elsewhere()


def _linux(root: Path) -> Machine:
    processor = parse_cpuinfo(_text(root / "proc/cpuinfo"))
    cpu_limit, memory_limit = control_group_limits(root)
    logical = processor.cores_logical or os.cpu_count() or 1
    physical = processor.cores_physical
    governor = _text(root / "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor").strip()
    return Machine(
        cpu_model=processor.model or platform.machine(),
        cores_physical=physical,
        cores_logical=logical,
        cores_usable=len(os.sched_getaffinity(0)),
        memory_bytes=parse_memory(_text(root / "proc/meminfo")),
        architecture=platform.machine(),
        system=_system(root),
        kernel=platform.release(),
        smt=None if physical is None else logical > physical,
        caches=_caches(root),
        numa_nodes=len(list((root / "sys/devices/system/node").glob("node[0-9]*"))) or None,
        cpu_limit_cores=cpu_limit,
        memory_limit_bytes=memory_limit,
        cpu_flags=processor.flags,
        governor=governor,
        virtualised=_hypervisor(root) if "hypervisor" in processor.flags else "",
        container=_container(root),
        gpus=gpus(),
        npus=npus(),
        unknown={} if governor else {"governor": "the system offers no frequency control here"},
    )


def _elsewhere() -> Machine:
    logical = os.cpu_count() or 1
    reason = f"not read on {platform.system() or 'this system'}"
    unread = ("cpu_flags", "governor", "numa_nodes", "virtualised", "cpu_limit_cores", "memory_limit_bytes")
    physical, memory = _asked("sysctl", "-n", "hw.physicalcpu"), _asked("sysctl", "-n", "hw.memsize")
    return Machine(
        cpu_model=_asked("sysctl", "-n", "machdep.cpu.brand_string") or platform.processor() or "unknown",
        cores_physical=int(physical) if physical.isdigit() else None,
        cores_logical=logical,
        cores_usable=logical,
        memory_bytes=int(memory) if memory.isdigit() else None,
        architecture=platform.machine(),
        system=platform.platform(terse=True),
        kernel=platform.release(),
        gpus=gpus(),
        unknown=dict.fromkeys(unread, reason),
    )


def parse_cpuinfo(text: str) -> Processor:
    """Read /proc/cpuinfo: x86 names model, cores and flags; ARM names parts and features."""
    blocks = [dict(_pairs(block)) for block in re.split(r"\n\s*\n", text) if "processor" in block]
    if not blocks:
        return Processor("", None, 0, ())
    first = blocks[0]
    model = first.get("model name") or " ".join(filter(None, (first.get("CPU implementer"), first.get("CPU part"))))
    cores = {(block["physical id"], block["core id"]) for block in blocks if "core id" in block}
    flags = (first.get("flags") or first.get("Features") or "").split()
    telling = tuple(sorted(flag for flag in flags if TELLING_FLAGS.match(flag)))
    return Processor(model, len(cores) or None, len(blocks), telling)


def parse_memory(text: str) -> int | None:
    """Bytes of memory, from /proc/meminfo."""
    found = re.search(r"^MemTotal:\s+(\d+) kB", text, re.MULTILINE)
    return int(found[1]) * 1024 if found else None


def control_group_limits(root: Path) -> tuple[float | None, int | None]:
    """The tightest limits of this process's control groups: cores and bytes, None where unlimited."""
    cores: list[float] = []
    memory: list[int] = []
    for line in _text(root / "proc/self/cgroup").splitlines():
        number, controllers, path = line.split(":", 2)
        base = root / "sys/fs/cgroup" if number == "0" else root / "sys/fs/cgroup" / controllers
        for folder in _upwards(base, path):
            cores += _cpu_limit(folder)
            memory += _memory_limit(folder)
    return min(cores, default=None), min(memory, default=None)


def _upwards(base: Path, path: str) -> list[Path]:
    folder = base / path.lstrip("/")
    return [folder, *(parent for parent in folder.parents if parent.is_relative_to(base))]


def _cpu_limit(folder: Path) -> list[float]:
    quota, _, period = _text(folder / "cpu.max").strip().partition(" ")
    if not quota:
        quota, period = (_text(folder / f"cpu.cfs_{name}_us").strip() for name in ("quota", "period"))
    return [int(quota) / int(period)] if quota.isdigit() and period.isdigit() else []


def _memory_limit(folder: Path) -> list[int]:
    said = [_text(folder / name).strip() for name in ("memory.max", "memory.limit_in_bytes")]
    # Version 1 writes "unlimited" as the largest page-aligned number.
    return [int(value) for value in said if value.isdigit() and int(value) < 2**60]


def _caches(root: Path) -> dict[str, int]:
    kinds = {"Data": "d", "Instruction": "i"}
    seen: dict[tuple[str, str], int] = {}
    for index in (root / "sys/devices/system/cpu").glob("cpu[0-9]*/cache/index*"):
        level, kind, size, shared = (
            _text(index / name).strip() for name in ("level", "type", "size", "shared_cpu_list")
        )
        if found := re.fullmatch(r"(\d+)K", size):
            seen[f"L{level}{kinds.get(kind, '')}", shared] = int(found[1]) * 1024
    totals: dict[str, int] = {}
    for (name, _), size_bytes in sorted(seen.items()):
        totals[name] = totals.get(name, 0) + size_bytes
    return totals


def _system(root: Path) -> str:
    named = dict(line.partition("=")[::2] for line in _text(root / "etc/os-release").splitlines() if "=" in line)
    return named.get("PRETTY_NAME", platform.system()).strip('"')


def _hypervisor(root: Path) -> str:
    told = [_text(root / "sys/class/dmi/id" / name).strip() for name in ("sys_vendor", "product_name")]
    return " ".join(filter(None, told)) or _text(root / "sys/hypervisor/type").strip() or "yes"


def _container(root: Path) -> str:
    if (root / ".dockerenv").exists():
        return "docker"
    if (root / "run/.containerenv").exists():
        return "podman"
    groups = _text(root / "proc/self/cgroup")
    return next((name for name in CONTAINERS if name in groups), "")


def gpus() -> tuple[str, ...]:
    """NVIDIA GPUs as `name, memory, driver`; empty without nvidia-smi."""
    query = ("--query-gpu=name,memory.total,driver_version", "--format=csv,noheader")
    return tuple(line.strip() for line in _asked("nvidia-smi", *query).splitlines() if line.strip())


def npus() -> tuple[str, ...]:
    """Ascend processors, one line each of `npu-smi info -l`; empty without npu-smi."""
    found = re.findall(r"NPU ID\s*:\s*(\d+)", _asked("npu-smi", "info", "-l"))
    return tuple(f"Ascend NPU {number}" for number in found)


def _asked(program: str, *arguments: str) -> str:
    path = shutil.which(program)
    if not path:
        return ""
    try:
        done = subprocess.run([path, *arguments], capture_output=True, text=True, timeout=10, check=False)
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""


def _pairs(block: str) -> list[tuple[str, str]]:
    split = (line.partition(":") for line in block.splitlines())
    return [(key.strip(), value.strip()) for key, colon, value in split if colon]


def _text(path: Path) -> str:
    try:
        return path.read_text("utf-8", "replace")
    except OSError:
        return ""
