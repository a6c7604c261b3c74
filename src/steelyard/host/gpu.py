"""What nvidia-smi tells about other users of the GPUs and about throttling."""

import re
import shutil
import subprocess
from pathlib import Path

from steelyard.host import proc

# Bits of the active clock event reasons (NVML API reference, nvmlClocksEventReasons); the power cap (0x4) is
# a card's normal state under load, idle (0x1) and application clocks (0x2) are nobody's fault.
THROTTLES = {
    0x8: "hardware slowdown",
    0x20: "software thermal slowdown",
    0x40: "hardware thermal slowdown",
    0x80: "power brake",
}


def has_gpu() -> bool:
    """Whether nvidia-smi is there to be asked."""
    return shutil.which("nvidia-smi") is not None


def foreign_gpu_processes(own_pid: int, root: Path = Path("/")) -> list[str]:
    """`name (pid)` of each process on a GPU that this process did not start."""
    text = _smi("--query-compute-apps=pid,process_name")
    return foreign_of(parse_apps(text), proc.descendants(own_pid, root), root)


def parse_apps(text: str) -> dict[int, str]:
    """Process ids and names, from nvidia-smi's lines `pid, name`."""
    return {int(pid): name for pid, name in re.findall(r"^\s*(\d+),\s*(.*?)\s*$", text, re.MULTILINE)}


def foreign_of(apps: dict[int, str], own: set[int], root: Path = Path("/")) -> list[str]:
    """The processes that are not ours. One that is not in /proc is of another name space, where a
    container cannot tell its own processes from foreign ones, and is left out.
    """
    here = {pid: name for pid, name in apps.items() if (root / f"proc/{pid}").exists()}
    return [f"{Path(name).name} ({pid})" for pid, name in sorted(here.items()) if pid not in own]


def throttle_reasons() -> list[str]:
    """Why a GPU is being slowed at this moment, the ordinary power cap aside."""
    return parse_throttles(_smi("--query-gpu=clocks_throttle_reasons.active"))


def parse_throttles(text: str) -> list[str]:
    """Read nvidia-smi's bit masks, one line for each GPU."""
    masks = [int(mask, 16) for mask in re.findall(r"0x[0-9a-fA-F]+", text)]
    return [reason for bit, reason in THROTTLES.items() if any(mask & bit for mask in masks)]


def _smi(query: str) -> str:
    try:
        done = subprocess.run(
            ["nvidia-smi", query, "--format=csv,noheader"],
            capture_output=True,
            text=True,
            timeout=10,
            check=False,
        )
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout if done.returncode == 0 else ""
