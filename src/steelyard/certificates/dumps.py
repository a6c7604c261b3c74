"""The tensors that the processes of a certificate have saved: one folder per task and perturbation."""

import shutil
from pathlib import Path
from typing import Any

from steelyard.certificates import imports
from steelyard.certificates.plan import Task
from steelyard.certificates.sources import digest
from steelyard.certificates.tensors import Tensors
from steelyard.errors import UserError
from steelyard.files import atomic
from steelyard.results import imported
from steelyard_worker import protocol, records, tensors

KEY = "saved-for.txt"
# The error of a process in which a setting did not take effect, or did not stay (`steelyard_worker.protocol.ERROR_KINDS`).
CHANGED = "setting"


def read(task: Task, perturbation: int | None = None) -> Tensors:
    """Return the tensors of a task, of its only perturbation or of the given one; UserError with the reason if there are none."""
    folder = Path(task.job.folder)
    path = (
        next(folder.glob("perturbation*"), folder) if perturbation is None else folder / f"perturbation{perturbation}"
    )
    try:
        return tensors.read(path)
    except (ValueError, OSError) as error:
        failed = failure(task, path)
        reason = failed[1] if failed else f"{error}"
        message = f"Nothing can be certified, because the process for {folder} saved no tensors: {reason}"
        raise UserError(message) from None


def read_meta(task: Task) -> dict[str, Any]:
    """Return what a task with one perturbation has noted beside its tensors."""
    return tensors.read_meta(next(Path(task.job.folder).glob("perturbation*")))


def keep(task: Task, key: str) -> None:
    """Note for which key a task has saved its tensors, so that an interrupted certification can use them again."""
    if all(map(atomic.is_whole, _dumps(task))):
        atomic.write_text(Path(task.job.folder) / KEY, digest(key, records.plain(task.job)))


def kept(task: Task, key: str) -> bool:
    """Return whether a task has saved its tensors for this key, and they are as they were written."""
    note = Path(task.job.folder) / KEY
    return (
        note.is_file()
        and not imported.changed(imports.of_task(task))
        and note.read_text(encoding="utf-8") == digest(key, records.plain(task.job))
        and all(map(atomic.is_intact, _dumps(task)))
    )


def _dumps(task: Task) -> list[Path]:
    return [Path(task.job.folder) / f"perturbation{each}" for each in task.job.certify.perturbations]


def below(folder: Path) -> list[Path]:
    """Return what tasks have saved below a folder, also unfinished tensors."""
    return list(folder.glob("**/perturbation*"))


def delete(folder: Path) -> None:
    """Delete what tasks have saved below a folder."""
    for dump in below(folder):
        shutil.rmtree(dump, ignore_errors=True)


def is_done(task: Task) -> bool:
    """Return whether a task with one perturbation has saved its tensors."""
    return any(map(atomic.is_whole, Path(task.job.folder).glob("perturbation*")))


def _errors(folder: Path) -> list[dict[str, Any]]:
    """Return the errors that a process has recorded; none where its record is damaged."""
    try:
        return [event for event in protocol.read_events(folder / protocol.EVENTS) if event["event"] == "error"]
    except (OSError, ValueError):
        return []


def failure(task: Task, dump: Path | None = None) -> tuple[str, str] | None:
    """Return (kind, message) of the error of a task without tensors, or of one that did not save `dump`; else None.

    Tensors of a process whose settings were changed show nothing.
    """
    folder = Path(task.job.folder)
    saved = is_done(task) if dump is None else atomic.is_whole(dump)
    errors = _errors(folder)
    if saved and not (errors and errors[-1]["kind"] == CHANGED):
        return None
    if errors:
        return errors[-1]["kind"], errors[-1]["message"]
    return "crash", f"The process for {folder} ended without saving tensors."
