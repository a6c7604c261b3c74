"""Facts of a machine, read from recorded /proc and /sys texts and from this machine."""

import json
import sys
from dataclasses import asdict, replace
from pathlib import Path

import psutil
import pytest
from recorded_proc import CPUINFO_ARM, CPUINFO_X86

from steelyard.host import describe
from steelyard.host.limits import control_group_limits
from steelyard.host.processor import parse_cpuinfo

LINUX = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")


def write(root: Path, **texts: str) -> Path:
    """Write files below a root folder; `__` in a name stands for a slash, `_dot_` for a dot."""
    for name, text in texts.items():
        path = root / name.replace("__", "/").replace("_dot_", ".")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


def test_model_and_relevant_flags_of_an_x86_processor_are_read() -> None:
    model, flags = parse_cpuinfo(CPUINFO_X86)
    assert model == "Intel(R) Xeon(R) Gold 6248 CPU @ 2.50GHz"
    assert flags == ("avx", "avx2", "avx512_vnni", "avx512f", "f16c", "fma", "sse4_2")


def test_an_arm_processor_is_named_by_its_part_numbers() -> None:
    model, flags = parse_cpuinfo(CPUINFO_ARM)
    assert model == "0x41 0xd40"
    assert {"sve", "i8mm"} <= set(flags)


def test_an_empty_cpuinfo_gives_no_model_and_no_flags() -> None:
    assert parse_cpuinfo("") == ("", ())


def test_a_version_2_group_limits_cores_and_memory_and_the_tightest_parent_counts(tmp_path: Path) -> None:
    root = write(
        tmp_path,
        proc__self__cgroup="0::/slice/job\n",
        sys__fs__cgroup__slice__cpu_dot_max="150000 100000\n",
        sys__fs__cgroup__slice__job__cpu_dot_max="200000 100000\n",
        sys__fs__cgroup__slice__job__memory_dot_max="1048576\n",
        sys__fs__cgroup__slice__memory_dot_max="4194304\n",
        sys__fs__cgroup__memory_dot_max="max\n",
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
def test_a_recorded_machine_is_described_from_its_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(psutil, "cpu_count", lambda logical=True: 4 if logical else 2)
    root = write(
        tmp_path,
        proc__cpuinfo=CPUINFO_X86.replace("fpu vme", "fpu hypervisor"),
        proc__self__cgroup="0::/docker/abc\n",
        sys__devices__system__cpu__cpu0__cpufreq__scaling_governor="powersave\n",
        sys__devices__system__cpu__cpu0__cache__index0__level="1\n",
        sys__devices__system__cpu__cpu0__cache__index0__type="Data\n",
        sys__devices__system__cpu__cpu0__cache__index0__size="48K\n",
        sys__devices__system__cpu__cpu0__cache__index0__shared_cpu_list="0,2\n",
        sys__devices__system__cpu__cpu2__cache__index0__level="1\n",
        sys__devices__system__cpu__cpu2__cache__index0__type="Data\n",
        sys__devices__system__cpu__cpu2__cache__index0__size="48K\n",
        sys__devices__system__cpu__cpu2__cache__index0__shared_cpu_list="0,2\n",
        sys__class__dmi__id__sys_vendor="QEMU\n",
    )
    machine = describe(root)
    assert machine.cpu_model.startswith("Intel")
    assert (machine.cores_physical, machine.cores_logical, machine.smt) == (2, 4, True)
    assert machine.governor == "powersave"
    assert machine.caches == {"L1d": 48 * 1024}, "a cache that two processors share is counted once"
    assert (machine.virtualised, machine.container) == ("QEMU", "docker")
    assert machine.unknown == {}


def test_a_description_survives_json_and_gives_reasons_for_what_is_unknown() -> None:
    machine = describe()
    stored = json.loads(json.dumps(asdict(machine)))
    assert stored["cores_logical"] >= stored["cores_usable"] >= 1
    assert stored["memory_bytes"] > 2**28
    assert machine.governor or machine.unknown["governor"]


def test_the_fingerprint_is_stable_and_changes_with_what_changes_speed() -> None:
    machine = describe()
    assert machine.fingerprint() == describe().fingerprint()
    assert replace(machine, unknown={"x": "y"}).fingerprint() == machine.fingerprint()
    assert (
        replace(machine, memory_bytes=machine.memory_bytes // 2**30 * 2**30 + 1).fingerprint()
        == replace(machine, memory_bytes=machine.memory_bytes // 2**30 * 2**30 + 2).fingerprint()
    )
    assert replace(machine, governor="other").fingerprint() != machine.fingerprint()
    assert replace(machine, cores_usable=99).fingerprint() != machine.fingerprint()
    assert replace(machine, gpus=("another",)).fingerprint() != machine.fingerprint()
