"""The command line: the messages for every kind of wrong input, which creates nothing."""

from __future__ import annotations

import contextlib
import json
import shutil
import sqlite3
from typing import TYPE_CHECKING

import pytest
from finished_runs import DRY_RUN, LINE

from steelyard import host
from steelyard.catalog import frameworks
from steelyard.measure import session
from steelyard.results import removal

if TYPE_CHECKING:
    from pathlib import Path

    from finished_runs import CommandLine, Finished

pytestmark = pytest.mark.end_to_end


def test_certify_all_cannot_be_combined_with_a_workload(cli: CommandLine) -> None:
    assert "--workload cannot be combined with it" in cli.error("certify", "--all", "-w", "resnet18")


@pytest.mark.parametrize("batch", ["0", "-4"])
def test_a_batch_without_samples_is_rejected(cli: CommandLine, batch: str) -> None:
    assert "--batch must be a number of samples from 1 to" in cli.error("run", f"--batch={batch}", "--dry-run")


def test_environments_to_remove_must_be_named(cli: CommandLine) -> None:
    assert "Name the environments to remove" in cli.error("env", "remove")


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (("run", "frist-look", "--dry-run"), "There is no study 'frist-look'. Did you mean 'first-look'?"),
        (("run", "missing.toml", "--dry-run"), "missing.toml cannot be read"),
        (("run", "-w", "resnet81", "--dry-run"), "There is no workload 'resnet81'. Did you mean 'resnet18'?"),
        (
            ("run", "-w", "resnet18:cifar01", "--dry-run"),
            "Workload resnet18 has no preset 'cifar01'. Did you mean 'cifar10'?",
        ),
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
        (
            (*DRY_RUN, "--protocol", "fixed:10"),
            "There is no protocol 'fixed:10'. Known: epochs:N, epochs:N-first, fixed:WARMUP+COUNTED,",
        ),
        ((*DRY_RUN, "--protocol", "second-epoch"), "has no data set, and protocol second-epoch needs one."),
        ((*DRY_RUN, "--protocol", "epochs:20-first"), "has no data set, and protocol epochs:20-first needs one."),
        ((*DRY_RUN, "--optimizer", "sdg"), "Workload line has no optimizer 'sdg'. Did you mean 'sgd'?"),
        ((*DRY_RUN, "--device", "cuda"), "Fake has no device 'cuda' (it has cpu)."),
        ((*DRY_RUN, "--precision", "float16"), "Fake has no precision 'float16' (it has float32, float64)."),
        ((*DRY_RUN, "--rounds", "three"), "--rounds must be a number or a range such as 3-8, not 'three'."),
        (
            (*DRY_RUN, "--rounds", "5-3"),
            "--rounds 5-3: the first number must be at least 1 and no larger than the second.",
        ),
        ((*DRY_RUN, "--rounds", "3-20"), "--rounds: the sequential protocol allows at most 12 rounds, not 20"),
        ((*DRY_RUN, "--delta", "2"), "--delta must be a number between 0 and 1, such as 0.02 for 2 %, not 2."),
        ((*DRY_RUN, "--delta", "much"), "--delta must be a number between 0 and 1, such as 0.02 for 2 %, not much."),
        ((*DRY_RUN, "--batch", "many"), "--batch must be a number of samples from 1 to 10,000,000, not 'many'."),
        (
            (*DRY_RUN, "--batch", "1000000000"),
            "--batch must be a number of samples from 1 to 10,000,000, not '1000000000'.",
        ),
        (("run", "-w", "resnet18:tiny", "--batch", "10000000", "--dry-run"), "resnet18:tiny needs about"),
        ((*DRY_RUN, "--threads", "none"), "--threads must be a number from 1 to 4096, or 'default', not 'none'."),
        ((*DRY_RUN, "--threads", "100000"), "--threads must be a number from 1 to 4096, or 'default', not '100000'."),
        ((*DRY_RUN, "--minutes=-1"), "--minutes must be a number of at least 0, not '-1'."),
        ((*DRY_RUN, "--minutes", "inf"), "--minutes must be a number of at least 0, not 'inf'."),
        (
            (*DRY_RUN, "--threshold=-inf"),
            "--threshold must be values of the test metric, such as 0.9 or 0.9,0.95, not '-inf'.",
        ),
        ((*DRY_RUN, "--silence", "nan"), "--silence must be a number of seconds of at least 1, not 'nan'."),
        ((*DRY_RUN, "--silence", "0"), "--silence must be a number of seconds of at least 1, not '0'."),
        ((*DRY_RUN, "--loader-workers=-1"), "--loader-workers must be a number from 0 to 1024, not '-1'."),
        ((*DRY_RUN, "--seed=-1"), "--seed must be a whole number from 0 to 4,294,967,295, not '-1'."),
        ((*DRY_RUN, "--seed", "1e3"), "--seed must be a whole number from 0 to 4,294,967,295, not '1e3'."),
        ((*DRY_RUN, "--protocol", "fixed:0+0"), "There is no protocol 'fixed:0+0'."),
        (
            (*DRY_RUN, "--data", "/"),
            "--data has no effect, because line:small computes on random batches. Remove --data.",
        ),
        (
            ("run", "-w", "resnet18:tiny", "--data", "/", "--dry-run"),
            "Presets that read data: resnet18:cifar10, resnet18:cifar10-recipe, ",
        ),
        (
            ("run", "-w", "resnet18:cifar10", "--data", "/missing"),
            "The data folder /missing does not exist; name the folder",
        ),
        (
            ("run", "-w", "resnet18:cifar10", "--data", "/", "--synthetic"),
            "--data and --synthetic contradict each other",
        ),
        (
            ("run", "-w", "gnmt:wmt16", "--dry-run"),
            "The data set 'wmt16-en-de' is not downloaded by steelyard: put 'wmt16_de_en' (https",
        ),
        (
            ("run", "-w", "gnmt:wmt16", "--data", "/", "--dry-run"),
            "or 'wmt16_de_en/train.en' there (official source: https://www.statmt",
        ),
        (
            ("certify", "-w", "resnet18:cifar10", "--data", "/missing"),
            "The data folder /missing does not exist; name the folder",
        ),
        (
            ("run", "-w", "resnet18:tiny", "-f", "mindspore", "--device", "ascend"),
            "--device ascend: no such device was found on this",
        ),
        (("run", "--resume", ""), "There is no run in"),
        ((*DRY_RUN, "--env", "fake"), "--env must be NAME=PYTHON, such as NAME=/opt/venv/bin/python, not 'fake'."),
        ((*DRY_RUN, "--env", "fka=/usr/bin/python3"), "--env fka: 'fka' is not in this run."),
        (("run", "--workloads", "/missing", "-w", "line", "--dry-run"), "--workloads /missing: this is not a folder."),
    ],
)
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
