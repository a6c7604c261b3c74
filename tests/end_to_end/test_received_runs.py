"""A run's folder from somebody else is data: nothing that its record names is imported or started, unless the user allows it."""

from __future__ import annotations

import json
import re
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from steelyard.cli.descriptions import COMMANDS
from steelyard.cli.main import EXIT_LEFT_OUT

if TYPE_CHECKING:
    from collections.abc import Callable

    from finished_runs import CommandLine, Finished, Steelyard

REPOSITORY = Path(__file__).resolve().parents[2]
PAGE = (REPOSITORY / "docs" / "adding-a-framework.md").read_text(encoding="utf-8")
FILE = re.compile(r"^`([\w/.]+)`[^\n]*:\n\n```(?:toml|python)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
pytestmark = pytest.mark.end_to_end

OPTIONS = ("--protocol", "fixed:1+3", "--threads", "1", "--no-guard", "--rounds", "2", "--plain")
# The commands that read runs and execute nothing of them; RUN stands for the folder of the received run, as COPY for a copy.
READING: list[tuple[str, ...]] = [
    ("report",),
    ("report", "RUN"),
    ("report", "--quantity", "peak memory", "--json"),
    ("export", "RUN", "--format", "md"),
    ("export", "--format", "json"),
    ("bundle", "RUN", "-o", "MERGED"),
    ("gallery", "RUN", "-o", "MERGED"),
    ("cite", "RUN"),
    ("advise",),
    ("advise", "--for", "speed", "--json"),
    ("compare", "fake", "plain_numpy"),
    ("compare", "RUN", "RUN", "--anyway"),
    ("compare", "RUN", "COPY", "OTHER COPY", "--json"),
    ("history",),
    ("history", "--json"),
    ("merge", "RUN", "--runs", "MERGED", "--json"),
    ("list", "runs"),
    ("runs", "list", "--json"),
    ("cache", "list"),
    ("cache", "prune"),
]
# The commands that execute what a run was measured with.
EXECUTING: list[tuple[str, ...]] = [
    ("run", "--resume", "latest", "--plain"),
    ("run", "--resume", "RUN", "--dry-run"),
    ("run", "--resume", "latest", "--dry-run", "--json"),
    ("explain", "--plain"),
    ("explain", "fake", "--run", "RUN", "--fresh", "--plain"),
    ("advise", "--tune", "fake", "--plain"),
]
NO_RUN = {"certify", "nodes", "slurm-script", "new", "port", "env", "doctor"}


@dataclass(frozen=True)
class Received:
    """A run that somebody else has made. `marker`: the file that what it names writes when it is imported or started."""

    data_folder: Path
    folder: Path
    marker: Path
    named: tuple[str, ...]

    @property
    def record(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads((self.folder / "run.json").read_text())
        return found

    def change(self, **changes: Any) -> None:
        """Replace fields of the record."""
        (self.folder / "run.json").write_text(json.dumps(self.record | changes))

    def files(self) -> dict[str, bytes]:
        """Return the contents of all its files."""
        return {str(path): path.read_bytes() for path in sorted(self.folder.rglob("*")) if path.is_file()}

    def words(self, command: tuple[str, ...]) -> list[str]:
        """Return a command with the folder of the run in it."""
        places = {"RUN": str(self.folder), "MERGED": str(self.data_folder / "merged")}
        for name in {"COPY", "OTHER COPY"} & {*command}:
            places[name] = str(shutil.copytree(self.folder, self.data_folder / "copies" / name))
        return [places.get(word, word) for word in command]


def trapped(folder: Path, marker: Path) -> tuple[str, ...]:
    """Write a workload, a framework and an interpreter that note in a file that they were executed; returns their arguments."""

    def trap(what: str) -> str:
        return f"\nwith open({str(marker)!r}, 'a') as file:\n    file.write({what + chr(10)!r})\n"

    shutil.copytree(REPOSITORY / "tests" / "workloads" / "line", folder / "workloads" / "line")
    for path in (folder / "workloads" / "line").glob("*.py"):
        path.write_text(path.read_text() + trap(f"workload {path.name}"))
    for name, text in FILE.findall(PAGE):
        path = folder / "frameworks" / "plain_numpy" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text + (trap(f"framework {name}") if name.endswith(".py") else ""))
    python = folder / "python"
    python.write_text(f'#!/bin/sh\necho interpreter >> "{marker}"\nexec "{sys.executable}" "$@"\n')
    python.chmod(0o755)
    return (
        "--workloads",
        str(folder / "workloads"),
        "--frameworks",
        str(folder / "frameworks"),
        "--env",
        f"plain_numpy={python}",
    )


@pytest.fixture(scope="session")
def sent(tmp_path_factory: pytest.TempPathFactory, shared_steelyard: Steelyard) -> Received:
    """A finished run of somebody else, with a key of their own. Tests must not change it."""
    root = tmp_path_factory.mktemp("sent")
    named, marker = trapped(root, root / "marker"), root / "marker"
    done = shared_steelyard(
        root,
        "run",
        *named,
        "-w",
        "line",
        "-f",
        "fake",
        "-f",
        "plain_numpy",
        *OPTIONS,
        "--json",
        STEELYARD_STATE=str(root / "state"),
    )
    assert done.returncode == 0, done.stderr
    assert {"workload", "framework", "interpreter"} <= {line.split()[0] for line in marker.read_text().splitlines()}
    return Received(root, Path(json.loads(done.stdout)["folder"]), marker, named)


@pytest.fixture
def received(sent: Received, data_folder: Path, cli: CommandLine) -> Received:
    """A copy of that run in the user's folder of runs."""
    del cli  # sets the folders
    sent.marker.unlink(missing_ok=True)
    folder = data_folder / "runs" / sent.folder.name
    shutil.copytree(sent.folder, folder)
    return Received(data_folder, folder, sent.marker, sent.named)


def test_every_command_is_tried() -> None:
    assert {command[0] for command in (*READING, *EXECUTING)} | NO_RUN == set(COMMANDS)


@pytest.mark.parametrize("asked", READING, ids=" ".join)
def test_reading_a_run_executes_nothing(asked: tuple[str, ...], received: Received, cli: CommandLine) -> None:
    code, _, err = cli(*received.words(asked))
    assert code == 0, err
    assert not received.marker.exists()


@pytest.mark.parametrize("asked", EXECUTING, ids=" ".join)
def test_what_the_user_did_not_start_is_not_executed(
    asked: tuple[str, ...], received: Received, cli: CommandLine
) -> None:
    before = received.files()
    message = cli.error(*received.words(asked))
    assert not received.marker.exists()
    assert received.files() == before
    assert "look through them first, and to allow exactly these, add: --workloads " in message
    for word in received.named[1::2]:
        assert word.rpartition("=")[2] in message


def test_what_is_named_on_the_command_line_is_executed(received: Received, steelyard: Steelyard) -> None:
    done = steelyard("explain", "--plain", *received.named)
    assert done.returncode == EXIT_LEFT_OUT, done.stderr  # the received framework cannot be profiled
    assert received.marker.exists()
    assert steelyard("explain", "--plain", "--fresh").returncode == 2, "explaining once allows no other time"
    done = steelyard("run", "--resume", "latest", "--plain", *received.named)
    assert done.returncode == 0, done.stderr
    done = steelyard("run", "--resume", "latest", "--plain")
    assert done.returncode == 0, f"the user has continued it: {done.stderr}"


@pytest.mark.parametrize("left_out", range(3))
def test_what_is_not_named_is_not_allowed(left_out: int, received: Received, cli: CommandLine) -> None:
    pairs = list(zip(received.named[::2], received.named[1::2], strict=True))
    given = [word for place, pair in enumerate(pairs) if place != left_out for word in pair]
    message = cli.error("explain", "--plain", *given)
    assert pairs[left_out][1].rpartition("=")[2] in message
    for place, (option, _) in enumerate(pairs):
        assert (option in message) is (place == left_out)
    assert not received.marker.exists()


@pytest.mark.parametrize("option", ["--workloads", "--frameworks", "--env"])
def test_what_the_run_does_not_have_cannot_be_named(option: str, received: Received, cli: CommandLine) -> None:
    other = "plain_numpy=/usr/bin/env" if option == "--env" else "/usr"
    message = cli.error("run", "--resume", "latest", "--plain", *received.named, option, other)
    assert message.startswith(f"steelyard: {option} {other} is not in this run")


def test_a_run_of_ones_own_that_was_moved_and_copied_goes_on(
    sent: Received, tmp_path: Path, steelyard: Steelyard, data_folder: Path
) -> None:
    state = str(sent.data_folder / "state")
    shutil.copytree(sent.folder, tmp_path / "elsewhere" / "renamed")
    moved = shutil.copytree(sent.folder, data_folder / "runs" / "moved")
    for run in (tmp_path / "elsewhere" / "renamed", moved):
        done = steelyard("explain", "--run", str(run), "--plain", STEELYARD_STATE=state)
        assert done.returncode == EXIT_LEFT_OUT, done.stderr  # as above


def _program(record: dict[str, Any], other: str) -> None:
    record["plan"]["options"]["external"]["plain_numpy"] = other


def _one_more_program(record: dict[str, Any], other: str) -> None:
    record["plan"]["options"]["external"]["fake"] = other


def _workload(record: dict[str, Any], other: str) -> None:
    record["plan"]["workload_folders"]["line"] = other


def _changed_workload(record: dict[str, Any], other: str) -> None:
    record["plan"]["workload_hashes"]["line"] = other[-16:]


def _frameworks(record: dict[str, Any], other: str) -> None:
    record["plan"]["options"]["framework_folders"] = [other]


def _changed_framework(record: dict[str, Any], other: str) -> None:
    record["plan"]["framework_hashes"]["plain_numpy"] = other[-16:]


def _machine(record: dict[str, Any], other: str) -> None:
    record["machine"] = other[-16:]


def _no_machine(record: dict[str, Any], other: str) -> None:
    del other
    record["machine"] = ""


EDITS = [
    _program,
    _one_more_program,
    _workload,
    _changed_workload,
    _frameworks,
    _changed_framework,
    _machine,
    _no_machine,
]
SENTENCES = {_machine: "was started on another machine", _no_machine: "does not say on which machine it was measured"}


@pytest.mark.parametrize("edit", EDITS, ids=lambda each: each.__name__)
def test_an_edited_record_of_ones_own_is_refused(
    edit: Callable[[dict[str, Any], str], None],
    sent: Received,
    received: Received,
    cli: CommandLine,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("STEELYARD_STATE", str(sent.data_folder / "state"))
    changed = received.record
    edit(changed, "/somewhere/else/0123456789abcdef")
    received.change(**changed)
    before = received.files()
    for command in EXECUTING:
        expected = SENTENCES.get(edit, "its record does not show that you started it with them")
        assert expected in cli.error(*received.words(command))
    assert not received.marker.exists()
    assert received.files() == before


def test_a_folder_beside_the_allowed_ones_is_refused(sent: Received, received: Received, cli: CommandLine) -> None:
    """A name of a workload that leads out of the folder of a framework's own implementations."""
    changed = received.record
    text = json.dumps(changed).replace('"workload": "line"', '"workload": "../../../line"')
    text = text.replace('"line": "', '"../../../line": "')
    (received.folder / "run.json").write_text(text)
    message = cli.error("run", "--resume", "latest", "--plain", *sent.named[2:])
    assert "'../../../line' is not a valid name of a workload" in message
    assert not received.marker.exists()


@pytest.mark.parametrize("place", ["..", "../steelyard_worker/workloads/../../trap", "line"])
def test_a_folder_that_only_looks_like_one_of_steelyard_is_not_its_own(
    place: str, received: Received, cli: CommandLine
) -> None:
    changed = received.record
    changed["plan"]["workload_folders"]["line"] = f"/x/steelyard_worker/workloads/{place}"
    received.change(**changed)
    assert "Run " in cli.error("run", "--resume", "latest", "--dry-run")
    assert not received.marker.exists()


def test_without_a_machine_a_measured_run_is_not_continued(copied: Finished, cli: CommandLine) -> None:
    path = copied.folder / "run.json"
    record = json.loads(path.read_text())
    record |= {"machine": "", "allowed": ""}
    path.write_text(json.dumps(record))
    message = cli.error("run", "--resume", "latest", "--workloads", str(REPOSITORY / "tests" / "workloads"))
    assert "does not say on which machine it was measured" in message


def test_an_older_record_is_read_and_continued_when_its_folders_are_named(
    copied: Finished, steelyard: Steelyard
) -> None:
    path = copied.folder / "run.json"
    record = json.loads(path.read_text())
    del record["allowed"]
    path.write_text(json.dumps(record))
    assert steelyard("report", "latest").returncode == 0
    assert "look through them first" in steelyard("explain", "fake", "--plain").stderr
    named = ("--workloads", str(REPOSITORY / "tests" / "workloads"))
    done = steelyard("explain", "fake", "--plain", *named)
    assert done.returncode == 0, done.stderr
