"""The record on the machine of the run: files of nodes are written into the run's folder, compared with theirs, and read."""

from collections.abc import Callable, Mapping
from pathlib import Path, PurePosixPath

from steelyard.cluster import files
from steelyard.cluster.files import Piece
from steelyard.cluster.growing import BROUGHT
from steelyard.errors import UserError
from steelyard.files import within
from steelyard.measure import jobs
from steelyard.measure.attempts import Attempt
from steelyard.plan.run_plan import RunPlan
from steelyard.results import trials
from steelyard.results.trials import Trial
from steelyard_worker import protocol, records

Fetch = Callable[[str, int], Piece]


def write(run: Path, piece: Piece) -> None:
    """Write a piece of a file. UserError: it is outside of the parts of a run that nodes may send."""
    if PurePosixPath(piece.path).parts[:1] not in [(name,) for name in BROUGHT]:
        raise UserError(f"A node has sent the file {piece.path!r}, which is no part of the record that nodes send.")
    files.write(run, piece)


def complete(run: Path, held: Mapping[str, tuple[int, str]], fetch: Fetch) -> None:
    """Fetch every file again that differs from the node's. `held`: path -> (size, SHA-256) on the node.

    UserError: a file still differs.
    """
    for path, (size, content) in held.items():
        if _is_here(run, path, size, content):
            continue
        begin = 0
        while True:
            piece = fetch(path, begin)
            write(run, piece)
            begin += len(piece.data)
            if begin >= size or not piece.data:
                break
        if not _is_here(run, path, size, content):
            raise UserError(f"{path} arrived damaged.")


def _is_here(run: Path, path: str, size: int, content: str) -> bool:
    here = files.inside(run, path)
    return here.is_file() and here.stat().st_size == size and files.digest(here) == content


def of_node(run: Path, node: str, held: Mapping[str, tuple[int, str]]) -> dict[str, tuple[int, str]]:
    """Return the files of the processes that this node measured, as far as the record here shows that."""
    owners = {path: _owner(run / Path(path).parts[0] / Path(path).parts[1]) for path in held}
    return {path: each for path, each in held.items() if owners[path] in ("", node)}


def _owner(trial: Path) -> str:
    try:
        return protocol.from_line(records.read_text(trial / trials.JOB)).node
    except (OSError, ValueError):
        return ""


def reserve(run: Path, plan: RunPlan, attempt: Attempt) -> None:
    """Create the folders of an attempt, so that its number is not given to another node."""
    for folder in folders(run, plan, attempt):
        within.check(run, folder)
        folder.mkdir(parents=True)


def folders(run: Path, plan: RunPlan, attempt: Attempt) -> list[Path]:
    """Return the folders of an attempt's trials."""
    return [jobs.trial_folder(run, attempt.round, attempt.attempt, plan.by_id[case_id]) for case_id in attempt.cases]


def read(run: Path, plan: RunPlan, attempt: Attempt) -> tuple[Trial, ...]:
    """Return the trials of an attempt that has ended. UserError: one is missing or damaged."""
    return tuple(trials.read(folder) for folder in folders(run, plan, attempt))
