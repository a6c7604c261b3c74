"""Code that a framework's compiler keeps on the disk: shared by processes of one environment and machine, never half-written.

Frameworks that keep compiled code do so in one folder for all their processes. A file that a killed process has written only in
part makes every later process fail. Here each process works in a folder of its own, with links to what earlier ones have
finished. The files that it adds are shared only if the process finished.
"""

import os
import shutil
import uuid
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from steelyard import host
from steelyard.catalog import frameworks
from steelyard.environments import Environment
from steelyard.files import atomic, paths
from steelyard.results.trials import Trial
from steelyard_worker.protocol import Job

FOLDER = "compiled"
PARTIAL = ".partial"
"""Ends the name of a process's own folder; one that was left behind is removed by `steelyard cache prune`."""


def launched(job: Job, environment: Environment, launch: Callable[[Job], Trial]) -> Trial:
    """Launch a job, with a folder for compiled code if its framework keeps any in this mode."""
    variable = frameworks.framework(job.case.framework).compiled_code.get(job.case.settings.mode, "")
    if not variable:
        return launch(job)
    # Compilers make code for the processor they run on, and a home folder may be shared by several machines.
    key = atomic.key(environment.contents, str(environment.python), host.describe().fingerprint())[:20]
    finished = paths.cache_folder() / FOLDER / f"{environment.name}-{key}"
    own = finished.with_name(f"{environment.name}-{uuid.uuid4().hex}{PARTIAL}")
    paths.make_private(own)
    try:
        _add(finished, own)
        trial = launch(replace(job, variables=job.variables | {variable: str(own)}))
        if trial.done:
            _add(own, finished)
    finally:
        shutil.rmtree(own, ignore_errors=True)
    return trial


def _add(source: Path, target: Path) -> None:
    """Add the files that `target` lacks. What cannot be added is compiled again, so that costs time only."""
    for parent, _, names in os.walk(source):
        folder = target / Path(parent).relative_to(source)
        with suppress(OSError):
            folder.mkdir(parents=True, exist_ok=True)
        for name in names:
            with suppress(OSError):
                os.link(Path(parent, name), folder / name)
