"""A study of one's own with sizes: its cells, what is used again from an earlier run, and what is measured anew."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from finished_runs import LINE, WORKLOADS

if TYPE_CHECKING:
    from finished_runs import CommandLine, Steelyard

STUDY = """
name = "mine"
title = "Mine"
question = "Does the order of the frameworks depend on the batch?"
version = 1

[sizes.C]
summary = "three batches"
[sizes.Q]
summary = "two batches"

[[cells]]
workloads = ["line:small"]
frameworks = ["fake", "dummy"]
protocol = "fixed:2+5"
rounds = "2"
batches = [4, 8]

[[cells]]
sizes = ["C"]
workloads = ["line:small"]
frameworks = ["fake", "dummy"]
protocol = "fixed:2+5"
rounds = "2"
batches = [12]
"""
GROUPS = ["line:small,batch=4", "line:small,batch=8"]


@pytest.fixture
def study(tmp_path: Path) -> Path:
    path = tmp_path / "mine.toml"
    path.write_text(STUDY)
    return path


def measured(steelyard: Steelyard, study: Path, *more: str) -> tuple[dict[str, Any], str]:
    argv = ("run", str(study), "--workloads", str(WORKLOADS), "--no-guard", "--plain", "--no-certify", "--json", *more)
    done = steelyard(*argv)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout), done.stderr


def test_groups_that_an_earlier_run_measured_are_used_again_and_only_new_cells_run(
    steelyard: Steelyard, study: Path
) -> None:
    first, _ = measured(steelyard, study, "--size", "Q")
    assert [each["group"] for each in first["comparisons"]] == GROUPS
    assert [each["batch"] for each in first["comparisons"]] == [4, 8]
    second, said = measured(steelyard, study, "--size", "C")
    name = Path(first["folder"]).name
    for group in GROUPS:
        assert f"{group} was measured on {first['created'][:10]} in run {name}; --fresh measures it anew." in said
    kept = record_of(second)["reused"]
    assert kept == {group: {"run": name, "created": first["created"]} for group in GROUPS}
    assert [each["group"] for each in second["comparisons"]] == [*GROUPS, "line:small,batch=12"]
    times = [[contender["speeds"] for contender in each["contenders"]] for each in first["comparisons"]]
    assert [[contender["speeds"] for contender in each["contenders"]] for each in second["comparisons"]][:2] == times
    page = (Path(second["folder"]) / "report.html").read_text()
    assert page.count(f"in run {name}") == len(GROUPS)
    # A third run gets the rounds from the second one and still names the first.
    third, _ = measured(steelyard, study, "--size", "Q")
    assert record_of(third)["reused"] == kept


@pytest.mark.parametrize("more", [("--fresh",), ("--protocol", "fixed:2+6"), ("--seed", "2"), ("--rounds", "3")])
def test_nothing_is_used_again_if_it_was_measured_in_another_way_or_is_not_wanted(
    steelyard: Steelyard, study: Path, more: tuple[str, ...]
) -> None:
    measured(steelyard, study, "--size", "Q")
    second, _ = measured(steelyard, study, "--size", "Q", *more)
    assert record_of(second)["reused"] == {}


def test_options_make_the_same_cells_as_a_study(cli: CommandLine, study: Path) -> None:
    code, out, _ = cli("run", str(study), "--workloads", str(WORKLOADS), "--size", "Q", "--dry-run", "--json")
    assert code == 0
    _, other, _ = cli(
        "run",
        *LINE,
        "-f",
        "fake",
        "-f",
        "dummy",
        "--protocol",
        "fixed:2+5",
        "--rounds",
        "2",
        "--batch",
        "4,8",
        "--dry-run",
        "--json",
    )
    assert json.loads(out)["cases"] == json.loads(other)["cases"]


def test_the_size_is_chosen_and_said(cli: CommandLine, study: Path) -> None:
    code, out, _ = cli("run", str(study), "--workloads", str(WORKLOADS), "--dry-run")
    assert code == 0
    assert out.startswith("Size C is measured, the largest of this study. Another can be chosen with --size.")
    message = cli.error("run", str(study), "--workloads", str(WORKLOADS), "--size", "X", "--dry-run")
    assert message == "steelyard: Study mine has no size 'X'. Known: C, Q."


def record_of(result: dict[str, Any]) -> dict[str, Any]:
    return json.loads((Path(result["folder"]) / "run.json").read_text())
