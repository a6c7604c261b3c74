"""Runs that were made by an installation of steelyard which is elsewhere now."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from steelyard.catalog import workloads
from steelyard.cli.commands import run
from steelyard.errors import UserError
from steelyard.measure.launch import worker_hash
from steelyard.plan import resolve
from steelyard.plan.options import Options
from steelyard.results import record


def test_a_run_of_a_moved_installation_is_continued_with_the_present_one(tmp_path: Path) -> None:
    plan = resolve.plan(Options(workloads=("resnet18:tiny",), frameworks=("pytorch",)))
    record.write(tmp_path, record.new(plan, "steelyard run", worker_hash()))
    path = tmp_path / record.FILE
    raw = json.loads(path.read_text())
    raw["plan"]["workload_folders"]["resnet18"] = "/elsewhere/steelyard_worker/workloads/resnet18"
    path.write_text(json.dumps(raw))
    assert run.continuable(tmp_path).plan.workload_folders == {"resnet18": str(workloads.BUILT_IN / "resnet18")}
    raw["plan"]["workload_hashes"]["resnet18"] = "0" * 16
    path.write_text(json.dumps(raw))
    with pytest.raises(UserError, match=r"^The files of resnet18 have changed .* so it cannot be explained\."):
        run.continuable(tmp_path, done="explained")
