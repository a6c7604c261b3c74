"""Whether this is a virtual machine or a container, and of which kind."""

from pathlib import Path

from steelyard.host.system import read

CONTAINERS = ("docker", "kubepods", "containerd", "libpod", "lxc", "podman")


def hypervisor(root: Path) -> str:
    """Return the vendor and product of a virtual machine; "yes" if they are unknown."""
    parts = [read(root / "sys/class/dmi/id" / name).strip() for name in ("sys_vendor", "product_name")]
    return " ".join(filter(None, parts)) or read(root / "sys/hypervisor/type").strip() or "yes"


def container(root: Path) -> str:
    """Return the kind of container this process runs in; empty outside of one."""
    if (root / ".dockerenv").exists():
        return "docker"
    if (root / "run/.containerenv").exists():
        return "podman"
    groups = read(root / "proc/self/cgroup")
    return next((name for name in CONTAINERS if name in groups), "")
