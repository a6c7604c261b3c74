"""The doctor returns every finding within its time limit, with advice where something is wrong."""

import time
from dataclasses import replace
from pathlib import Path

import pytest

from steelyard.environments.install_errors import InstallError
from steelyard.environments.uv import Uv
from steelyard.errors import UserError
from steelyard.host import describe
from steelyard.host.noise import HostNoise
from steelyard.measure import doctor
from steelyard.measure.doctor import examine


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STEELYARD_CACHE", str(tmp_path))


def test_all_findings_are_returned_within_fifteen_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UV_DEFAULT_INDEX", "http://127.0.0.1:9/simple")
    began = time.monotonic()
    findings = examine()
    assert time.monotonic() - began < 15
    assert len({finding.name for finding in findings}) == len(findings) == 13
    for finding in findings:
        assert finding.state in ("ok", "warn", "bad")
        assert finding.sentence.endswith(".")
        assert finding.advice or finding.state == "ok", finding


def test_an_unreachable_registry_is_a_warning_with_the_reason(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("PIP_FIND_LINKS", "PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    monkeypatch.setenv("UV_DEFAULT_INDEX", "http://127.0.0.1:9/simple")
    found = doctor.registry()
    assert (found.state, "cannot be reached" in found.sentence) == ("warn", True)


def test_a_reachable_registry_is_ok(monkeypatch: pytest.MonkeyPatch) -> None:
    limits = []
    monkeypatch.setattr(Uv, "check_registry", lambda _, limit_s: limits.append(limit_s))
    assert doctor.registry().state == "ok"
    assert len(limits) == 1


def test_a_registry_that_refuses_the_credentials_is_a_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise InstallError("the registry refused the credentials")

    monkeypatch.setattr(Uv, "check_registry", refuse)
    assert "refused the credentials" in doctor.registry().sentence


def test_a_full_disk_is_bad(monkeypatch: pytest.MonkeyPatch) -> None:
    class Usage:
        free = 100_000_000

    monkeypatch.setattr(doctor.shutil, "disk_usage", lambda _: Usage)
    found = doctor.disk([])
    assert found.state == "bad"
    assert "STEELYARD_CACHE" in found.advice


def test_little_memory_a_quota_and_a_powersave_governor_are_warnings() -> None:
    machine = describe()
    assert doctor.memory(replace(machine, memory_limit_bytes=10**9)).state == "warn"
    assert doctor.memory(replace(machine, memory_bytes=10**9)).state == "warn"
    assert doctor.memory(replace(machine, memory_bytes=10**10, memory_limit_bytes=None)).state == "ok"
    assert doctor.cores(replace(machine, cpu_limit_cores=0.5)).state == "warn"
    assert doctor.governor(replace(machine, governor="powersave")).advice
    assert doctor.governor(replace(machine, governor="performance")).state == "ok"


def test_noise_is_high_low_or_unknown() -> None:
    noisy = doctor.host_noise_finding(HostNoise(seconds=5, samples=6, steal_share=0.2))
    assert (noisy.state, "20.0%" in noisy.sentence) == ("warn", True)
    assert doctor.host_noise_finding(HostNoise(seconds=5, samples=6)).state == "ok"
    unknown = doctor.host_noise_finding(HostNoise(seconds=0, samples=0, unknown={"all": "no /proc"}))
    assert (unknown.state, unknown.sentence) == ("warn", "Unknown: no /proc.")


def test_missing_tools_are_reported_with_the_command_that_installs_them(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing() -> None:
        raise UserError("uv is missing from this installation.")

    monkeypatch.setattr(doctor, "find_uv", missing)
    monkeypatch.setattr(doctor.shutil, "which", lambda _: None)
    assert (doctor.uv().state, doctor.uv().advice) == ("bad", "pip install uv")
    assert "apt install g++" in doctor.compiler().advice


def test_invalid_pip_settings_are_bad(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PIP_NO_INDEX", "perhaps")
    assert doctor.pip_settings().state == "bad"
    assert doctor.registry().state == "bad"
