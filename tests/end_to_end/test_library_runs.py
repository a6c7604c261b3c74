"""Runs and certificates that a Python program starts, with real processes of the scripted frameworks."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from finished_runs import LINE

from steelyard.cli.commands import selection
from steelyard.cli.parser import parser

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

PROGRAM = """
import json, sys
import steelyard
options = json.loads(sys.argv[1])
proved = steelyard.certify(**options)
proved.require()
run = steelyard.run(**options, rounds="2", guard=False)
pair = run.comparisons[0].ratio("fake", "dummy")
print(json.dumps({"certified": len(proved), "run": run.name, "verdict": pair.verdict, "value": pair.value,
                  "command": run.record.command, "state": run.record.state}))
"""


def options() -> dict[str, object]:
    """Return the options of LINE that `run` and `certify` share, as keywords."""
    argv = ["run", *LINE]
    asked = selection.options_of(parser(argv).parse_args(argv))
    return {
        "workloads": asked.workloads,
        "workload_folders": asked.workload_folders,
        "frameworks": ["fake", "dummy"],
        "knobs": ["fake.step_us=10000", "dummy.step_us=12000"],
    }


def test_a_program_certifies_and_measures(tmp_path: Path, environ_for: Callable[..., dict[str, str]]) -> None:
    environ = environ_for(tmp_path)
    argv = [sys.executable, "-c", PROGRAM, json.dumps(options())]
    done = subprocess.run(argv, env=environ, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert (found["certified"], found["verdict"], found["state"]) == (2, "better", "complete")
    assert found["value"] == pytest.approx(10 / 12, rel=0.01)
    assert "== Rounds" in done.stderr
    repeated = subprocess.run(
        [sys.executable, "-m", "steelyard", *found["command"].split()[1:], "--dry-run", "--json"],
        env=environ,
        capture_output=True,
        text=True,
        check=False,
    )
    assert repeated.returncode == 0, repeated.stderr


def test_a_program_learns_why_nothing_was_certified(tmp_path: Path, environ_for: Callable[..., dict[str, str]]) -> None:
    program = "import json, sys, steelyard\nsteelyard.certify(**json.loads(sys.argv[1])).require()"
    wrong = {**options(), "frameworks": ["fake"], "knobs": ["fake.fault=gradient"]}
    done = subprocess.run(
        [sys.executable, "-c", program, json.dumps(wrong)],
        env=environ_for(tmp_path),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert "steelyard" in done.stderr.splitlines()[-1]
