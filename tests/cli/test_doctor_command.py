"""What `steelyard doctor` does before its checks, which run at once."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from steelyard.cli.commands import doctor

if TYPE_CHECKING:
    import pytest


def test_what_uv_is_found_with_is_there_before_two_checks_look_for_it_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[str] = []
    monkeypatch.setattr(doctor.sysconfig, "get_config_vars", lambda: done.append("variables"))
    monkeypatch.setattr(doctor.doctor, "examine", lambda: done.append("checks") or [])
    machine = argparse.Namespace(adapter="", framework_folders=(), workload_folders=(), external={}, json=True)
    assert doctor.execute(machine) == 0
    assert done == ["variables", "checks"]
