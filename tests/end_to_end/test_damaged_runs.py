"""Damaged files of runs: the others are used, and what is missing is measured again."""

from __future__ import annotations

import json
import re
import shutil
import sqlite3
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from finished_runs import Finished, contender

if TYPE_CHECKING:
    from collections.abc import Callable

    from finished_runs import CommandLine, Steelyard

pytestmark = pytest.mark.end_to_end


def _garbage(path: Path) -> None:
    path.write_bytes(b"this is no database" * 500)


def _truncated(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def _older(path: Path) -> None:
    with sqlite3.connect(path) as base:
        base.execute("PRAGMA user_version = 77")
    base.close()


def _locked(path: Path) -> sqlite3.Connection:
    base = sqlite3.connect(path, isolation_level=None)
    base.execute("BEGIN EXCLUSIVE")
    return base


@pytest.mark.parametrize("damage", [_garbage, _truncated, _older, _locked])
def test_a_report_does_not_depend_on_the_index(
    damage: Callable[[Path], Any], copied: Finished, cli: CommandLine
) -> None:
    holder = damage(copied.folder.parent / "index.sqlite")
    code, out, err = cli("report", "--json")
    assert (code, err) == (0, "")
    assert json.loads(out)["comparisons"] == copied.result["comparisons"]
    if holder:
        holder.close()


def test_a_corrupted_index_is_rebuilt_by_the_next_run(copied: Finished, steelyard: Steelyard) -> None:
    _garbage(copied.folder.parent / "index.sqlite")
    done = steelyard("run", "--resume", "latest", "--plain", "--json")
    assert done.returncode == 0
    assert "It was rebuilt from the event files; no data were lost." in done.stderr
    assert json.loads(done.stdout)["comparisons"] == copied.result["comparisons"]


@pytest.mark.parametrize("name", ["events.jsonl", "job.json", "samples.i64"])
def test_a_damaged_trial_is_a_warning_and_the_others_are_used(name: str, copied: Finished, cli: CommandLine) -> None:
    damaged = min(copied.folder.glob("trials/*fake*"))
    content = (damaged / name).read_bytes()
    (damaged / name).write_bytes(
        content[:-80] if name == "samples.i64" else content[:300] + b"\x00{{no\n" + content[300:]
    )
    code, out, err = cli("report", "--json")
    assert (code, err) == (0, "")
    result = json.loads(out)
    (warning,) = [each for each in result["warnings"] if each["name"] == "DamagedFile"]
    assert name in warning["sentence"]
    assert f", delete {damaged}." in warning["sentence"]
    assert contender(result, "fake/scripted")["speeds"]["cached"]["processes"] == 2
    assert contender(result, "dummy/scripted,step_us=12000")["speeds"]["cached"]["processes"] == 3
    # Terms such as "trial" are buttons on the page.
    page = re.sub(r"<[^>]+>", "", (copied.folder / "report.html").read_text())
    assert f"{damaged.name}/{name}" in page or f"Trial {damaged.name} cannot be read" in page


def test_a_run_with_damaged_files_is_continued_and_measures_again_what_is_missing(
    copied: Finished, steelyard: Steelyard
) -> None:
    damaged = min(copied.folder.glob("trials/*fake*"))
    (damaged / "events.jsonl").write_text("garbage\n")
    rounds = copied.folder / "rounds.jsonl"
    first, *others = rounds.read_text().splitlines()
    rounds.write_text("\n".join([first, '{"group": 3}', "garbage", *others]) + "\n")
    (copied.folder / "certificates.json").write_text("[]")
    done = steelyard("run", "--resume", "latest", "--plain", "--json")
    assert done.returncode == 0
    for sentence in (f"Trial {damaged.name} cannot be read", "line 2, is damaged", "line 3, is damaged"):
        assert sentence in done.stderr
    added = {path.name for path in copied.folder.glob("trials/*")} - {
        path.name for path in Path(copied.result["folder"]).glob("trials/*")
    }
    assert added == {damaged.name.replace("r01.0", "r01.1")}
    again = contender(json.loads(done.stdout), "fake/scripted")
    assert again["speeds"]["cached"]["processes"] == 3
    assert again["certificate"] == "certified"


@pytest.mark.parametrize(
    ("text", "state", "message"),
    [
        ('{"format": 1, "pl', "damaged", "is damaged"),
        ('{"format": 3, "plan": {}}', "damaged", "is damaged"),
        ('{"format": 1, "plan": {"options": {}}}', "older format", "has the older format 1"),
        ('{"format": 4}', "newer format", "has the newer format 4"),
    ],
)
def test_a_damaged_run_or_one_of_another_format_is_listed_with_its_state_and_the_others_can_be_used(
    text: str, state: str, message: str, copied: Finished, cli: CommandLine
) -> None:
    other = copied.folder.with_name("20200101-000000-first-look")
    shutil.copytree(copied.folder, other)
    (copied.folder / "run.json").write_text(text)
    states = {row["run"]: row["state"] for row in json.loads(cli("list", "runs", "--json")[1])}
    assert states == {copied.folder.name: state, other.name: "complete"}
    assert f"{copied.folder / 'run.json'} {message}" in cli.error("report", copied.folder.name)
    (copied.folder.parent / "index.sqlite").unlink()
    assert cli("report", other.name)[0] == 0
