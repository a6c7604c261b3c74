"""The command line: help, lists, plans and comparisons."""

from __future__ import annotations

import argparse
import functools
import json
from typing import TYPE_CHECKING

import pytest
from finished_runs import DRY_RUN, LINE

from steelyard.catalog import workloads
from steelyard.cli.commands import study_list
from steelyard.cli.parser import parser
from steelyard.plan import studies

if TYPE_CHECKING:
    from pathlib import Path

    from finished_runs import CommandLine, Finished, Steelyard

pytestmark = pytest.mark.end_to_end
COMMANDS = ("run", "certify", "report", "compare", "list", "new", "runs", "env", "cache", "doctor")


def test_the_help_lists_every_command_and_shows_how_to_start(steelyard: Steelyard) -> None:
    done = steelyard("--help")
    assert done.returncode == 0
    for name in COMMANDS:
        assert f"\n  {name} " in done.stdout
    assert "steelyard run --dry-run" in done.stdout


@pytest.mark.parametrize("name", COMMANDS)
def test_the_help_of_a_command_fits_the_terminal(name: str, cli: CommandLine) -> None:
    code, out, err = cli(name, "--help")
    assert (code, err) == (0, "")
    assert out.startswith(f"usage: steelyard {name}")
    assert "options:" in out
    for line in out.splitlines():
        assert len(line) <= 160
    options = [line for line in out.splitlines() if line.startswith("  -")]
    assert options


@pytest.mark.parametrize("name", COMMANDS)
def test_every_argument_of_a_command_has_a_help_text(name: str) -> None:
    (commands,) = (each for each in parser([name])._actions if isinstance(each, argparse._SubParsersAction))
    arguments = commands.choices[name]._actions
    assert len(arguments) > 1
    assert [each.dest for each in arguments if not each.help] == []


def test_the_version_is_one_line(cli: CommandLine) -> None:
    code, out, _ = cli("--version")
    assert code == 0
    assert out.startswith("steelyard ")
    assert out.count("\n") == 1


@pytest.fixture
def _planned_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let both lists of studies use the same estimates: to plan all studies takes seconds."""
    monkeypatch.setattr(study_list, "rows", functools.cache(study_list.rows))


def test_the_list_of_studies_reads_the_workloads_once(cli: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    few = dict(list(studies.all_studies().items())[:2])
    monkeypatch.setattr(studies, "all_studies", lambda: few)
    read, find = [], workloads.find
    monkeypatch.setattr(workloads, "find", lambda *asked: read.append(asked) or find(*asked))
    code, out, _ = cli("list", "studies", "--json")
    assert code == 0
    assert [row["study"] for row in json.loads(out)] == list(few)
    assert all(size["seconds"] > 0 for row in json.loads(out) for size in row["sizes"])
    assert len(read) == 1


@pytest.mark.usefixtures("_planned_once")
@pytest.mark.parametrize("what", ["frameworks", "workloads", "presets", "studies", "data", "runs", "strategies"])
def test_every_list_has_the_same_rows_as_table_and_as_json(what: str, copied: Finished, cli: CommandLine) -> None:
    code, out, _ = cli("list", what, "--json")
    assert code == 0
    rows = json.loads(out)
    assert rows
    code, table, _ = cli("list", what)
    assert code == 0
    for row in rows:
        assert str(next(iter(row.values()))) in table


def test_a_workload_of_the_user_is_listed(cli: CommandLine) -> None:
    _, out, _ = cli("list", "workloads", "--workloads", LINE[1], "--json")
    assert "line" in {row["workload"] for row in json.loads(out)}


def test_a_full_size_certificate_takes_one_step_of_a_small_batch(steelyard: Steelyard) -> None:
    names = ("-f", "fake", "-f", "dummy", "--plain", "--json")
    done = steelyard("certify", "--full", "--workloads", LINE[1], "-w", "line", *names)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert {key: (each["passed"], each["steps"]) for key, each in found.items()} == {
        "line:small/fake/scripted": (True, 1),
        "line:small/dummy/scripted": (True, 1),
    }


def test_commands_before_the_first_run_tell_how_to_start_one(cli: CommandLine) -> None:
    assert cli("list", "runs")[1].strip() == "There are no runs yet. Start with: steelyard run"
    assert cli("list", "runs", "--json")[1].strip() == "[]"
    assert "There is no run in" in cli.error("report")
    assert "Start one with: steelyard run" in cli.error("run", "--resume", "latest")


def test_a_dry_run_prints_the_plan_with_an_estimate_and_creates_nothing(cli: CommandLine, data_folder: Path) -> None:
    code, out, _ = cli(*DRY_RUN, "--knob", "step_us=1,2")
    assert code == 0
    assert "step_us 1" in out
    assert "step_us 2" in out
    assert "minutes" in out
    code, out, _ = cli(*DRY_RUN, "--json")
    assert [case["case"] for case in json.loads(out)["cases"]] == ["line:small/fake/scripted"]
    assert not data_folder.exists()


def test_a_dry_run_says_once_per_group_what_its_contenders_share(cli: CommandLine) -> None:
    _, out, _ = cli(*DRY_RUN, "--batch", "8,16", "--knob", "step_us=1,2")
    lines = [line.rstrip() for line in out.splitlines()]
    for batch in (8, 16):
        heading = lines.index(f"line:small,batch={batch}: 27 parameters, batch {batch}, about 10 ms a step")
        assert [line.split() for line in lines[heading + 1 : heading + 5]] == [
            ["framework", "mode"],
            ["Fake,", "step_us", "1", "scripted"],
            ["Fake,", "step_us", "2", "scripted"],
            [],
        ]


def test_the_default_study_compares_the_frameworks_on_two_networks(cli: CommandLine) -> None:
    _, out, _ = cli("run", "--dry-run", "--json")
    plan = json.loads(out)
    measured = {case["framework"] for case in plan["cases"]}
    assert len(measured) >= 3
    assert {case["case"].partition("/")[0] for case in plan["cases"]} == {"resnet18:digits", "lstm-imdb:reviews"}
    assert not {"fake", "dummy"} & measured


def test_without_arguments_the_help_is_printed(cli: CommandLine) -> None:
    assert cli() == cli("--help")


def test_a_study_file_of_the_user_is_run(steelyard: Steelyard, tmp_path: Path) -> None:
    study = tmp_path / "mine.toml"
    study.write_text(
        'name = "mine"\ntitle = "Mine"\nquestion = "Is Dummy as fast as Fake?"\nversion = 1\n[[cells]]\nprotocol = "fixed:2+5"\n'
        'workloads = ["line:small"]\nframeworks = ["fake", "dummy"]\n'
    )
    done = steelyard("run", str(study), "--workloads", LINE[1], "--no-certify", "--plain", "--json")
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert result["study"] == "mine"
    assert [each["speeds"]["cached"]["counted_steps"] for each in result["comparisons"][0]["contenders"]] == [5, 5]


def test_a_closed_output_pipe_ends_the_command_without_an_error(
    command: list[str], environ_for: object, copied: Finished
) -> None:
    import subprocess

    env = environ_for(copied.data_folder)  # type: ignore[operator]
    shell = f"{' '.join(command)} list frameworks --json | head -c 1"
    done = subprocess.run(["bash", "-c", shell], capture_output=True, text=True, env=env, check=False)
    assert done.stdout == "["
    assert "Traceback" not in done.stderr
    assert "Exception ignored" not in done.stderr
