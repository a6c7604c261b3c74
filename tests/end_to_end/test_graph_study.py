"""A study that counts graphs: counts and reasons on page and in the JSON, in processes that no verdict knows."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

from finished_runs import WORKLOADS

if TYPE_CHECKING:
    from finished_runs import Steelyard

STUDY = """
name = "graphs"
title = "Graphs"
question = "What is in a graph?"
version = 1

[[cells]]
workloads = ["line:small"]
frameworks = ["fake", "dummy"]
knobs = ["fake.fault=none,graph"]
protocol = "fixed:2+5"
rounds = "2"
graphs = true
"""
MORE = ("--workloads", str(WORKLOADS), "--no-guard", "--plain", "--no-certify", "--json")


def test_graphs_are_counted_once_and_a_reason_is_kept(steelyard: Steelyard, tmp_path: Path) -> None:
    path = tmp_path / "graphs.toml"
    path.write_text(STUDY)
    done = steelyard("run", str(path), *MORE)
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    found = {each["title"]: each["graph"] for each in result["comparisons"][0]["contenders"]}
    counted = [each for each in found.values() if each["stages"]]
    assert [stage["total"] for stage in counted[0]["stages"]] == [10, 4]
    assert counted[0]["stages"][0]["costs"] == {"expensive": 2, "cheap": 3, "none": 0, "not known": 5}
    reason = "The script says that there is no graph."
    assert [each["reason"] for each in found.values() if not each["stages"]].count(reason) == 1
    folder = Path(result["folder"])
    page = (folder / "report.html").read_text(encoding="utf-8")
    assert "The graph of a step" in page
    assert reason in page
    trials = sorted(path.name for path in (folder / "trials").iterdir())
    kept = {path: path.stat().st_mtime_ns for path in folder.glob("graphs/*/events.jsonl")}
    assert len(kept) == 3
    again = steelyard("run", "--resume", folder.name, "--plain")
    assert again.returncode == 0, again.stderr
    changed = [path for path, when in kept.items() if path.stat().st_mtime_ns != when]
    assert len(changed) == sum(not each["stages"] for each in found.values())
    assert sorted(path.name for path in (folder / "trials").iterdir()) == trials
