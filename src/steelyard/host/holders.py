"""Who has a turn of this machine: commands leave notes in their user's cache; for other users, the system names the process."""

import json
import platform
import secrets
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from datetime import datetime
from itertools import pairwise
from pathlib import Path

import psutil

from steelyard.files import atomic, paths
from steelyard_worker import records

PROGRAM = "steelyard"


@dataclass(frozen=True)
class Holder:
    """A command that has a turn. `since`: seconds since 1970; `started`: of its process; `name`: of its run, if it has one."""

    process: int
    user: str
    command: str
    since: float
    started: float
    name: str = ""

    @property
    def title(self) -> str:
        """Return `process 4711 of user anna (steelyard run first-look, since 14:05)`."""
        began = datetime.fromtimestamp(self.since).astimezone()
        today = began.date() == datetime.now().astimezone().date()
        since = f"since {began:%H:%M}" if today else f"since {began:%Y-%m-%d %H:%M}"
        return f"process {self.process} of user {self.user} ({_printable(self.command) or PROGRAM}, {since})"


@contextmanager
def noted(command: str, name: str) -> Iterator[None]:
    """Note that this process has a turn, until the end of the block. A disk that cannot be written is ignored."""
    path = _folder() / f"{secrets.token_hex(8)}.json"
    with suppress(OSError, psutil.Error):
        this = psutil.Process()
        own = Holder(this.pid, _user(this), command, time.time(), this.create_time(), name)
        paths.make_private(path.parent)
        atomic.write_text(path, json.dumps(asdict(own)))
    try:
        yield
    finally:
        with suppress(OSError):
            path.unlink(missing_ok=True)


def of_cache() -> list[Holder]:
    """Return the commands with the same cache that have a turn; notes of processes that were killed are removed."""
    found = []
    for path in sorted(_folder().glob("*.json")):
        try:
            holder: Holder = records.build(Holder, records.parse(records.read_text(path)))
        except (OSError, ValueError):
            continue
        if _is_alive(holder):
            found.append(holder)
        else:
            with suppress(OSError):
                path.unlink(missing_ok=True)
    return sorted(found, key=lambda each: each.since)


def of_processes(numbers: list[int]) -> list[Holder]:
    """Return holders from the system's list of processes: their users, and their command of steelyard without its arguments."""
    found = []
    for number in dict.fromkeys(numbers):
        with suppress(psutil.Error):
            process = psutil.Process(number)
            started = process.create_time()
            found.append(Holder(number, _user(process), _command(process), started, started))
    return found


def _command(process: psutil.Process) -> str:
    """Return `steelyard run`: the arguments of another user's command are not shown, as they may hold names and passwords."""
    try:
        words = process.cmdline()
    except psutil.Error:
        return PROGRAM
    for word, following in pairwise(words):
        path = Path(word)
        if PROGRAM in (path.name, path.parent.name if path.name == "__main__.py" else ""):
            return f"{PROGRAM} {following}" if following.isidentifier() else PROGRAM
    return PROGRAM


def _user(process: psutil.Process) -> str:
    try:
        return str(process.username())
    except (psutil.Error, KeyError):
        return "unknown"


def _is_alive(holder: Holder) -> bool:
    """Report whether the process still runs. Its start distinguishes it from a later process with the same id."""
    try:
        process = psutil.Process(holder.process)
        return bool(abs(process.create_time() - holder.started) < 1 and process.status() != psutil.STATUS_ZOMBIE)
    except psutil.Error:
        return False


def _printable(text: str) -> str:
    return "".join(letter if letter.isprintable() else ascii(letter)[1:-1] for letter in text)


def _folder() -> Path:
    """Return the folder of the notes; several machines may share a cache."""
    return paths.cache_folder() / f"turns-on-{platform.node() or 'this-machine'}"
