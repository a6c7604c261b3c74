"""Remove runs: their folders, and their rows in the index."""

from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path

from steelyard.errors import UserError, nearest
from steelyard.files.folders import remove_folder, size_bytes
from steelyard.results import record, run_folders
from steelyard.results.store import Store

# The files of a run folder before its first process; certificates may come from the cache.
RECORD_ALONE = {record.FILE, record.CERTIFICATES, "lock"}


def remove(runs: Path, names: list[str]) -> Iterator[tuple[str, int]]:
    """Remove runs by their complete names, one after the other; yields the name and the size in bytes of each.

    UserError: a name is not that of a run, or a run is in progress. Every name is checked before anything is removed.
    """
    known = run_folders.names(runs)
    for name in names:
        if name not in known:
            raise UserError(f"There is no run '{name}' in {runs}, so nothing was removed.{nearest(name, known)}")
        if run_folders.in_use(runs / name):
            raise UserError(f"Run {name} is in progress, so nothing was removed. Stop it first.")
    with closing(Store(runs)) as index:
        for name in names:
            yield name, _remove(runs / name)
            index.remove_run(name)


def discard(folder: Path) -> None:
    """Remove the folder of a run that started no process. A folder with other files than the run's record stays.

    A failure to remove it is not reported, because the user already gets the error that ended the run.
    """
    with suppress(OSError, UserError):
        if {path.name for path in folder.iterdir()} <= RECORD_ALONE and not run_folders.in_use(folder):
            _remove(folder)
            with closing(Store(folder.parent)) as index:
                index.remove_run(folder.name)


def _remove(folder: Path) -> int:
    size = size_bytes(folder)
    try:
        remove_folder(folder)
    except OSError as error:
        where = error.filename or folder
        raise UserError(f"{where} cannot be removed ({error.strerror}). Check its permissions.") from None
    return size
