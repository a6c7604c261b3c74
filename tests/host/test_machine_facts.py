"""What this machine is, read from recorded /proc and /sys texts."""

import json
import sys
from dataclasses import asdict, replace
from pathlib import Path

import pytest
from recorded_proc import CPUINFO_ARM, CPUINFO_X86

from steelyard.host import describe
from steelyard.host.machine import control_group_limits, parse_cpuinfo, parse_memory

LINUX = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")


def write(root: Path, **texts: str) -> Path:
    """Files under a made-up root; `__` in a name stands for a slash, `_dot_` for a dot."""
    for name, text in texts.items():
        path = root / name.replace("__", "/").replace("_dot_", ".")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


def test_two_threads_on_each_core_are_told_from_cores() -> None:
    found = parse_cpuinfo(CPUINFO_X86)
    assert found.model.startswith("Intel(R) Xeon(R) Gold 6248")
    assert (found.cores_physical, found.cores_logical) == (2, 4)
    assert found.flags == ("avx", "avx2", "avx512_vnni", "avx512f", "f16c", "fma", "sse4_2")


def test_an_arm_processor_is_named_by_its_parts_and_its_cores_stay_unknown() -> None:
    found = parse_cpuinfo(CPUINFO_ARM)
    assert (found.model, found.cores_physical, found.cores_logical) == ("0x41 0xd40", None, 2)
    assert "sve" in found.flags
    assert "i8mm" in found.flags


def test_nothing_is_made_of_an_empty_cpuinfo() -> None:
    assert parse_cpuinfo("").cores_logical == 0


def test_memory_is_read_in_bytes() -> None:
    assert parse_memory("MemFree: 1 kB\nMemTotal:       24684092 kB\n") == 24684092 * 1024
    assert parse_memory("") is None


def test_a_version_2_group_limits_cores_and_memory_and_the_tightest_parent_counts(tmp_path: Path) -> None:
    root = write(
        tmp_path,
        proc__self__cgroup="0::/slice/job\n",
        sys__fs__cgroup__slice__cpu_dot_max="150000 100000\n",
        sys__fs__cgroup__slice__job__cpu_dot_max="max 100000\n",
        sys__fs__cgroup__slice__job__memory_dot_max="1048576\n",
        sys__fs__cgroup__slice__memory_dot_max="max\n",
    )
    assert control_group_limits(root) == (1.5, 1048576)


def test_a_version_1_group_without_limits_is_unlimited(tmp_path: Path) -> None:
    root = write(
        tmp_path,
        proc__self__cgroup="4:memory:/a\n1:cpu:/a\n",
        sys__fs__cgroup__cpu__a__cpu_dot_cfs_quota_us="-1\n",
        sys__fs__cgroup__cpu__a__cpu_dot_cfs_period_us="100000\n",
        sys__fs__cgroup__memory__a__memory_dot_limit_in_bytes="9223372036854771712\n",
    )
    assert control_group_limits(root) == (None, None)


def test_a_version_1_quota_is_a_limit(tmp_path: Path) -> None:
    root = write(
        tmp_path,
        proc__self__cgroup="1:cpu:/a\n",
        sys__fs__cgroup__cpu__a__cpu_dot_cfs_quota_us="50000\n",
        sys__fs__cgroup__cpu__a__cpu_dot_cfs_period_us="100000\n",
    )
    assert control_group_limits(root) == (0.5, None)


@LINUX
def test_a_made_up_machine_is_described_from_its_files(tmp_path: Path) -> None:
    root = write(
        tmp_path,
        proc__cpuinfo=CPUINFO_X86.replace("fpu vme", "fpu hypervisor"),
        proc__meminfo="MemTotal: 1048576 kB\n",
        proc__self__cgroup="0::/docker/abc\n",
        sys__devices__system__cpu__cpu0__cpufreq__scaling_governor="powersave\n",
        sys__devices__system__cpu__cpu0__cache__index0__level="1\n",
        sys__devices__system__cpu__cpu0__cache__index0__type="Data\n",
        sys__devices__system__cpu__cpu0__cache__index0__size="48K\n",
        sys__devices__system__cpu__cpu0__cache__index0__shared_cpu_list="0,2\n",
        sys__class__dmi__id__sys_vendor="QEMU\n",
    )
    machine = describe(root)
    assert machine.smt is True
    assert machine.governor == "powersave"
    assert machine.caches == {"L1d": 48 * 1024}
    assert (machine.virtualised, machine.container) == ("QEMU", "docker")
    assert machine.unknown == {}


def test_a_description_survives_json_and_says_why_something_is_unknown() -> None:
    machine = describe()
    told = json.loads(json.dumps(asdict(machine)))
    assert told["cores_logical"] >= told["cores_usable"] >= 1
    assert machine.governor or machine.unknown["governor"]


def test_the_fingerprint_is_steady_and_changes_with_what_changes_speed() -> None:
    machine = describe()
    assert machine.fingerprint() == describe().fingerprint()
    assert replace(machine, unknown={"x": "y"}).fingerprint() == machine.fingerprint()
    assert replace(machine, governor="other").fingerprint() != machine.fingerprint()
    assert replace(machine, cores_usable=99).fingerprint() != machine.fingerprint()
    assert replace(machine, gpus=("another",)).fingerprint() != machine.fingerprint()
