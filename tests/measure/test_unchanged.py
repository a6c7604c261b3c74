"""A nightly run measures only after a change of what could move a number, and says which."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from steelyard import host
from steelyard.cli.main import main
from steelyard.console import Screen
from steelyard.environments import setup
from steelyard.measure import unchanged
from steelyard.plan import resolve
from steelyard.plan.options import Options
from steelyard.results import record, run_folders
from steelyard.results.record import RunRecord

WORKLOADS = str(Path(__file__).parents[1] / "workloads")
OPTIONS = Options(workloads=("line",), frameworks=("fake", "dummy"), workload_folders=(WORKLOADS,))
PLAN = resolve.plan(OPTIONS)
OLDER, NEWER = "20260101-000000-line", "20260102-000000-line"


def made() -> dict[str, Any]:
    """Return the facts of the present environments, as run.json holds them."""
    return {name: setup.facts(each) for name, each in setup.begin(PLAN, Screen()).items()}


def measured(runs: Path, name: str = OLDER, **more: Any) -> RunRecord:
    """Write the record of a complete run of PLAN on this machine, with its present environments."""
    folder = runs / name
    folder.mkdir(parents=True)
    known = RunRecord(
        PLAN.with_inputs(lambda _: "feed0123"),
        "2026-01-01T00:00:00+00:00",
        "complete",
        "steelyard run",
        machine=host.describe().fingerprint(),
        environments=made(),
    )
    return record.write(folder, replace(known, **more))


def since(runs: Path, **options: Any) -> unchanged.Since:
    """Return what has changed for the plan with these options."""
    return unchanged.since_last(resolve.plan(replace(OPTIONS, **options)), runs, Screen())


def with_packages(**versions: str) -> dict[str, Any]:
    """Return environments of which the first one has these packages as well."""
    found = made()
    found["fake"]["packages"] = found["fake"]["packages"] | versions
    return found


def test_nothing_is_measured_again_where_nothing_has_changed(tmp_path: Path) -> None:
    measured(tmp_path)
    assert since(tmp_path) == unchanged.Since(OLDER, "")


def test_the_newest_complete_run_counts(tmp_path: Path) -> None:
    measured(tmp_path, environments=with_packages(torch="1"))
    measured(tmp_path, NEWER, created="2026-01-02T00:00:00+00:00")
    assert since(tmp_path) == unchanged.Since(NEWER, "")
    measured(tmp_path, "20260103-000000-line", created="2026-01-03T00:00:00+00:00", state="interrupted")
    (tmp_path / "20260104-000000-line").mkdir()
    (tmp_path / "20260104-000000-line" / "run.json").write_text("{")
    assert since(tmp_path) == unchanged.Since(NEWER, "")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"machine": "another"}, "There is no complete run of this plan on this machine"),
        ({"state": "interrupted"}, "There is no complete run of this plan on this machine"),
        ({"shared_machine": True}, "There is no complete run of this plan on this machine"),
        ({"method": 1}, "The method of measuring is "),
        ({"unavailable": {"dummy": "No network."}}, f"Run {OLDER} had no environment for dummy."),
    ],
)
def test_a_change_of_the_machine_the_method_or_the_run_measures_again(
    change: dict[str, Any], said: str, tmp_path: Path
) -> None:
    measured(tmp_path, **change)
    assert said in since(tmp_path).changed


def test_every_package_that_moved_is_named_up_to_three(tmp_path: Path) -> None:
    measured(tmp_path, environments=with_packages(one="1"))
    assert since(tmp_path).changed == f"Since run {OLDER}: one 1 -> none."
    measured(
        tmp_path, NEWER, created="2026-01-02T00:00:00+00:00", environments=with_packages(a="1", b="1", c="1", d="1")
    )
    assert since(tmp_path).changed == f"Since run {NEWER}: a 1 -> none, b 1 -> none, c 1 -> none and 1 more."


def test_other_files_under_the_same_versions_measure_again(tmp_path: Path) -> None:
    found = made()
    found["fake"]["contents"] = "0123"
    measured(tmp_path, environments=found)
    assert since(tmp_path).changed == f"Since run {OLDER}: other installed files of fake."


def test_changed_files_of_a_workload_measure_again(tmp_path: Path) -> None:
    measured(tmp_path, plan=replace(PLAN, workload_hashes={"line": "before"}))
    assert since(tmp_path).changed == f"The files of line have changed since run {OLDER}."


@pytest.mark.parametrize("options", [{"batches": (8,)}, {"rounds": "5"}, {"frameworks": ("fake",)}, {"certify": False}])
def test_another_plan_is_measured(options: dict[str, Any], tmp_path: Path) -> None:
    measured(tmp_path)
    assert "There is no complete run of this plan" in since(tmp_path, **options).changed


def test_the_command_says_so_in_one_sentence_and_ends_with_0(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    measured(tmp_path)
    asked = [
        "run",
        "-w",
        "line",
        "-f",
        "fake",
        "-f",
        "dummy",
        "--workloads",
        WORKLOADS,
        "--runs",
        str(tmp_path),
        "--plain",
    ]
    capsys.readouterr()
    assert main([*asked, "--if-changed"]) == 0
    sentence = f"Nothing that could move a number has changed since run {OLDER}, so nothing was measured.\n"
    assert capsys.readouterr().out == sentence
    assert run_folders.names(tmp_path) == [OLDER]
    assert main([*asked, "--if-changed", "--dry-run"]) == 2
    assert "it takes neither --resume nor --dry-run" in capsys.readouterr().err
