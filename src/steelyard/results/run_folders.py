"""The folders of runs: their names, whether a process uses them, and how users name one."""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path

from steelyard.errors import UserError, nearest
from steelyard.files import paths, within
from steelyard.results import record, trials

LOCK = "lock"
# The folder of the processes of certificates.
CERTIFICATES = "certificates"


def new_folder(runs: Path, study: str) -> Path:
    """Create a run folder named after the time and the study, which only its user can read."""
    stamp = datetime.now().astimezone().strftime("%Y%m%d-%H%M%S")
    folder = runs
    try:
        paths.make_private(runs)
        for suffix in ("", *(f"-{number}" for number in range(2, 100))):
            folder = runs / f"{stamp}-{study}{suffix}"
            with suppress(FileExistsError):
                folder.mkdir(paths.PRIVATE)
                return folder
    except OSError as error:
        reason = "Not a directory" if isinstance(error, FileExistsError) else error.strerror
        raise UserError(
            f"The run folder {folder} cannot be created ({reason}). Choose another folder with --runs."
        ) from None
    raise UserError(f"{runs} already holds 99 runs that were started in this second. Try again.")


def find(runs: Path, name: str) -> Path:
    """Return a run's folder by its name, a unique prefix of it, its path, or `latest`: the last with a finished process."""
    if os.path.isfile(Path(name) / record.FILE):  # noqa: PTH113 - the method of a path raises an error for a name that is too long
        return Path(name).absolute()
    known = names(runs)
    if not known:
        raise UserError(f"There is no run in {runs} yet. Start one with: steelyard run")
    if name == "latest":
        return next((runs / run for run in reversed(known) if trials.has_finished(runs / run)), runs / known[-1])
    matching = [run for run in known if name and run.startswith(name)]
    if name in known or len(matching) == 1:
        return runs / matching[0]  # a complete name sorts before the longer ones that begin with it
    if matching:
        raise UserError(f"'{name}' matches {len(matching)} runs: {', '.join(matching[:5])}. Give more of the name.")
    raise UserError(f"There is no run '{name}' in {runs}.{nearest(name, known)}")


def names(runs: Path) -> list[str]:
    """Return the names of all runs in a folder, the oldest first."""
    return sorted(path.parent.name for path in runs.glob(f"*/{record.FILE}"))


def state(folder: Path, known: record.RunRecord) -> str:
    """Return a run's actual state. A killed process leaves "running" in run.json; if nothing locks it, it was interrupted."""
    if known.state != "running":
        return known.state
    return "running" if in_use(folder) else "interrupted"


def in_use(folder: Path) -> bool:
    """Return whether a process has locked a run folder; true also if that is unknown."""
    if (lock := folder / LOCK).is_symlink() or lock.is_dir():
        return False  # no process locks these
    try:
        with locked(folder):
            return False
    except (UserError, OSError):
        return True


@contextmanager
def claim(folder: Path) -> Iterator[None]:
    """Lock a run folder for this process, to write into it. UserError: another one has locked it, or a link leads out of it."""
    check_links(folder)
    with locked(folder):
        yield


def check_links(folder: Path) -> None:
    """Raise UserError where a run folder has a link at a place at which files are written or deleted.

    These are its own entries and those of the folders in it. Those of certificates hold further folders, in which frameworks may
    leave links of their own that do not lead out.
    """
    inside = folder.resolve()
    for path in _visible(folder):
        within.check(folder, path)
        for inner in _visible(path) if path.is_dir() else ():
            within.check(folder, inner)
    for parent, folders, files in os.walk(folder / CERTIFICATES):
        for path in (Path(parent, name) for name in (*folders, *files)):
            if path.is_symlink() and not path.resolve().is_relative_to(inside):
                raise within.refusal(path)


def _visible(folder: Path) -> list[Path]:
    return sorted(path for path in folder.iterdir() if not path.name.startswith("."))


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Lock a run folder for this process. UserError: another process has locked it, or its lock is no file."""
    from filelock import FileLock, Timeout

    within.check_file(folder / LOCK)
    lock = FileLock(folder / LOCK)
    try:
        lock.acquire(timeout=0)
    except Timeout:
        advice = "Wait until it ends, or start a new run without --resume."
        raise UserError(f"Run {folder.name} is in use by another steelyard process. {advice}") from None
    try:
        yield
    finally:
        lock.release()
