"""The facts of this machine, which are stored with results."""

import hashlib
import json
import platform
import sys
from dataclasses import asdict, dataclass, field
from pathlib import Path

from steelyard.host import processor, virtualisation
from steelyard.host.limits import control_group_limits
from steelyard.host.resources import other, usable_cores

LINUX_ONLY = ("caches", "cpu_flags", "cpu_limit_cores", "governor", "memory_limit_bytes", "numa_nodes", "virtualised")


@dataclass(frozen=True)
class Machine:
    """Facts of one machine. None or empty: not reported by the system; `unknown` gives the reason.

    `cpu_limit_cores` and `memory_limit_bytes` are limits of control groups. `caches` are total bytes by level.
    """

    cpu_model: str
    cores_physical: int | None
    cores_logical: int
    cores_usable: int
    memory_bytes: int
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
        """Return a hash (16 hexadecimal digits) that changes when speed or noise may change.

        Compiled code is kept under it, and a run can be continued only on a machine with the same one.
        """
        facts = asdict(self)
        del facts["unknown"]
        # Virtual machines get slightly different memory at each start, and kernels are patched often.
        facts["memory_bytes"] = round(self.memory_bytes / 2**30)
        facts["kernel"] = ".".join(self.kernel.split(".")[:2])
        return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()[:16]


def describe(root: Path = Path("/")) -> Machine:
    """Return the facts of this machine; `root` is the folder in which /proc and /sys are read."""
    # Imported here, because their libraries take longer to load than all other modules of this package.
    import psutil

    from steelyard.host import gpu, npu

    cpu_model, cpu_flags = processor.model_and_flags(root)
    cpu_limit_cores, memory_limit_bytes = control_group_limits(root)
    physical, logical = psutil.cpu_count(logical=False), psutil.cpu_count() or 1
    governor = processor.governor(root)
    return Machine(
        cpu_model=cpu_model,
        cores_physical=physical,
        cores_logical=logical,
        cores_usable=usable_cores(),
        memory_bytes=int(psutil.virtual_memory().total),
        architecture=platform.machine(),
        system=_system(),
        kernel=platform.release(),
        smt=None if physical is None else logical > physical,
        caches=processor.caches(root),
        numa_nodes=processor.numa_nodes(root),
        cpu_limit_cores=cpu_limit_cores,
        memory_limit_bytes=memory_limit_bytes,
        cpu_flags=cpu_flags,
        governor=governor,
        virtualised=virtualisation.hypervisor(root) if "hypervisor" in cpu_flags else "",
        container=virtualisation.container(root),
        gpus=gpu.names(),
        npus=npu.names(),
        unknown=_unknown(governor),
    )


def _system() -> str:
    try:
        return platform.freedesktop_os_release()["PRETTY_NAME"]
    except OSError:
        return platform.platform(terse=True) if sys.platform == "darwin" else platform.system()


def _unknown(governor: str) -> dict[str, str]:
    if not sys.platform.startswith("linux"):
        return dict.fromkeys(LINUX_ONLY, f"not read on {platform.system() or 'this system'}")
    return {} if governor else {"governor": "the system has no frequency control"}


def accelerators(device: str) -> tuple[str, ...]:
    """Return the names of this machine's accelerators that frameworks call `device`; empty for the CPU."""
    from steelyard.host import gpu, npu

    if machine := other():
        return machine.accelerators.get(device, ())
    known = {"cuda": gpu.names, "ascend": npu.names}
    return known[device]() if device in known else ()
