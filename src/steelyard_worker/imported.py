"""Files that a process has imported from outside of its environment, the worker and the workload's folder.

The hash of everything in those three decides a certificate. What an implementation imports from elsewhere, such as a helper
beside the workload's folder, is reported with its content. Files that it opens, or runs with `exec`, cannot be seen, nor can the
imports of processes that it starts.
"""

from __future__ import annotations

import hashlib
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from steelyard_worker import protocol

if TYPE_CHECKING:
    from collections.abc import Iterable

    from steelyard_worker.protocol import EventWriter, Job

EVENT = "imported"
WORKER = Path(__file__).parent
# What the interpreter may import by itself, before anything changed that: what a hash of its environment covers.
_AT_START = tuple(sys.path)
_CHUNK_BYTES = 2**20


def environment() -> frozenset[str]:
    """Return the folders of the environment: those on the path at the start, and those of packages that are loaded now.

    Called when the framework is loaded and no implementation is.
    """
    known = _folders(_AT_START)
    packages = [module for name, module in list(sys.modules.items()) if "." not in name]
    others = [folder for package in packages for folder in _attribute(package, "__path__") or ()]
    return known | _folders(folder for folder in others if not _is_inside(folder, known))


def report(job: Job, known: frozenset[str], events: EventWriter) -> None:
    """Write the event `imported`: path -> SHA-256 of every file outside of the `known` folders and those of the job.

    Where another framework exported the network, what its process imported is part of it.
    """
    events.write("imported", files={**_of_exporter(job), **files(job, known)})


def files(job: Job, known: frozenset[str]) -> dict[str, str]:
    """Return path -> SHA-256 of what is imported now from outside of the `known` folders and those of the job."""
    # Compilers write modules into the folders that the launcher made for this process alone.
    made = [job.folder, os.environ.get("TMPDIR", ""), *job.variables.values()]
    inside = known | _folders([str(WORKER), job.workload_folder, job.adapter_folder, *made])
    others = _of_other_frameworks(job)
    found: dict[str, str] = {}
    for name in {_name(module) for module in list(sys.modules.values())} - {""}:
        # Frameworks consist of thousands of modules, and following links takes long.
        if name not in others and _is_inside(name, inside):
            continue
        # It may lie in an archive.
        path = next((each for each in (Path(name), *Path(name).parents) if each.is_file()), None)
        if path and (name in others or not _is_inside(str(path.resolve()), inside)):
            found[str(path.resolve())] = _sha256(path)
    return dict(sorted(found.items()))


def _of_other_frameworks(job: Job) -> set[str]:
    """Return the implementations of other frameworks in the workload's folder, which no hash of this one's files covers."""
    names = {each.name for each in (WORKER / "frameworks").iterdir()} - {job.case.framework}
    return {os.path.normpath(Path(job.workload_folder) / f"{name}.py") for name in names}


def _of_exporter(job: Job) -> dict[str, str]:
    if not job.networks:
        return {}
    found: dict[str, str] = {}
    for event in protocol.read_events(Path(job.networks) / protocol.EVENTS):
        if event["event"] == EVENT:
            found |= event["files"]
    return found


def _name(module: object) -> str:
    """Return the name of the file that a module was loaded from; empty without any."""
    name = _attribute(module, "__file__")
    return os.path.normpath(name) if isinstance(name, str) and name else ""


def _attribute(module: object, name: str) -> Any:
    """Return what a module has under a name, None without it; the usual access would load a module that loads itself lazily."""
    try:
        return object.__getattribute__(module, "__dict__").get(name)
    except AttributeError:  # anything may be put among the modules
        return None


def _is_inside(name: str, folders: frozenset[str]) -> bool:
    """Return whether a file or folder is one of the folders, or below one."""
    above = name.rpartition(os.sep)[0]
    return name in folders or (bool(above) and _is_inside(above, folders))


def _folders(names: Iterable[str]) -> frozenset[str]:
    """Return folders as they are named, and where their links lead; a name that is no absolute path is left out."""
    named = [Path(os.path.normpath(each)) for each in names if Path(each).is_absolute()]
    return frozenset(map(str, [*named, *(each.resolve() for each in named)]))


def _sha256(path: Path) -> str:
    found = hashlib.sha256()
    with path.open("rb") as file:
        while part := file.read(_CHUNK_BYTES):
            found.update(part)
    return found.hexdigest()
