"""The largest batch within a memory limit: processes that use more are ended, and the result is known to an eighth."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from finished_runs import WORKLOADS

if TYPE_CHECKING:
    from finished_runs import Steelyard

pytestmark = pytest.mark.end_to_end

MB = 10**6


def test_the_largest_batch_uses_no_more_than_the_limit_and_the_next_one_does_not_fit(steelyard: Steelyard) -> None:
    """A sample of 10,000 features takes 40 kB, and the framework keeps a copy of each batch."""
    done = steelyard(
        "run",
        "-w",
        "line",
        "-f",
        "fake",
        "--workloads",
        str(WORKLOADS),
        "--set",
        "features=10000",
        "--no-guard",
        "--plain",
        "--no-certify",
        "--json",
        "--protocol",
        "largest-batch:2",
        "--memory-limit",
        "400MB",
    )
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    (comparison,) = result["comparisons"]
    (contender,) = comparison["contenders"]
    folder = Path(result["folder"])
    (trial,) = folder.glob("trials/*/job.json")
    schedule = json.loads(trial.read_text())["schedule"]
    assert contender["standings"]["cached"]["value"] == pytest.approx(schedule["batch"])
    assert schedule["batch"] < schedule["failed_batch"] <= 1.125 * schedule["batch"]
    assert 10 * schedule["batch"] * 10_000 * 4 > 200 * MB, "the batch takes a good part of the memory"
    assert 200 * MB < contender["peak_resident_bytes"] <= 400 * MB
    events = {path.parent.name: path.read_text() for path in folder.glob("probes/*/events.jsonl")}
    (failed,) = [text for name, text in events.items() if name.endswith(f"-batch{schedule['failed_batch']}")]
    assert '"kind": "out-of-memory"' in failed
    assert "more than its limit of 0.4 GB" in failed
    assert f"{schedule['batch']:,} [{schedule['failed_batch']:,} did not fit]" in (folder / "report.html").read_text()
