"""Runs an installer to its end: what it prints goes to a log, to a listener, and into a sentence."""

import os
import re
import shutil
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from threading import Timer

from steelyard.environments.complaint import Complaint, explain
from steelyard.environments.pip_settings import redact

Command = Sequence[str | Path]
Listener = Callable[[str], None]


class InstallError(Exception):
    """An installer failed; `complaint` says why."""

    def __init__(self, complaint: Complaint) -> None:
        super().__init__(complaint.sentence)
        self.complaint = complaint


@dataclass(frozen=True)
class Log:
    """A file that keeps everything the installers print, credentials taken out."""

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
    limit_s: float | None = None,
) -> str:
    """Run a command to its end and return what it printed; every line goes to the log and to `listen`.

    Raises `InstallError` when it cannot start, ends with another code than 0, or takes over `limit_s`.
    """
    log.add("$ " + " ".join(map(str, command)) + "\n")
    try:
        process = subprocess.Popen(
            list(map(str, command)),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            env=environ,
            # A pyproject.toml or uv.toml in the user's working folder must not take part.
            cwd=log.path.parent,
        )
    except OSError as error:
        raise InstallError(_cannot_start(command[0], error)) from error
    with process:
        output = _follow(process, log, listen, limit_s)
    if process.returncode:
        raise InstallError(explain(output, process.returncode))
    return output


def _cannot_start(program: str | Path, error: OSError) -> Complaint:
    sentence = f"the installer {program} did not start: {error.strerror}"
    return Complaint("start", sentence, pip_may_succeed=True)


def _follow(process: "subprocess.Popen[str]", log: Log, listen: Listener, limit_s: float | None) -> str:
    timer = Timer(limit_s, process.kill) if limit_s else None
    if timer:
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
        if timer:
            timer.cancel()
    return "".join(lines)


class Downloads:
    """Counts downloaded bytes from the lines that uv and pip print, and passes them on."""

    LINE = re.compile(r"^\s*(Downloading|Downloaded) (\S+)(?: \(([\d.]+) ?([kKMG])(i?)B\))?")
    UNITS = "kMG"

    def __init__(self, tell: Callable[[str, int, int], None]) -> None:
        self._tell = tell
        self._bytes: dict[str, int] = {}
        self._done: set[str] = set()

    def listen(self, line: str) -> None:
        if re.match(r"Prepared|Installing collected", line):
            self._tell("installing", 0, 0)
        elif found := self.LINE.match(line):
            verb, name, number, unit, binary = found.groups()
            if number:
                # uv tells when a download ends; pip works one after the other and does not.
                self._done.update(self._bytes if "/" in name else ())
                scale = (1024 if binary else 1000) ** (1 + self.UNITS.index(unit.replace("K", "k")))
                self._bytes[name] = int(float(number) * scale)
            elif verb == "Downloaded":
                self._done.add(name)
            done = sum(self._bytes.get(each, 0) for each in self._done)
            self._tell("downloading", done, sum(self._bytes.values()))


def remove_folder(folder: Path) -> None:
    """Delete a folder so that no half of it can be taken for whole: first renamed, then removed."""
    if not folder.exists():
        return
    trash = folder.with_name(f".{folder.name}.removed-{os.getpid()}")
    folder.rename(trash)
    shutil.rmtree(trash)
