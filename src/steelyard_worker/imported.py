"""Files that a process has imported from outside of its environment, the worker and the workload's folder.

The hash of everything in those three decides a certificate. What an implementation imports from elsewhere, such as a helper
beside the workload's folder, is reported with its content. Files that it opens, or runs with `exec`, cannot be seen, and nor can
what processes import that it starts.
"""

from __future__ import annotations

import hashlib
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from steelyard_worker import protocol

if TYPE_CHECKING:
    from collections.abc import Iterable

    from steelyard_worker.protocol import EventWriter, Job

EVENT = "imported"
WORKER = Path(__file__).parent
# What the interpreter may import by itself, before anything changed that: what a hash of its environment covers.
_AT_START = tuple(sys.path)
_CHUNK_BYTES = 2**20


def environment() -> tuple[Path, ...]:
    """Return the folders of the environment: those on the path at the start, and those of packages that are loaded now.

    Called when the framework is loaded and no implementation is.
    """
    packages = [module for name, module in list(sys.modules.items()) if "." not in name]
    found = [*_AT_START, *(folder for package in packages for folder in getattr(package, "__path__", ()))]
    return _both(found)


def report(job: Job, known: Iterable[Path], events: EventWriter) -> None:
    """Write the event `imported`: path -> SHA-256 of every file outside of the `known` folders and those of the job.

    Where another framework exported the network, what its process imported is part of it.
    """
    events.write(EVENT, files={**_of_exporter(job), **files(job, known)})


def files(job: Job, known: Iterable[Path]) -> dict[str, str]:
    """Return path -> SHA-256 of what is imported now from outside of the `known` folders and those of the job."""
    # Compilers write modules into the folders that the launcher made for this process alone.
    made = [job.folder, os.environ.get("TMPDIR", ""), *job.variables.values()]
    inside = *known, *_both([str(WORKER), job.workload_folder, job.adapter_folder, *made])
    others = _of_other_frameworks(job)
    found: dict[str, str] = {}
    for module in list(sys.modules.values()):
        path = _file(module)
        if path is None:
            continue
        real = path.resolve()
        certified = any(path.is_relative_to(each) or real.is_relative_to(each) for each in inside)
        if not certified or path in others:
            found[str(real)] = _sha256(real)
    return dict(sorted(found.items()))


def _of_other_frameworks(job: Job) -> set[Path]:
    """Return the implementations of other frameworks in the workload's folder, which no hash of this one's files covers."""
    names = {each.name for each in (WORKER / "frameworks").iterdir()} - {job.case.framework}
    return {Path(job.workload_folder) / f"{name}.py" for name in names}


def _of_exporter(job: Job) -> dict[str, str]:
    if not job.networks:
        return {}
    found: dict[str, str] = {}
    for event in protocol.read_events(Path(job.networks) / protocol.EVENTS):
        if event["event"] == EVENT:
            found |= event["files"]
    return found


def _file(module: object) -> Path | None:
    """Return the file that a module was loaded from, or the archive that it lies in; None without any."""
    name = getattr(module, "__file__", None)
    if not isinstance(name, str) or not name:
        return None
    path = Path(os.path.normpath(name))
    return next((each for each in (path, *path.parents) if each.is_file()), None)


def _both(folders: Iterable[str]) -> tuple[Path, ...]:
    """Return absolute folders as they are named, and where their links lead; a name that is no absolute path is left out."""
    named = [Path(os.path.normpath(each)) for each in folders if Path(each).is_absolute()]
    return tuple(dict.fromkeys([*named, *(each.resolve() for each in named)]))


def _sha256(path: Path) -> str:
    found = hashlib.sha256()
    with path.open("rb") as file:
        while part := file.read(_CHUNK_BYTES):
            found.update(part)
    return found.hexdigest()
