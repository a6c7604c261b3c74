"""Commands that meet another one on the machine: who waits for whom, for how long, and what is left of one that gave up."""

from __future__ import annotations

import signal
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from finished_runs import LINE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from finished_runs import CommandLine, Finished, Steelyard

pytestmark = pytest.mark.end_to_end

PATIENCE_S = 120
GUARDED = tuple(word for word in LINE if word != "--no-guard")
TWO = ("-f", "fake", "-f", "dummy")
HOLD = """
import sys, time
from steelyard.host import exclusive
with exclusive.use(print, name="other-study", command="steelyard run other-study", shared=sys.argv[1] == "certificates"):
    print(flush=True)
    time.sleep(600)
"""


@pytest.fixture(autouse=True)
def _own_locks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep what else runs on this machine out of the tests."""
    monkeypatch.setenv("STEELYARD_LOCKS", str(tmp_path))


@pytest.fixture
def hold(data_folder: Path, environ_for: Callable[..., dict[str, str]]) -> Iterator[Callable[[str], int]]:
    """Let another process have the turn of the machine, and return its id: `hold("run")`, or `hold("certificates")`."""
    held: list[subprocess.Popen[str]] = []

    def start(what: str) -> int:
        process = subprocess.Popen(
            [sys.executable, "-c", HOLD, what], env=environ_for(data_folder), stdout=subprocess.PIPE, text=True
        )
        held.append(process)
        assert process.stdout is not None
        assert process.stdout.readline() == "\n"
        return process.pid

    yield start
    for process in held:
        process.kill()
        process.communicate()


def runs_in(data_folder: Path) -> list[str]:
    return sorted(path.name for path in data_folder.glob("runs/*/") if path.name != "index.sqlite")


@pytest.mark.parametrize("what", ["run", "certify"])
def test_a_command_that_is_told_not_to_wait_names_the_holder_and_leaves_nothing(
    what: str, hold: Callable[[str], int], steelyard: Steelyard, data_folder: Path
) -> None:
    process = hold("run")
    for limit in (["--no-wait"], ["--wait", "0.001"]):
        done = steelyard(what, *GUARDED, *TWO, *limit)
        *_, last = done.stderr.splitlines()
        assert done.returncode == 2
        assert last.startswith(f"steelyard: This machine is in use by process {process} of user ")
        assert "(steelyard run other-study, since " in last
        assert last.endswith("so nothing was done.")
        assert runs_in(data_folder) == []


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("what", ["run", "certify"])
def test_a_command_that_is_stopped_while_it_waits_leaves_no_run_folder(
    what: str,
    number: signal.Signals,
    hold: Callable[[str], int],
    data_folder: Path,
    environ_for: Callable[..., dict[str, str]],
) -> None:
    hold("run")
    with subprocess.Popen(
        [sys.executable, "-m", "steelyard", what, *GUARDED, *TWO],
        env=environ_for(data_folder),
        stderr=subprocess.PIPE,
        text=True,
    ) as waiting:
        assert waiting.stderr is not None
        assert any("== Waiting for run other-study" in line for line in waiting.stderr)
        assert len(runs_in(data_folder)) == 1
        waiting.send_signal(number)
        said = waiting.stderr.read()
        assert waiting.wait(PATIENCE_S) == 130
    assert said == "steelyard: stopped.\n", "nothing was stored, so there is nothing to continue"
    assert runs_in(data_folder) == []


def test_a_run_to_be_continued_is_as_it_was_if_it_is_refused(
    copied: Finished, hold: Callable[[str], int], steelyard: Steelyard
) -> None:
    before = (copied.folder / "run.json").read_bytes()
    hold("run")
    assert steelyard("run", "--resume", copied.folder.name, "--no-wait", "--plain").returncode == 2
    assert (copied.folder / "run.json").read_bytes() == before


def test_certificates_are_made_beside_others_and_a_measurement_waits_for_them(
    hold: Callable[[str], int], steelyard: Steelyard, data_folder: Path
) -> None:
    process = hold("certificates")
    done = steelyard("certify", *GUARDED, *TWO, "--no-wait")
    assert done.returncode == 0, done.stderr
    refused = steelyard("run", *GUARDED, *TWO, "--no-wait")
    assert f"in use by process {process} of user" in refused.stderr
    assert refused.returncode == 2
    anew = steelyard("certify", *GUARDED, *TWO, "--fresh", "--no-wait")
    assert anew.returncode == 2, "another command may be reading the references that it replaces"


def test_a_scripted_framework_is_explained_beside_certificates_but_not_beside_what_is_timed(
    copied: Finished, hold: Callable[[str], int], steelyard: Steelyard
) -> None:
    explain = ("explain", "fake", "--run", copied.folder.name, "--plain", "--no-wait")
    hold("certificates")
    done = steelyard(*explain)
    assert done.returncode == 0, done.stderr
    assert "is in use" not in done.stderr


def test_what_is_timed_is_not_disturbed_by_an_explanation(
    copied: Finished, hold: Callable[[str], int], steelyard: Steelyard
) -> None:
    hold("run")
    done = steelyard("explain", "fake", "--run", copied.folder.name, "--plain", "--no-wait")
    assert "(steelyard run other-study, since " in done.stderr
    assert done.returncode == 2


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (("run", "--wait", "1", "--no-wait"), "--wait and --no-wait contradict each other"),
        (
            ("run", "--no-guard", "--wait", "1"),
            "With --no-guard a run waits for no other command, so it takes no --wait",
        ),
        (("run", "--on", "ray", "--no-wait"), "--no-wait is about this machine"),
        (("certify", "--wait", "long"), "--wait must be a number of"),
        (("explain", "--wait", "-1"), "--wait must be a number of"),
        (("advise", "--no-wait"), "--no-wait needs --tune FRAMEWORK"),
    ],
)
def test_what_contradicts_itself_is_refused(given: tuple[str, ...], said: str, cli: CommandLine) -> None:
    assert said in cli.error(*given)
