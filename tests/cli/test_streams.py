"""Commands whose standard output or standard error is closed, full, or read by nobody any more; names that are no text."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from steelyard.cli import streams
from steelyard.cli.main import EXIT_PIPE, main

REPOSITORY = Path(__file__).parents[2]
FULL = pytest.mark.skipif(not Path("/dev/full").exists(), reason="only Linux has a device that is always full")
SHOWS = (
    (),
    ("--help",),
    ("--version",),
    ("run", "--help"),
    ("list", "frameworks"),
    ("list", "presets", "--json"),
    ("list", "strategies"),
    ("runs", "list"),
    ("cache", "list"),
)
"""Commands that print by themselves, by argparse, by rich, and as JSON."""


@pytest.fixture
def shell(tmp_path: Path):
    """Run a line of a shell in which `steelyard` is the program and $CODE its exit code; returns the process."""
    env = {
        **os.environ,
        "PYTHONPATH": str(REPOSITORY / "src"),
        "STEELYARD_CACHE": str(tmp_path / "cache"),
        "STEELYARD_RUNS": str(tmp_path / "data"),
        "PYTHONWARNINGS": "",
    }

    def run(line: str, **more: str) -> subprocess.CompletedProcess[bytes]:
        program = f"steelyard() {{ '{sys.executable}' -m steelyard \"$@\"; }}; {line}"
        return subprocess.run(
            ["bash", "-c", program], env={**env, **more}, cwd=tmp_path, capture_output=True, timeout=120, check=False
        )

    return run


@pytest.mark.parametrize("command", SHOWS, ids=" ".join)
def test_a_command_whose_output_nobody_reads_ends_as_other_programs_do(shell, command: tuple[str, ...]) -> None:
    # `sleep` keeps the pipe from being read until its reader has ended.
    done = shell(f"(sleep 0.2; steelyard {' '.join(command)}; echo $? >code) | true; sleep 0.1; wait; cat code")
    assert done.stdout == f"{EXIT_PIPE}\n".encode()
    assert done.stderr == b""


@pytest.mark.parametrize("command", SHOWS, ids=" ".join)
def test_a_command_without_standard_output_says_so(shell, command: tuple[str, ...]) -> None:
    done = shell(f"steelyard {' '.join(command)} >&-")
    assert done.returncode == 2
    assert done.stderr.decode() == f"steelyard: {streams.CLOSED}\n"


@FULL
@pytest.mark.parametrize("command", [("--help",), ("list", "frameworks"), ("list", "presets", "--json")], ids=" ".join)
def test_a_full_standard_output_is_an_error(shell, command: tuple[str, ...]) -> None:
    done = shell(f"steelyard {' '.join(command)} >/dev/full")
    assert done.returncode == 2
    assert done.stderr.decode().startswith("steelyard: No space left on device.")
    assert done.stderr.count(b"\n") == 1


@pytest.mark.parametrize("where", ["&-", pytest.param("/dev/full", marks=FULL)])
def test_without_standard_error_a_command_ends_as_it_would_and_says_why_on_standard_output(shell, where: str) -> None:
    fine = shell(f"steelyard list frameworks 2>{where}")
    assert fine.returncode == 0
    assert b"pytorch" in fine.stdout
    wrong = shell(f"steelyard run no-such-study --plain 2>{where}")
    assert wrong.returncode == 2
    assert wrong.stdout.startswith(b"steelyard: ")
    assert b"no-such-study" in wrong.stdout
    assert wrong.stdout.count(b"\n") == 1


@pytest.mark.parametrize("closed", ["0<&-", "2>&-", "0<&- 2>&-"])
def test_no_file_gets_the_number_of_a_closed_stream(shell, closed: str) -> None:
    """What a process below writes to standard error would be written into that file."""
    code = "from steelyard.cli import streams; streams._fill_closed_descriptors(); print(open('x', 'w').fileno())"
    done = shell(f'{sys.executable} -c "{code}" {closed}')
    assert int(done.stdout) > 2


@pytest.mark.parametrize(
    "line",
    [
        "steelyard merge {long}",
        "steelyard report {long}",
        "steelyard runs list --runs /tmp/{long}",
        "steelyard run {long}.toml",
        "steelyard list data {long}",
        "steelyard advise --run {long}",
        "steelyard new workload a --into {long}",
        "STEELYARD_RUNS=/tmp/{long} steelyard history",
    ],
)
def test_a_name_that_is_too_long_is_one_sentence(shell, line: str) -> None:
    done = shell(line.format(long="n" * 300))
    said = done.stderr.decode()
    assert done.returncode in (0, 2)
    assert "Traceback" not in said
    assert said.count("\n") == (1 if done.returncode else 0)
    assert "isk space" not in said


@pytest.mark.parametrize(
    ("line", "what"),
    [
        ("steelyard runs list --runs $'b\\xffd'", "The argument"),
        ("STEELYARD_RUNS=$'/tmp/b\\xffd' steelyard runs list", "The folder of runs"),
        ("STEELYARD_CACHE=$'/tmp/b\\xffd' steelyard cache list", "The cache folder"),
        ("mkdir $'b\\xffd'; cd $'b\\xffd'; steelyard runs list --runs .", "The current folder"),
    ],
)
def test_a_folder_whose_name_is_no_text_is_refused(shell, line: str, what: str) -> None:
    done = shell(line)
    said = done.stderr.decode()
    assert done.returncode == 2
    assert said.startswith(f"steelyard: {what} ")
    assert "b\\udcffd" in said
    assert "is not UTF-8, which records and pages of runs must be." in said
    assert said.count("\n") == 1


def test_the_streams_are_those_of_the_caller_afterwards(capsys: pytest.CaptureFixture[str]) -> None:
    before = sys.stdout, sys.stderr
    assert main(["list", "frameworks"]) == 0
    assert (sys.stdout, sys.stderr) == before
    assert "pytorch" in capsys.readouterr().out
