"""The record of a trial whose process has removed it."""

import json
import os
from pathlib import Path

from steelyard.results import trials
from steelyard_worker import protocol, records
from steelyard_worker.protocol import Job


def write_job(job: Job) -> None:
    """Write a job into its folder."""
    (Path(job.folder) / trials.JOB).write_text(json.dumps(records.plain(job), indent=1), encoding="utf-8")


def restored(job: Job, has_events: bool, verdict: tuple[str, str]) -> tuple[str, str] | None:
    """Make the folder of a trial and its job again, if its process has removed them.

    Return the error of the trial where its events are gone, and None where they are not. `has_events`: whether the process had
    written any; `verdict`: its error otherwise.
    """
    folder = Path(job.folder)
    missing = _missing(folder, has_events)
    if missing or not _is_file(folder / trials.JOB):
        _remove(folder / trials.JOB)
        write_job(job)
    if not missing:
        return None
    kind = verdict[0] if verdict[0] in ("hung", "out-of-memory") else "crash"
    said = f"{verdict[1]} " if kind != "crash" else ""
    return kind, f"{said}The process removed {missing} while it ran, and with it what it had recorded."


def _missing(folder: Path, has_events: bool) -> str:
    """Say what is missing; anything else in its place is removed."""
    if folder.is_symlink() or not folder.is_dir():
        _remove(folder)
        folder.mkdir(parents=True)
        return f"the folder of its trial ({folder})"
    events = folder / protocol.EVENTS
    if _is_file(events) or not (has_events or os.path.lexists(events)):
        return ""
    _remove(events)
    return f"{protocol.EVENTS} of its trial ({folder})"


def _is_file(path: Path) -> bool:
    return path.is_file() and not path.is_symlink()


def _remove(path: Path) -> None:
    """Remove whatever is at a path, but never the target of a link."""
    if path.is_dir() and not path.is_symlink():
        path.rename(path.with_name(f"{path.name}.replaced"))
    else:
        path.unlink(missing_ok=True)
