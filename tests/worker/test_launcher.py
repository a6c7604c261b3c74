"""The launcher of ranks, as a process: what it starts, how it ends, and that it leaves nothing behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

import steelyard_worker

LAUNCHER = Path(steelyard_worker.__file__).parent / "launcher.py"
# Writes its rank or role into a file of the folder, then does what the variable of that name says.
CHILD = """
import os, sys, time
from pathlib import Path
name = os.environ.get("STEELYARD_ROLE") or os.environ["STEELYARD_RANK"]
Path(name).write_text(str(os.getpid()))
exec(os.environ.get("DO_" + name, "pass"))
"""


def run(folder: Path, what: str, count: int, **doing: str) -> subprocess.CompletedProcess[str]:
    """Run the launcher to its end."""
    return subprocess.run(
        command(what, count), cwd=folder, env=environ(doing), capture_output=True, text=True, timeout=60, check=False
    )


def command(what: str, count: int) -> list[str]:
    """Return the command line of the launcher."""
    return [sys.executable, "-I", str(LAUNCHER), what, str(count), sys.executable, "-c", CHILD]


def environ(doing: dict[str, str]) -> dict[str, str]:
    """Return the variables that say what each child does."""
    return os.environ | {f"DO_{name}": text for name, text in doing.items()}


def started(folder: Path) -> dict[str, int]:
    """Return the process number of every child that has started, by rank or role."""
    return {path.name: int(text) for path in folder.iterdir() if (text := path.read_text())}


def alive(folder: Path) -> list[str]:
    """Return the children that still run."""
    return [name for name, pid in started(folder).items() if psutil.pid_exists(pid)]


def test_every_rank_and_role_is_started(tmp_path: Path) -> None:
    until_all_have_started = (
        "while not all(Path(name).exists() for name in ('0', '1', '2', 'server')): time.sleep(0.01)"
    )
    ranks = dict.fromkeys("012", until_all_have_started)  # the launcher ends the server as soon as the ranks have ended
    done = run(tmp_path, "ranks+server", 3, **ranks, server="time.sleep(60)")
    assert done.returncode == 0
    assert sorted(started(tmp_path)) == ["0", "1", "2", "server"]
    assert not alive(tmp_path)


def test_a_rank_that_fails_ends_the_others_and_is_named(tmp_path: Path) -> None:
    done = run(tmp_path, "ranks+server", 2, **{"0": "time.sleep(60)", "1": "sys.exit(4)", "server": "time.sleep(60)"})
    assert done.returncode == 1
    assert done.stdout == "Rank 1 ended with exit code 4.\n"
    assert not alive(tmp_path)


def test_a_rank_that_is_killed_is_named(tmp_path: Path) -> None:
    done = run(tmp_path, "ranks", 2, **{"1": "os.kill(os.getpid(), 9)", "0": "time.sleep(60)"})
    assert (done.returncode, done.stdout) == (1, "Rank 1 was ended by signal 9.\n")


def test_a_full_disk_of_any_rank_is_passed_on(tmp_path: Path) -> None:
    done = run(tmp_path, "ranks", 2, **{"0": "sys.exit(4)", "1": "time.sleep(0.5); sys.exit(5)"})
    assert done.returncode == 5


def test_a_server_that_fails_ends_the_ranks(tmp_path: Path) -> None:
    done = run(tmp_path, "ranks+server", 1, **{"0": "time.sleep(60)", "server": "sys.exit(3)"})
    assert (done.returncode, done.stdout) == (1, "The process 'server' beside the ranks ended with exit code 3.\n")
    assert not alive(tmp_path)


# Instead of entering a namespace: writes into the file "entered" which it was, and runs the command where it is.
IP = """\
#!/bin/sh
echo "$1 $2 $3" >> entered
shift 3
exec "$@"
"""


def test_a_launcher_reaches_other_hosts_by_a_program_that_takes_the_place_of_ssh(tmp_path: Path) -> None:
    programs = tmp_path / "programs"
    programs.mkdir()
    (programs / "ip").write_text(IP)
    (programs / "ip").chmod(0o755)
    inner = "cd / > /dev/null 2>&1 ; env WORD='two  words' sh -c 'echo \"$WORD\" && pwd && exit 3'"
    before, after = (
        ("-o", "PasswordAuthentication=no", "-o", "A=b"),
        ("-p", "22", "-i", "key", "-o", "ConnectTimeout=3"),
    )
    reaching = ["sh", "-c", 'command -v ssh > found; exec ssh "$@"', "sh", *before, "second", *after, inner]
    variables = {"PATH": f"{programs}:{os.environ['PATH']}", "STEELYARD_HOSTS": "first second"}
    done = subprocess.run(
        [sys.executable, "-I", str(LAUNCHER), "ssh", "2", *reaching],
        cwd=tmp_path,
        env=os.environ | variables,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.stdout == "two  words\n/\nThe launcher ended with exit code 3.\n"
    assert done.returncode == 1
    assert (tmp_path / "entered").read_text() == "netns exec first\nnetns exec second\n"
    program = Path((tmp_path / "found").read_text().strip())
    assert program.name == "ssh"
    assert not program.parent.exists()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_ranks_end_with_their_launcher(tmp_path: Path, number: signal.Signals) -> None:
    dying = "import ctypes; ctypes.CDLL(None).prctl(1, 9); time.sleep(60)"  # as every worker does
    launcher = subprocess.Popen(command("ranks", 2), cwd=tmp_path, env=environ({"0": dying, "1": dying}))
    waited(lambda: len(started(tmp_path)) == 2)
    time.sleep(0.3)
    launcher.send_signal(number)
    launcher.wait(20)
    waited(lambda: not alive(tmp_path))


def test_a_launcher_of_a_framework_takes_its_place(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-I", str(LAUNCHER), "become", sys.executable, "-c", "print('own')"],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, "own\n")


def test_a_missing_launcher_is_named(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-I", str(LAUNCHER), "become", "no-such-launcher"],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        check=False,
    )
    assert (done.returncode, done.stdout) == (
        119,
        "The launcher no-such-launcher could not be started (No such file or directory).\n",
    )


def waited(holds: object, longest_s: float = 20.0) -> None:
    """Wait until a condition holds."""
    deadline = time.monotonic() + longest_s
    while not holds():  # type: ignore[operator]
        assert time.monotonic() < deadline
        time.sleep(0.05)
