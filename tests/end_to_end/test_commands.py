"""The command line: help, lists, plans, comparisons, and the messages for every kind of wrong input."""

from __future__ import annotations

import argparse
import contextlib
import json
import shutil
import sqlite3
from typing import TYPE_CHECKING

import pytest
from finished_runs import LINE

from steelyard import host
from steelyard.catalog import frameworks
from steelyard.cli.arguments import parser
from steelyard.measure import session
from steelyard.results import removal
from steelyard_worker.protocol import METHOD

if TYPE_CHECKING:
    from pathlib import Path

    from finished_runs import CommandLine, Finished, Steelyard

pytestmark = pytest.mark.end_to_end

COMMANDS = ("run", "certify", "report", "compare", "list", "new", "runs", "env", "cache", "doctor")
DRY_RUN = ("run", *LINE, "-f", "fake", "--dry-run")


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
        "line:small/fake/scripted": (True, 1), "line:small/dummy/scripted": (True, 1),
    }  # fmt: skip


def test_certify_all_cannot_be_combined_with_a_workload(cli: CommandLine) -> None:
    assert "--workload cannot be combined with it" in cli.error("certify", "--all", "-w", "resnet18")


@pytest.mark.parametrize("batch", ["0", "-4"])
def test_a_batch_without_samples_is_rejected(cli: CommandLine, batch: str) -> None:
    assert "--batch must be a number of samples from 1 to" in cli.error("run", f"--batch={batch}", "--dry-run")


def test_environments_to_remove_must_be_named(cli: CommandLine) -> None:
    assert "Name the environments to remove" in cli.error("env", "remove")


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
        heading = lines.index(f"line:small,batch={batch}: 27 parameters, batch {batch}, about 3 ms a step")
        assert [line.split() for line in lines[heading + 1 : heading + 5]] == [
            ["framework", "mode"], ["Fake,", "step_us", "1", "scripted"], ["Fake,", "step_us", "2", "scripted"], [],
        ]  # fmt: skip


def test_the_default_study_compares_the_frameworks_on_two_networks(cli: CommandLine) -> None:
    _, out, _ = cli("run", "--dry-run", "--json")
    plan = json.loads(out)
    measured = {case["framework"] for case in plan["cases"]}
    assert len(measured) >= 3
    assert {case["case"].partition("/")[0] for case in plan["cases"]} == {"resnet18:digits", "lstm-imdb:reviews"}
    assert not {"fake", "dummy"} & measured


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (("run", "frist-look", "--dry-run"), "There is no study 'frist-look'. Did you mean 'first-look'?"),
        (("run", "missing.toml", "--dry-run"), "missing.toml cannot be read"),
        (("run", "-w", "resnet81", "--dry-run"), "There is no workload 'resnet81'. Did you mean 'resnet18'?"),
        (("run", "-w", "resnet18:cifar01", "--dry-run"), "Workload resnet18 has no preset 'cifar01'. Did you mean 'cifar10'?"),
        (("run", "-f", "pytroch", "--dry-run"), "There is no framework 'pytroch'. Did you mean 'pytorch'?"),
        ((*DRY_RUN, "--mode", "fake=scriptd"), "Fake has no mode 'scriptd'. Did you mean 'scripted'?"),
        ((*DRY_RUN, "--mode", "scripted"), "--mode scripted: write FRAMEWORK=MODE, such as fake=scripted."),
        ((*DRY_RUN, "--mode", "fak=scripted"), "'fak' is not in this run. Did you mean 'fake'?"),
        ((*DRY_RUN, "--knob", "fake.nois=0.1"), "Fake has no knob 'nois'. Did you mean 'noise'?"),
        ((*DRY_RUN, "--knob", "nois=0.1"), "No framework of this run has a knob 'nois'. Did you mean 'noise'?"),
        ((*DRY_RUN, "--knob", "fake.fault=hangs"), "Fake: knob fault must be one of none, hang"),
        ((*DRY_RUN, "--knob", "fake.noise=much"), "Knob noise must be a finite number such as 0.0, not 'much'."),
        ((*DRY_RUN, "--knob", "fake.noise=nan"), "Knob noise must be a finite number such as 0.0, not 'nan'."),
        ((*DRY_RUN, "--knob", "fake.noise=0.1,-inf"), "Knob noise must be a finite number such as 0.0, not '-inf'."),
        ((*DRY_RUN, "--knob", "fake.noise=1e999"), "Knob noise must be a finite number such as 0.0, not '1e999'."),
        ((*DRY_RUN, "--knob", "fake.step_us=nan"), "Knob step_us must be a whole number such as 10000, not 'nan'."),
        ((*DRY_RUN, "--knob", "noise"), "--knob noise: write FRAMEWORK.KNOB=VALUE or KNOB=VALUE."),
        ((*DRY_RUN, "--knob", "dummy.noise=0.1"), "'dummy' is not in this run."),
        ((*DRY_RUN, "--protocol", "secnd-epoch"), "There is no protocol 'secnd-epoch'. Did you mean 'second-epoch'?"),
        ((*DRY_RUN, "--protocol", "fixed:10"), "There is no protocol 'fixed:10'. Known: epochs:N, epochs:N-first, fixed:WARMUP+COUNTED,"),
        ((*DRY_RUN, "--protocol", "second-epoch"), "has no data set, and protocol second-epoch needs one."),
        ((*DRY_RUN, "--protocol", "epochs:20-first"), "has no data set, and protocol epochs:20-first needs one."),
        ((*DRY_RUN, "--optimizer", "sdg"), "Workload line has no optimizer 'sdg'. Did you mean 'sgd'?"),
        ((*DRY_RUN, "--device", "cuda"), "Fake has no device 'cuda' (it has cpu)."),
        ((*DRY_RUN, "--precision", "float16"), "Fake has no precision 'float16' (it has float32, float64)."),
        ((*DRY_RUN, "--rounds", "three"), "--rounds must be a number or a range such as 3-8, not 'three'."),
        ((*DRY_RUN, "--rounds", "5-3"), "--rounds 5-3: the first number must be at least 1 and no larger than the second."),
        ((*DRY_RUN, "--rounds", "3-20"), "--rounds: the sequential protocol allows at most 12 rounds, not 20"),
        ((*DRY_RUN, "--delta", "2"), "--delta must be a number between 0 and 1, such as 0.02 for 2 %, not 2."),
        ((*DRY_RUN, "--delta", "much"), "--delta must be a number between 0 and 1, such as 0.02 for 2 %, not much."),
        ((*DRY_RUN, "--batch", "many"), "--batch must be a number of samples from 1 to 10,000,000, not 'many'."),
        ((*DRY_RUN, "--batch", "1000000000"), "--batch must be a number of samples from 1 to 10,000,000, not '1000000000'."),
        (("run", "-w", "resnet18:tiny", "--batch", "10000000", "--dry-run"), "resnet18:tiny needs about"),
        ((*DRY_RUN, "--threads", "none"), "--threads must be a number from 1 to 4096, or 'default', not 'none'."),
        ((*DRY_RUN, "--threads", "100000"), "--threads must be a number from 1 to 4096, or 'default', not '100000'."),
        ((*DRY_RUN, "--minutes=-1"), "--minutes must be a number of at least 0, not '-1'."),
        ((*DRY_RUN, "--minutes", "inf"), "--minutes must be a number of at least 0, not 'inf'."),
        ((*DRY_RUN, "--threshold=-inf"), "--threshold must be values of the test metric, such as 0.9 or 0.9,0.95, not '-inf'."),
        ((*DRY_RUN, "--silence", "nan"), "--silence must be a number of seconds of at least 1, not 'nan'."),
        ((*DRY_RUN, "--silence", "0"), "--silence must be a number of seconds of at least 1, not '0'."),
        ((*DRY_RUN, "--loader-workers=-1"), "--loader-workers must be a number from 0 to 1024, not '-1'."),
        ((*DRY_RUN, "--seed=-1"), "--seed must be a whole number from 0 to 4,294,967,295, not '-1'."),
        ((*DRY_RUN, "--seed", "1e3"), "--seed must be a whole number from 0 to 4,294,967,295, not '1e3'."),
        ((*DRY_RUN, "--protocol", "fixed:0+0"), "There is no protocol 'fixed:0+0'."),
        ((*DRY_RUN, "--data", "/"), "--data has no effect, because line:small computes on random batches. Remove --data."),
        (("run", "-w", "resnet18:tiny", "--data", "/", "--dry-run"), "Presets that read data: resnet18:cifar10, resnet18:digits"),
        (("run", "-w", "resnet18:cifar10", "--data", "/missing"), "The data folder /missing does not exist; name the folder"),
        (("run", "-w", "resnet18:cifar10", "--data", "/", "--synthetic"), "--data and --synthetic contradict each other"),
        (("run", "-w", "gnmt:wmt16", "--dry-run"), "The data set 'wmt16-en-de' is not downloaded by steelyard: put 'wmt16_de_en' (https"),
        (("run", "-w", "gnmt:wmt16", "--data", "/", "--dry-run"), "or 'wmt16_de_en/train.en' there (official source: https://www.statmt"),
        (("certify", "-w", "resnet18:cifar10", "--data", "/missing"), "The data folder /missing does not exist; name the folder"),
        (("run", "-w", "resnet18:tiny", "-f", "mindspore", "--device", "ascend"), "--device ascend: no such device was found on this"),
        (("run", "--resume", ""), "There is no run in"),
        ((*DRY_RUN, "--env", "fake"), "--env must be NAME=PYTHON, such as NAME=/opt/venv/bin/python, not 'fake'."),
        ((*DRY_RUN, "--env", "fka=/usr/bin/python3"), "--env fka: 'fka' is not in this run."),
        (("run", "--workloads", "/missing", "-w", "line", "--dry-run"), "--workloads /missing: this is not a folder."),
    ],
)  # fmt: skip
def test_wrong_input_gives_one_line_with_a_hint_and_creates_nothing(
    argv: tuple[str, ...], message: str, cli: CommandLine, data_folder: Path
) -> None:
    found = cli.error(*argv)
    assert message in found
    assert found.startswith("steelyard: ")
    assert not data_folder.exists()


def test_a_study_whose_name_leaves_the_folder_of_runs_writes_nothing(
    cli: CommandLine, data_folder: Path, tmp_path: Path
) -> None:
    study = tmp_path / "mine.toml"
    study.write_text(
        'name = "../../x"\ntitle = "Mine"\nquestion = "?"\nversion = 1\n[[cells]]\nprotocol = "fixed:1+1"\n'
        'workloads = ["line:small"]\nframeworks = ["fake"]\n'
    )
    argv = ("run", str(study), "--workloads", LINE[1], "--no-certify", "--plain")
    assert f"{study}, line 1: '../../x' is not a valid name of a study." in cli.error(*argv)
    assert not data_folder.exists()
    assert [path.name for path in tmp_path.iterdir()] == ["mine.toml"]


def test_a_workload_of_more_weights_than_fit_the_memory_is_refused_before_any_is_made(
    cli: CommandLine, data_folder: Path, cache: Path, tmp_path: Path
) -> None:
    folder = shutil.copytree(f"{LINE[1]}/line", tmp_path / "own" / "line")
    spec = folder / "spec.toml"
    spec.write_text(spec.read_text().replace("features = 8", "features = 1_000_000_000_000"))
    before = sorted((cache / "weights").glob("*"))
    message = cli.error("run", "--workloads", str(tmp_path / "own"), *LINE[2:], "-f", "fake")
    assert "line:small needs about" in message
    assert "GiB are free. No batch fits; choose another preset." in message
    assert sorted((cache / "weights").glob("*")) == before
    assert not data_folder.exists()


@pytest.mark.parametrize("command_", ["run", "certify"])
def test_a_missing_interpreter_and_a_folder_instead_of_one_are_rejected_before_anything_is_created(
    command_: str, cli: CommandLine, data_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STEELYARD_CACHE", str(tmp_path / "cache"))
    argv = (command_, "-w", "resnet18:tiny", "-f", "pytorch", "--plain", "--env")
    missing = tmp_path / "bin" / "python"
    assert f"--env pytorch={missing}: there is no such file." in cli.error(*argv, f"pytorch={missing}")
    message = cli.error(*argv, f"pytorch={tmp_path}")
    assert f"--env pytorch={tmp_path} is a folder. Name the interpreter in it" in message
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("command_", ["run", "certify"])
def test_a_device_that_this_machine_lacks_is_rejected_before_anything_is_created(
    command_: str, cli: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(host, "accelerators", lambda device: ())  # the machine of the tests may have some
    monkeypatch.setenv("STEELYARD_CACHE", str(tmp_path / "cache"))
    message = cli.error(command_, "-w", "resnet18:tiny", "-f", "pytorch", "--device", "cuda", "--plain")
    assert "--device cuda: no such device was found on this machine." in message
    assert not list(tmp_path.iterdir())


@pytest.fixture
def broken(tmp_path: Path) -> Path:
    """An interpreter that cannot be told to be broken before it is started."""
    path = tmp_path / "python"
    path.write_text("#!/bin/sh\nexit 3\n")
    path.chmod(0o755)
    return path


def _without_lock_file(folder: Path) -> tuple[str, ...]:
    """Write a framework of the user's own, which needs an interpreter; returns the arguments of a run of it."""
    shutil.copytree(frameworks.BUILT_IN / "fake", folder / "own")
    text = (folder / "own" / frameworks.FILE).read_text()
    (folder / "own" / frameworks.FILE).write_text(text.replace("scripted = true\n", ""))
    (folder / "own" / "workloads").mkdir()
    shutil.copy(f"{LINE[1]}/line/fake.py", folder / "own" / "workloads" / "line.py")
    return ("--frameworks", str(folder), *(word for word in LINE if word != "--no-guard"), "-f", "own")


@pytest.mark.parametrize("command_", ["run", "certify"])
@pytest.mark.parametrize("what", ["a broken interpreter", "no lock file"])
def test_a_command_that_is_refused_before_its_first_process_leaves_no_run(
    command_: str, what: str, broken: Path, cli: CommandLine, data_folder: Path, tmp_path: Path
) -> None:
    argv: tuple[str, ...] = ("-w", "resnet18:tiny", "-f", "pytorch", "--plain", "--env", f"pytorch={broken}")
    sentence = f"--env pytorch={broken} is not a working Python interpreter"
    if what == "no lock file":
        argv, sentence = (
            _without_lock_file(tmp_path / "frameworks"),
            "No environment could be created: Fake has no lock",
        )
    code, _, err = cli(command_, *argv)
    assert (code, sentence in err, "Traceback" in err) == (2, True, False), err
    assert [path.name for path in data_folder.glob("runs/*") if path.is_dir()] == []
    with contextlib.closing(sqlite3.connect(data_folder / "runs" / "index.sqlite")) as index:
        assert index.execute("SELECT id FROM runs").fetchall() == []
    assert cli("list", "runs", "--json")[1].strip() == "[]"


def test_after_a_refused_command_the_latest_run_is_still_the_one_before(
    broken: Path, copied: Finished, cli: CommandLine
) -> None:
    code, _, _ = cli("run", "-w", "resnet18:tiny", "-f", "pytorch", "--plain", "--env", f"pytorch={broken}")
    assert code == 2
    (row,) = json.loads(cli("list", "runs", "--json")[1])
    assert row["run"] == copied.folder.name
    assert cli("report", "latest")[1].strip().endswith(str(copied.folder / "report.html"))


def test_a_run_that_was_there_before_is_never_removed(
    broken: Path, cli: CommandLine, data_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(removal, "discard", lambda folder: None)
        cli("run", "-w", "resnet18:tiny", "-f", "pytorch", "--plain", "--env", f"pytorch={broken}")
    (run,) = data_folder.glob("runs/*/run.json")
    code, _, err = cli("run", "--resume", run.parent.name, "--plain")
    assert (code, "is not a working Python interpreter" in err) == (2, True)
    assert run.exists()


def test_a_run_that_the_user_is_told_to_continue_stays(
    cli: CommandLine, data_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session, "SPARE_BYTES", 2**60)
    code, _, err = cli("run", *LINE, "-f", "fake", "--no-certify")
    assert code == 2
    (run,) = data_folder.glob("runs/*/run.json")
    assert f"then continue with: steelyard run --resume {run.parent.name}" in err
    assert json.loads(run.read_text())["state"] == "interrupted"


def test_an_unknown_command_suggests_the_nearest(cli: CommandLine) -> None:
    assert cli.error("reprot") == "steelyard: There is no command 'reprot'. Did you mean 'report'?"


def test_an_unknown_option_is_reported_with_the_usage(cli: CommandLine) -> None:
    code, _, err = cli("run", "--framwork", "fake")
    assert code == 2
    assert err.startswith("usage: steelyard")
    assert "unrecognized arguments: --framwork" in err


def test_the_name_of_a_framework_in_place_of_a_folder_suggests_the_other_option(cli: CommandLine) -> None:
    assert cli.error("run", "--frameworks", "fake").endswith("is not a folder. Did you mean --framework fake?")


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


def test_two_results_of_a_run_are_compared_and_ambiguous_or_unknown_names_are_rejected(
    measured: Finished, cli: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STEELYARD_RUNS", str(measured.data_folder))
    full = ("fake/scripted", "dummy/scripted,step_us=12000")
    code, out, _ = cli("compare", *full)
    assert code == 0
    assert "1.20x" in out
    _, out, _ = cli("compare", *full, "--json")
    (finding,) = json.loads(out)
    assert finding["ratio"] == pytest.approx(10 / 12, rel=1e-12)
    assert "'dummy' could be any of dummy/scripted,step_us=10000, dummy/scripted,step_us=12000" in cli.error(
        "compare", "fake", "dummy"
    )
    assert "has both 'fake' and 'shame'" in cli.error("compare", "fake", "shame")


def test_two_runs_are_compared_result_by_result(copied: Finished, cli: CommandLine) -> None:
    other = copied.folder.with_name("20200101-000000-first-look")
    shutil.copytree(copied.folder, other)
    code, out, _ = cli("compare", other.name, copied.folder.name, "--json")
    assert code == 0
    findings = json.loads(out)
    assert len(findings) == 3
    for finding in findings:
        assert finding["ratio"] == pytest.approx(1.0, rel=1e-12)
        assert "no change detected" in finding["sentence"]


def _with(copied: Finished, key: str, value: object) -> str:
    """Copy a run with another value in its record; returns its name."""
    other = copied.folder.with_name("20200101-000000-first-look")
    shutil.copytree(copied.folder, other)
    path = other / "run.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), key: value}))
    return other.name


def test_runs_of_different_methods_are_not_compared(copied: Finished, cli: CommandLine) -> None:
    other = _with(copied, "method", 999)
    sentence = f"they differ in: the method of measuring (999 before, {METHOD} after"
    assert sentence in cli.error("compare", other, copied.folder.name)


def test_runs_of_different_machines_are_shown_side_by_side(copied: Finished, cli: CommandLine, tmp_path: Path) -> None:
    other = _with(copied, "machine", "0123456789abcdef")
    code, out, _ = cli("compare", other, copied.folder.name, "--output", str(tmp_path / "page.html"))
    assert code == 0
    assert "The order of contenders is the same on 2 of 2 machines: " in " ".join(out.split())
    assert "Numbers of different machines are never divided by each other" in out
    assert "% slower" not in out
    assert out.splitlines()[-1] == str(tmp_path / "page.html")
    assert "2 runs side by side" in (tmp_path / "page.html").read_text()
    code, out, _ = cli("compare", other, copied.folder.name, "--anyway")
    assert "Not comparable: the machine" in " ".join(out.split())
    assert "--output writes a page" in cli.error("compare", "fake", "dummy", "--output", "page.html")


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
