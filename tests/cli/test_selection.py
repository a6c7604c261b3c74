"""What several commands do with their arguments: options, folders, the screen, and a run that is refused."""

from __future__ import annotations

import argparse
import io
import json
import os
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from steelyard.cli.commands import selection
from steelyard.cli.descriptions import COMMANDS
from steelyard.cli.live import LiveScreen
from steelyard.cli.main import main
from steelyard.cli.parser import parser
from steelyard.console import Screen
from steelyard.errors import ResumableError, UserError
from steelyard.plan import resolve
from steelyard.plan.options import Options

if TYPE_CHECKING:
    from steelyard.plan.run_plan import RunPlan


def arguments(*argv: str) -> argparse.Namespace:
    return parser(list(argv)).parse_args(list(argv))


@pytest.fixture
def plan() -> RunPlan:
    """A plan of one scripted framework."""
    return resolve.plan(
        Options(
            workloads=("line",), frameworks=("fake",), workload_folders=(str(Path(__file__).parents[1] / "workloads"),)
        )
    )


def test_without_arguments_every_option_has_its_default() -> None:
    assert selection.options_of(arguments("run")) == Options()


def test_arguments_become_options_of_the_same_name() -> None:
    typed = (
        "lstm-kernels -w a -w b:tiny -f jax --threads 1,default --batch 4 --env mine=/opt/python --no-certify --seed 3"
    )
    assert selection.options_of(arguments("run", *typed.split(), "--no-guard", "--minutes", "0")) == Options(
        study="lstm-kernels",
        workloads=("a", "b:tiny"),
        frameworks=("jax",),
        threads=(1, 0),
        batches=(4,),
        external={"mine": "/opt/python"},
        certify=False,
        guard=False,
        minutes=0.0,
        seeds=(3,),
    )


def test_a_command_with_fewer_arguments_has_the_defaults_of_the_others() -> None:
    found = selection.options_of(argparse.Namespace(workloads=["a"]))
    assert found == Options(workloads=("a",))


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_names_its_module_and_explains_its_arguments(
    command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        arguments(command, "--help")
    assert ended.value.code == 0
    shown = capsys.readouterr().out
    assert shown.startswith(f"usage: steelyard {command}")
    assert "None" not in shown


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_prints_json_for_scripts(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        arguments(command, "--help")
    assert "--json" in capsys.readouterr().out


def test_a_script_and_a_new_workload_are_plain_values_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["slurm-script", "--nodes", "3", "--minutes", "7.5", "--json", "--", "first-look"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["nodes"], found["minutes"]) == (3, 8)
    assert found["script"].startswith("#!")
    assert main(["new", "workload", "mine", "--into", str(tmp_path), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["folder"] == str(tmp_path / "mine")
    assert {"spec.toml", "network.py"} <= set(found["files"])
    assert all((tmp_path / "mine" / name).is_file() for name in found["files"])
    assert found["certify"] == f"steelyard certify --workloads {tmp_path} -w mine:tiny"


@pytest.mark.parametrize("command", ["report", "history", "compare"])
def test_a_page_is_not_written_to_a_file_of_another_kind(command: str) -> None:
    more = ("a", "b") if command == "compare" else ()
    for name in ("x.csv", "x", "x.json", "x.html.csv"):
        with pytest.raises(UserError, match=rf"--output {name}: a page is HTML, so its name must end with \.html\."):
            arguments(command, *more, "--output", name)
    assert arguments(command, *more, "--output", "x.HTML").output == "x.HTML"


def test_an_unknown_argument_ends_with_two(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises((SystemExit, UserError)) as ended:
        arguments("run", "--frobnicate")
    code = ended.value.code if isinstance(ended.value, SystemExit) else ended.value.exit_code
    assert code == 2


def test_options_of_the_selection_are_fields_of_options() -> None:
    """What is parsed and then dropped would be an option without effect."""
    chosen = set(vars(arguments("certify"))) - {"module", "command", "version"}
    apart = {"all", "full", "fresh", "json", "plain", "runs", "silence_s", "wait_minutes", "no_wait"}
    assert chosen - {field.name for field in fields(Options)} <= apart


def test_the_folder_of_runs_is_absolute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("STEELYARD_RUNS", str(tmp_path / "data"))
    assert selection.runs_of(argparse.Namespace(runs="mine")) == tmp_path / "mine"
    assert selection.runs_of(argparse.Namespace(runs=None)) == tmp_path / "data" / "runs"


def test_the_live_view_is_for_terminals(monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    assert type(selection.screen_of(argparse.Namespace(plain=False))) is Screen
    monkeypatch.setattr("sys.stderr", Terminal())
    assert type(selection.screen_of(argparse.Namespace(plain=True))) is Screen
    assert isinstance(selection.screen_of(argparse.Namespace(plain=False)), LiveScreen)


def test_a_run_that_is_refused_leaves_no_folder(plan: RunPlan, tmp_path: Path) -> None:
    with pytest.raises(UserError), selection.begun(plan, tmp_path, "name") as folder:
        assert folder.is_dir()
        raise UserError("This machine is too small.")
    assert [path for path in tmp_path.iterdir() if path.is_dir()] == []


@pytest.mark.parametrize("ended", [ResumableError("The disk is full."), KeyboardInterrupt()])
def test_a_run_that_can_be_continued_keeps_its_folder(plan: RunPlan, tmp_path: Path, ended: BaseException) -> None:
    with pytest.raises(type(ended)), selection.begun(plan, tmp_path, "name"):
        raise ended
    (folder,) = tmp_path.glob("*-name*")
    assert (folder / "run.json").is_file()


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may write everywhere")
def test_a_cache_that_cannot_be_written_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "cache").mkdir(mode=0o500)
    monkeypatch.setenv("STEELYARD_CACHE", str(tmp_path / "cache"))
    with pytest.raises(UserError, match="cannot be written"):
        selection.check_cache()


def test_a_cache_below_a_file_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("STEELYARD_CACHE", str(tmp_path / "file" / "cache"))
    with pytest.raises(UserError, match="cannot be written"):
        selection.check_cache()


def test_tables_have_complete_names_and_a_line_for_each_value_of_a_list(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    selection.print_rows([{"name": "n" * 50, "values": ["first", "second"]}])
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["name", "values"]
    assert sum(line.count("n") for line in lines[1:]) == 50 + "second".count("n")
    assert [word for line in lines for word in line.split() if word in ("first", "second")] == ["first", "second"]


def test_json_is_for_scripts(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    selection.print_json({"folder": tmp_path, "values": [1.5, None]})
    assert json.loads(capsys.readouterr().out) == {"folder": str(tmp_path), "values": [1.5, None]}
