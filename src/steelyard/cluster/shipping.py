"""The files that a node needs, identified by content: inputs, and the sources of the user's workloads and frameworks."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

from steelyard.catalog import frameworks, workloads
from steelyard.cluster import files
from steelyard.cluster.files import Piece
from steelyard.files import atomic
from steelyard.files.paths import cache_folder
from steelyard.inputs.case_inputs import CaseInputs
from steelyard.plan.run_plan import RunPlan
from steelyard_worker import tensors

LEFT_OUT = ("__pycache__",)


class Receiver(Protocol):
    """Calls a method of a node's agent, waits for it, and returns its result."""

    def __call__(self, method: str, *values: Any) -> Any: ...


@dataclass(frozen=True)
class Cargo:
    """The files for the nodes of a run. `inputs`: with paths relative to a cache; `folders`: such a path -> the folder here.

    `sources`: name -> folder of a workload or framework of the user's own; `frameworks`: which of these are frameworks; `codes`:
    name -> hash.
    """

    inputs: dict[str, CaseInputs]
    folders: dict[str, Path]
    sources: dict[str, Path]
    codes: dict[str, str]
    frameworks: tuple[str, ...]


def packed(plan: RunPlan, inputs: Mapping[str, CaseInputs]) -> Cargo:
    """Return the files that nodes need for a plan and its prepared inputs."""
    folders: dict[str, Path] = {}

    def leave(path: Path) -> Path:
        own = path.is_relative_to(cache_folder())
        relative = path.relative_to(cache_folder()) if own else Path("cluster", "inputs", tensors.identity(path))
        folders[relative.as_posix()] = path
        return relative

    relative = {key: relocated(each, leave) for key, each in inputs.items()}
    own = {name: known.folder for name, known in frameworks.all_frameworks().items() if known.user_folder}
    others = {name: Path(each) for name, each in plan.workload_folders.items() if not workloads.is_built_in(each)}
    sources = others | own
    codes = {name: frameworks.files_hash(folder) for name, folder in sources.items()}
    return Cargo(relative, folders, sources, codes, tuple(own))


def send(cargo: Cargo, call: Receiver, report: Callable[[int, int], None]) -> None:
    """Send missing files to a node. `report(done, total)`: bytes of all that is sent. UserError: a file arrived damaged."""
    wanted = {path: tensors.identity(folder) for path, folder in cargo.folders.items()}
    lacking = {path: cargo.folders[path] for path in call("missing", wanted)}
    sources = {name: cargo.sources[name] for name in call("lacks", cargo.codes)}
    total = sum(path.stat().st_size for _, path in _contents({**lacking, **sources}))
    done = 0
    for name, folder in {**lacking, **sources}.items():
        for batch in _batches(name, folder):
            call("receive", batch)
            done += sum(len(piece.data) for piece in batch)
            report(done, total)
        if name in lacking:
            call("place_inputs", name, wanted[name])
        else:
            call("place_sources", name, cargo.codes[name])


def relocated(inputs: CaseInputs, move: Callable[[Path], Path]) -> CaseInputs:
    """Return the inputs with other folders."""
    data = inputs.data
    names = ("synthetic", "prepared", "order", "adversarial")
    moved: dict[str, Any] = {name: str(move(Path(getattr(data, name)))) for name in names if getattr(data, name)}
    rates = move(inputs.rates) if inputs.rates else None
    return replace(inputs, weights=move(inputs.weights), data=replace(data, **moved), rates=rates)


def _contents(folders: Mapping[str, Path]) -> Iterator[tuple[str, Path]]:
    """Yield the files to be sent: path in the message, and path here."""
    for name, folder in folders.items():
        for inner, path in files.below(folder, folder):
            if path.name != atomic.VERIFIED and not any(part in LEFT_OUT for part in path.parts):
                yield f"{name}/{inner}", path


def _batches(name: str, folder: Path) -> Iterator[list[Piece]]:
    """Yield the pieces of a folder's files, several small ones together."""
    batch: list[Piece] = []
    for sent, path in _contents({name: folder}):
        for piece in files.pieces(path.parent, path.name):
            batch.append(Piece(sent, piece.offset, piece.data))
            if sum(len(each.data) for each in batch) >= files.PIECE_BYTES:
                yield batch
                batch = []
    if batch:
        yield batch


def names_of(found: Iterable[str]) -> str:
    """Return names as a list in a sentence: `a`, `a and b`, `a, b and c`."""
    *first, last = found
    return f"{', '.join(first)} and {last}" if first else last
