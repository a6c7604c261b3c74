"""What the doctor says about each state of a machine: the complete finding, as the user reads it."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from steelyard.environments.install_errors import InstallError
from steelyard.environments.listing import CachedEnvironment
from steelyard.environments.lock import Lock
from steelyard.environments.uv import Uv
from steelyard.errors import UserError
from steelyard.host.machine import Machine
from steelyard.host.noise import HostNoise
from steelyard.measure import doctor
from steelyard.measure.doctor import Finding
from steelyard.measure.session import SPARE_BYTES

MACHINE = Machine("A CPU", 4, 8, 6, 16 * 10**9, "x86_64", "Linux", "6.1")


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STEELYARD_CACHE", str(tmp_path / "cache"))


def lock(
    framework: str, python: str = "3.10 to 3.12", version: str = "2", accelerator: str = "cpu", **facts: str
) -> Lock:
    known = {"python": python, "installed mb": "1000"}
    return Lock("stem", "", known | facts, (), framework, version, accelerator, framework, framework)


def environment(framework: str, state: Any = "ready", version: str = "2") -> CachedEnvironment:
    return CachedEnvironment(Path("/e"), framework, version, "cpu", 1_500_000_000, state, "")


def test_the_interpreter_must_be_supported_by_every_lock(monkeypatch: pytest.MonkeyPatch) -> None:
    name = f"Python {sys.version_info[0]}.{sys.version_info[1]} ({sys.executable})"
    here = f"{sys.version_info[0]}.{sys.version_info[1]}"
    monkeypatch.setattr(doctor, "read_locks", lambda: [lock("a", f"3.9 to {here}"), lock("b", f"{here} to 3.99")])
    assert doctor.python() == Finding("Python", "ok", f"{name} can create every environment.")
    locks = [lock("c", "3.9 to 3.9"), lock("a"), lock("b", "3.99 to 3.99"), lock("b", "3.98 to 3.99")]
    monkeypatch.setattr(doctor, "read_locks", lambda: [*locks[:1], lock("a", f"{here} to {here}"), *locks[2:]])
    assert doctor.python() == Finding(
        "Python",
        "warn",
        f"{name} is not a version supported by b, c.",
        "Install Python 3.11 as well; steelyard uses it if it is in PATH.",
    )


def test_uv_is_named_or_the_command_that_installs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "find_uv", lambda: Path("/bin/uv"))
    assert doctor.uv() == Finding("uv", "ok", "uv creates the environments (/bin/uv).")

    def missing() -> None:
        raise UserError("uv is missing from this installation.")

    monkeypatch.setattr(doctor, "find_uv", missing)
    assert doctor.uv() == Finding("uv", "bad", "uv is missing from this installation.", "pip install uv")


def test_the_settings_of_pip_are_listed_or_the_invalid_one_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "read_pip_settings", dict)
    monkeypatch.setattr(doctor, "describe_settings", lambda found: f"{found}" if found else "")
    assert doctor.pip_settings() == Finding("pip settings", "ok", "None; the public registry is used.")
    monkeypatch.setattr(doctor, "read_pip_settings", lambda: {"index": 1})
    assert doctor.pip_settings() == Finding("pip settings", "ok", "Found: {'index': 1}.")

    def invalid() -> None:
        raise UserError("PIP_NO_INDEX is not a truth value.")

    monkeypatch.setattr(doctor, "read_pip_settings", invalid)
    assert doctor.pip_settings() == Finding(
        "pip settings", "bad", "PIP_NO_INDEX is not a truth value.", "Correct or remove that setting or file."
    )


@pytest.mark.parametrize(
    ("error", "finding"),
    [
        (None, Finding("registry", "ok", "The package registry can be reached.")),
        (UserError("No."), Finding("registry", "bad", "No.", "Correct or remove that setting or file.")),
        (
            InstallError("it refused the credentials"),
            Finding(
                "registry",
                "warn",
                "Packages cannot be downloaded now: it refused the credentials.",
                "Existing environments keep working; new ones need a registry or a find-links folder.",
            ),
        ),
    ],
)
def test_the_registry_is_looked_up_within_eight_seconds(
    error: Exception | None, finding: Finding, monkeypatch: pytest.MonkeyPatch
) -> None:
    logs: list[Path] = []

    def check(uv: Uv, limit_s: float) -> None:
        assert limit_s == 8
        logs.append(uv.log.path)
        assert logs[-1].parent.is_dir()
        if error:
            raise error

    monkeypatch.setattr(Uv, "check_registry", check)
    assert doctor.registry() == finding
    assert not logs[0].parent.exists(), "nothing remains"


def test_the_disk_must_have_room_for_the_environments_that_are_still_to_be_created(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two of 1 GB are missing: 3 GB are asked for, as downloads and their unpacked files exist at the same time."""
    locks = [
        lock("a"),
        lock("b"),
        lock("b", version="1", **{"installed mb": "5000"}),
        lock("c"),
        lock("d", accelerator="cuda"),
    ]
    monkeypatch.setattr(doctor, "read_locks", lambda: locks)
    asked: list[Path] = []
    free = 3_000_000_000

    def usage(path: Path) -> SimpleNamespace:
        asked.append(path)
        return SimpleNamespace(free=free)

    monkeypatch.setattr(doctor.shutil, "disk_usage", usage)
    sentence = f"3 GB free for {tmp_path / 'cache'}; environments still to be created need 2.0 GB."
    assert doctor.disk([environment("a")]) == Finding("disk", "ok", sentence)
    assert asked == [tmp_path], "the cache does not exist yet"
    free -= 1
    assert doctor.disk([environment("a")]) == Finding(
        "disk", "bad", sentence, "Free some space, or set STEELYARD_CACHE to a folder on a larger disk."
    )
    assert doctor.disk([environment("a")], all_needed=False).state == "warn"
    free = SPARE_BYTES - 1
    assert doctor.disk([environment("a")], all_needed=False).state == "bad"
    everything = [environment("a"), environment("b"), environment("c")]
    assert doctor.disk(everything).state == "bad"
    free = SPARE_BYTES
    assert doctor.disk(everything).state == "ok"
    (tmp_path / "cache").mkdir()
    installed = [environment("a"), environment("b"), environment("c", version="1")]
    assert doctor.disk(installed).sentence.endswith("need 1.0 GB.")
    assert asked[-1] == tmp_path / "cache"


def test_less_than_four_gigabytes_of_memory_are_little() -> None:
    enough = replace(MACHINE, memory_bytes=4_000_000_000)
    assert doctor.memory(enough) == Finding("memory", "ok", "4 GB of memory.")
    little = replace(MACHINE, memory_limit_bytes=3_999_999_999)
    assert doctor.memory(little) == Finding("memory", "warn", "4 GB of memory.", "Use the `tiny` presets.")
    assert doctor.memory(MACHINE).sentence == "16 GB of memory."


def test_the_processors_are_named_with_a_quota_that_pauses_processes() -> None:
    assert doctor.cores(MACHINE) == Finding("cores", "ok", "A CPU: 6 of 8 logical processors on 4 cores.")
    unknown = replace(MACHINE, cores_physical=None)
    assert doctor.cores(unknown).sentence == "A CPU: 6 of 8 logical processors."
    assert doctor.cores(replace(MACHINE, cpu_limit_cores=6.0)).state == "ok"
    assert doctor.cores(replace(MACHINE, cpu_limit_cores=5.5)) == Finding(
        "cores",
        "warn",
        "A CPU: 6 of 8 logical processors on 4 cores, limited to the time of 5.5 cores by a control group.",
        "Such a quota pauses processes within a step; assign whole processors (`--cpuset-cpus`) instead.",
    )


def test_the_frequency_governor_is_judged() -> None:
    reason = "the system has no frequency control"
    assert doctor.governor(MACHINE) == Finding("frequency", "ok", f"No governor: {reason}.")
    unreadable = replace(MACHINE, unknown={"governor": "/sys cannot be read"})
    assert doctor.governor(unreadable) == Finding("frequency", "ok", "No governor: /sys cannot be read.")
    for good in ("performance", "schedutil"):
        found = doctor.governor(replace(MACHINE, governor=good))
        assert found == Finding("frequency", "ok", f"The frequency governor is `{good}`.")
    assert doctor.governor(replace(MACHINE, governor="powersave")) == Finding(
        "frequency",
        "warn",
        "The frequency governor is `powersave`.",
        "As root: cpupower frequency-set -g performance",
    )


def test_noise_of_other_programs_is_described() -> None:
    low = HostNoise(seconds=5, samples=6, foreign_cores=0.01, steal_share=0.001)
    assert doctor.host_noise_finding(low) == Finding(
        "host noise", "ok", "Low: other processes used 0.01 cores, steal was 0.1%."
    )
    high = doctor.host_noise_finding(HostNoise(seconds=5, samples=6, foreign_cores=2.0, steal_share=0.2))
    assert (high.name, high.state) == ("host noise", "warn")
    assert high.sentence.startswith("High: ")
    assert "; " in high.sentence
    assert high.sentence.endswith(".")
    assert high.advice == "Close other programs, or expect rounds to be repeated and intervals to be wide."
    unknown = HostNoise(seconds=0, samples=0, unknown={"all": "no /proc"})
    assert doctor.host_noise_finding(unknown) == Finding(
        "host noise",
        "warn",
        "Unknown: no /proc.",
        "Close other programs before measuring: disturbed rounds cannot be detected here.",
    )


def test_host_noise_is_sampled_for_two_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    slept: list[float] = []

    class Sampler:
        def __init__(self, period_s: float) -> None:
            assert period_s == 0.5

        def __enter__(self) -> Sampler:
            return self

        def __exit__(self, *_: object) -> None: ...

        def summary(self) -> HostNoise:
            return HostNoise(seconds=2, samples=4, foreign_cores=0.02)

    monkeypatch.setattr(doctor, "Sampler", Sampler)
    monkeypatch.setattr(doctor.time, "sleep", slept.append)
    assert doctor.host_noise().sentence == "Low: other processes used 0.02 cores, steal was 0.0%."
    assert 2 <= sum(slept) <= 3


@pytest.mark.parametrize(("present", "found"), [({"g++", "clang++"}, "g++"), ({"clang++"}, "clang++")])
def test_a_compiler_is_named(present: set[str], found: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor.shutil, "which", lambda name: f"/bin/{name}" if name in present else None)
    assert doctor.compiler() == Finding("compiler", "ok", f"C++ compiler found (/bin/{found}).")


def test_a_missing_compiler_is_a_warning_with_the_command_that_installs_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor.shutil, "which", lambda _: None)
    assert doctor.compiler() == Finding(
        "compiler",
        "warn",
        "No C++ compiler was found, so modes that compile at run time will fail.",
        "Install g++ (Debian, Ubuntu: apt install g++; macOS: xcode-select --install).",
    )


def test_accelerators_are_listed() -> None:
    none = Finding("accelerators", "ok", "No GPU or NPU was found; the CPU is measured.")
    assert doctor.accelerators(MACHINE) == none
    both = replace(MACHINE, gpus=("A", "B"), npus=("C",))
    assert doctor.accelerators(both) == Finding("accelerators", "ok", "A; B; C.")


def test_environments_are_listed_with_their_state_and_size(tmp_path: Path) -> None:
    assert doctor.environments([]) == Finding("environments", "ok", "None yet; the first run creates them.")
    where = tmp_path / "cache" / "environments"
    ready = [environment("a"), environment("b")]
    assert doctor.environments(ready) == Finding("environments", "ok", f"a@2, b@2 in {where} (3.0 GB).")
    assert doctor.environments([*ready, environment("c", "changed")]) == Finding(
        "environments",
        "warn",
        f"a@2, b@2, c@2 (changed) in {where} (4.5 GB).",
        "The next run checks them and rebuilds those that are damaged.",
    )


def test_prepared_data_sets_are_listed(tmp_path: Path) -> None:
    assert doctor.data() == Finding("data", "ok", "No data set is prepared yet; the first run prepares it.")
    folder = tmp_path / "cache" / "data" / "prepared"
    folder.mkdir(parents=True)
    (folder / "lock").write_text("")
    assert doctor.data().sentence.startswith("No data set is prepared yet")
    for name in ("digits", "cifar10"):
        (folder / name).mkdir()
    assert doctor.data() == Finding("data", "ok", f"Prepared: cifar10, digits in {folder}.")


def test_findings_come_in_a_fixed_order_and_noise_is_measured_when_the_other_checks_have_ended(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    names = (
        "python",
        "uv",
        "pip_settings",
        "registry",
        "disk",
        "memory",
        "cores",
        "governor",
        "host_noise",
        "compiler",
        "accelerators",
        "environments",
        "data",
    )
    done: list[str] = []
    given: dict[str, tuple[object, ...]] = {}

    def check(name: str) -> Any:
        def run(*arguments: object) -> Finding:
            done.append(name)
            given[name] = arguments
            return Finding(name, "ok", "Fine.")

        return run

    installed = [environment("a")]
    monkeypatch.setattr(doctor, "describe", lambda: MACHINE)
    monkeypatch.setattr(doctor, "list_environments", lambda: installed)
    for name in names:
        monkeypatch.setattr(doctor, name, check(name))
    assert [finding.name for finding in doctor.examine()] == list(names)
    assert done[-1] == "host_noise"
    assert given["disk"] == given["environments"] == (installed,)
    assert given["memory"] == given["cores"] == given["governor"] == given["accelerators"] == (MACHINE,)
