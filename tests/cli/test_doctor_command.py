"""What `steelyard doctor` does before its checks, which run at once."""

from __future__ import annotations

import argparse
from typing import Any

import pytest

from steelyard.cli.commands import doctor
from steelyard.errors import UserError


def test_what_uv_is_found_with_is_there_before_two_checks_look_for_it_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[str] = []
    monkeypatch.setattr(doctor.sysconfig, "get_config_vars", lambda: done.append("variables"))
    monkeypatch.setattr(doctor.doctor, "examine", lambda: done.append("checks") or [])
    nothing: dict[str, Any] = {"framework_folders": (), "workload_folders": (), "workload": "", "external": {}}
    machine = argparse.Namespace(adapter="", json=True, **nothing)
    assert doctor.execute(machine) == 0
    assert done == ["variables", "checks"]


@pytest.mark.parametrize("option", ["framework_folders", "workload_folders", "workload", "external"])
def test_what_belongs_to_an_adapter_is_refused_for_the_machine(option: str) -> None:
    given: dict[str, Any] = {"framework_folders": (), "workload_folders": (), "workload": "", "external": {}} | {
        option: ("x",)
    }
    with pytest.raises(UserError, match=r"belong to --adapter NAME\. Name the adapter to be checked\.$"):
        doctor.execute(argparse.Namespace(adapter="", json=True, **given))
