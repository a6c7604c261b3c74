"""Read run folders, with several processes if they are many, and return the statements that write them into the index."""

import multiprocessing
import signal
from collections.abc import Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from steelyard.errors import UserError
from steelyard.host import usable_cores
from steelyard.results import index_rows, points, record, run_folders, trials
from steelyard.results.index_rows import Statement

# Reading this many runs takes about as long as starting further processes.
FEW = 16
AT_ONCE = 4  # runs that a process gets at a time


@dataclass(frozen=True)
class Indexed:
    """One run for the index. `statements`: none if it is in progress or cannot be read; `damaged`: what is left out."""

    statements: list[Statement] = field(default_factory=list)
    damaged: list[str] = field(default_factory=list)


def read(folder: Path, stamp: str) -> Indexed:
    """Read one run; `stamp` identifies its present state."""
    run = folder.name
    try:
        known = record.read(folder)
        if run_folders.state(folder, known) == "running":
            return Indexed()
        found, damaged = trials.read_all(folder)
        statements = index_rows.of_run(run, folder, known)
        statements += index_rows.of_trials(run, found)
        statements += index_rows.of_points(run, points.points(folder, known, found), stamp)
    except UserError as error:
        return Indexed(damaged=[str(error)])
    return Indexed(statements, damaged)


def read_all(stamps: Mapping[Path, str]) -> Iterator[Indexed]:
    """Read runs in order, {folder: stamp}; many of them by as many processes as there are cores."""
    workers = min(usable_cores(), len(stamps) // FEW)
    if workers < 2:
        yield from map(read, stamps, stamps.values())
        return
    # Not forked: the process may have threads, whose locks a forked copy would hold for ever.
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(workers, context, _ignore_interrupts) as pool:
        yield from pool.map(read, stamps, stamps.values(), chunksize=AT_ONCE)


def _ignore_interrupts() -> None:
    """Leave Ctrl-C to the process that waits for this one."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
