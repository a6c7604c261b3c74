"""Runs a program to its end and logs what it prints."""

import subprocess
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from threading import Timer

from steelyard.environments.install_errors import InstallError, explain, redact

Command = Sequence[str | Path]
Listener = Callable[[str], None]

DAY_S = 86_400.0


@dataclass(frozen=True)
class Log:
    """A file with everything that an installation prints, without credentials."""

    path: Path

    def begin(self) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.path.write_text("", "utf-8")

    def add(self, text: str) -> None:
        with self.path.open("a", encoding="utf-8") as stream:
            stream.write(redact(text))


def execute(
    command: Command,
    environ: dict[str, str],
    log: Log,
    listen: Listener = lambda _: None,
    limit_s: float = DAY_S,
    program: str = "uv",
) -> None:
    """Run a command to its end; each line it prints goes to the log and to `listen`. `program`: its name in messages.

    Raises `InstallError` when it cannot start, fails, or runs longer than `limit_s`.
    """
    log.add("$ " + " ".join(map(str, command)) + "\n")
    began_s = time.monotonic()
    try:
        process = subprocess.Popen(
            list(map(str, command)),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            env=environ,
            # uv must not read a pyproject.toml or uv.toml in the user's working folder.
            cwd=log.path.parent,
        )
    except OSError as error:
        raise InstallError(f"{command[0]} could not be started ({error.strerror})") from error
    with process:
        output = _follow(process, log, listen, limit_s)
    if process.returncode and time.monotonic() - began_s >= limit_s:
        raise InstallError(f"{command[0]} did not finish within {limit_s:.0f} s")
    if process.returncode:
        raise InstallError(explain(output, process.returncode, program))


def _follow(process: "subprocess.Popen[str]", log: Log, listen: Listener, limit_s: float) -> str:
    timer = Timer(limit_s, process.kill)
    timer.start()
    lines = []
    try:
        for line in process.stdout or ():
            lines.append(line)
            log.add(line)
            listen(line)
        process.wait()
    except BaseException:
        process.kill()
        raise
    finally:
        timer.cancel()
    return "".join(lines)
