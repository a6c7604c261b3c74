"""Files that processes imported from outside of their environment, the worker and the workload's folder, and their content.

No hash of a folder covers them, so what rests on them is valid only while they are as they were.
"""

import hashlib
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from steelyard.results import events
from steelyard.results.trials import FOLDER, Trial
from steelyard_worker import protocol


def of_process(folder: Path) -> dict[str, str]:
    """Return path -> SHA-256 of what a process has reported in its folder; ValueError: its record is damaged."""
    found: dict[str, str] = {}
    for number, event in enumerate(protocol.read_events(folder / protocol.EVENTS), 1):
        if event["event"] == "imported":
            found |= events.checked(event, number).files
    return found


def of_run(run: Path) -> dict[str, str]:
    """Return what the measured processes of a run have imported; a process whose record is damaged is left out."""
    found: dict[str, str] = {}
    for folder in sorted((run / FOLDER).glob("*/")):
        try:
            found |= of_process(folder)
        except (OSError, ValueError):
            continue
    return found


def changed(files: Mapping[str, str]) -> str:
    """Return the first of these files whose content is another one now, or that is gone; empty where all are as they were."""
    return next((path for path, known in files.items() if _sha256(path) != known), "")


def deviation(trial: Trial, certificate: Mapping[str, Any]) -> str:
    """Return a sentence that names a file which a trial imported, and its certificate's processes did not, or otherwise.

    Empty where there is none, and where either was not recorded.
    """
    certified = certificate.get("imported")
    if certified is None:
        return ""
    for process in (trial, *(trial.others or ())):
        for path, content in (process.imported or {}).items():
            if certified.get(path) != content:
                how = "with another content than" if path in certified else "and not by"
                return (
                    f"{path} was imported by this process {how} those of its certificate, so it is not what was certified. "
                    f"Certify and measure again, without changing the file in between."
                )
    return ""


def _sha256(path: str) -> str:
    """Return the hash of a file's content; empty if it cannot be read."""
    try:
        facts = Path(path).stat()
        return _content(path, facts.st_size, facts.st_mtime_ns, facts.st_ino)
    except (OSError, ValueError):  # also a name that no file can have, in a record that anyone may have written
        return ""


@cache
def _content(path: str, *_: int) -> str:
    """Hash a file; of one that is as it was, only once: every cached certificate asks for it."""
    if not Path(path).is_file():
        return ""
    with Path(path).open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
