"""Files that processes imported from outside of their environment, the worker and the workload's folder, and their content.

No hash of a folder covers them, so results that depend on them are valid only while these files are unchanged.
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
    """Return {path: SHA-256} as a process reported it in its folder. ValueError: its record is damaged."""
    found: dict[str, str] = {}
    for number, event in enumerate(protocol.read_events(folder / protocol.EVENTS), 1):
        if event["event"] == "imported":
            found |= events.checked(event, number).files
    return found


def of_run(run: Path) -> dict[str, str]:
    """Return the imported files of a run's measured processes. Processes with a damaged record are left out."""
    found: dict[str, str] = {}
    for folder in sorted((run / FOLDER).glob("*/")):
        try:
            found |= of_process(folder)
        except (OSError, ValueError):
            continue
    return found


def changed(files: Mapping[str, str]) -> str:
    """Return the first of these files that has changed or is gone; empty if none has."""
    return next((path for path, known in files.items() if _sha256(path) != known), "")


def deviation(trial: Trial, certificate: Mapping[str, Any]) -> str:
    """Return a sentence about a file that only the trial imported, or only the processes of its certificate.

    Empty if there is none, or if one of the two was not recorded.
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
    """Return the hash of a file. An unchanged file is hashed once, because every cached certificate asks for it."""
    if not Path(path).is_file():
        return ""
    with Path(path).open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
