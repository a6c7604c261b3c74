"""`steelyard run --profiles`: contenders are profiled after the rounds, and no profile can touch a verdict."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING

from finished_runs import LINE

if TYPE_CHECKING:
    from pathlib import Path

    from finished_runs import CommandLine

CONTENDERS = ("-f", "fake", "-f", "dummy", "--no-certify", "--rounds", "2")


def test_profiles_are_planned_taken_and_resumed(cli: CommandLine, data_folder: Path) -> None:
    code, out, _ = cli("run", *LINE, *CONTENDERS, "--profiles", "2", "--dry-run")
    assert code == 0
    assert "more for profiles" in " ".join(out.split())
    code, _, err = cli("run", *LINE, *CONTENDERS, "--profiles", "2", "--json")
    assert code == 0, err
    (folder,) = (each.parent for each in data_folder.glob("**/run.json"))
    known = json.loads((folder / "run.json").read_text())
    assert known["plan"]["options"]["profiles"] == 2
    assert known["seconds"]["profiles"] > 0
    taken = sorted(folder.glob("profiles/*"))
    assert [each.name.partition("-")[0] for each in taken] == ["1", "1", "2", "2"]
    assert [json.loads((each / "job.json").read_text())["round"] for each in taken] == [1, 1, 2, 2]
    shutil.rmtree(taken[2])
    before = [(each / "events.jsonl").stat().st_mtime_ns for each in taken if each != taken[2]]
    code, _, err = cli("run", "--resume", "latest", "--plain")
    assert code == 0, err
    assert (taken[2] / "events.jsonl").exists()
    assert [(each / "events.jsonl").stat().st_mtime_ns for each in taken if each != taken[2]] == before


def test_a_profile_that_fails_leaves_the_run_complete(cli: CommandLine, data_folder: Path) -> None:
    code, out, err = cli(
        "run", *LINE, *CONTENDERS, "--profiles", "1", "--knob", "fake.profiler_fault=unsupported", "--plain"
    )
    assert code == 0, err
    assert "could not be profiled" in " ".join((out + err).split())
    (folder,) = (each.parent for each in data_folder.glob("**/run.json"))
    assert json.loads((folder / "run.json").read_text())["state"] == "complete"
    _, out, _ = cli("report", "--json")
    assert json.loads(out)["comparisons"][0]["verdicts"] is not None


def test_a_number_of_profiles_that_makes_no_sense_is_refused(cli: CommandLine) -> None:
    assert "from 0 to 20" in cli.error("run", *LINE, "--profiles", "21")
