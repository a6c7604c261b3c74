"""Studies: predefined comparisons, each of which answers one question."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from steelyard.errors import named, nearest
from steelyard.files import names, settings_files
from steelyard.files.ranges import MINUTES, PROFILES, Range
from steelyard.plan.cells import Cells
from steelyard.published import gathering, study_tables

if TYPE_CHECKING:
    from collections.abc import Collection

    from steelyard.catalog.workloads import Workload

FOLDER = Path(__file__).parent


@dataclass(frozen=True)
class Size:
    """One size of a study. `minutes`: no round starts later than this after the first; 0: no limit."""

    summary: str
    minutes: float = field(default=0.0, metadata={"range": MINUTES})


@dataclass(frozen=True)
class Study:
    """A predefined comparison: tables of cells, and the sizes that it is offered in, the largest first.

    `minutes` is the limit of a study without sizes. `profiles`: processes of each contender that are profiled after the rounds.
    `published`: the entries of documents that it is held against.
    """

    name: str
    title: str
    question: str
    version: int = field(metadata={"range": Range(1)})
    cells: tuple[Cells, ...]
    sizes: dict[str, Size] = field(default_factory=dict)
    minutes: float = field(default=0.0, metadata={"range": MINUTES})
    profiles: int = field(default=0, metadata={"range": PROFILES})
    thresholds: tuple[float, ...] = ()  # scores of which the page says when trainings reached them
    published: tuple[study_tables.StudyTable, ...] = ()

    def of_size(self, size: str) -> Study:
        """Return the study with only the cells and the time limit of one of its sizes. UserError: it has no such size."""
        if not size and not self.sizes:
            return self
        chosen = named(self.sizes, size, f"Study {self.name} has no size '{size}'.")
        cells = tuple(each for each in self.cells if not each.sizes or size in each.sizes)
        return replace(self, cells=cells, sizes={size: chosen}, minutes=chosen.minutes)


def all_studies() -> dict[str, Study]:
    """Return the studies that are part of steelyard, by name."""
    return {name: read(path) for name, path in _files().items()}


def offered() -> frozenset[str]:
    """Return the names of the studies that are part of steelyard."""
    return frozenset(_files())


def _files() -> dict[str, Path]:
    """Return the files of the studies that are part of steelyard, by the study's name."""
    return {path.stem: path for path in sorted(FOLDER.glob("*.toml"))}


def study(name: str) -> Study:
    """Return a study by its name, or read it from the user's .toml file."""
    if name.endswith(".toml"):
        path = Path(name).expanduser()
        found = read(path)
        if wrong := names.flaw(found.name, "study", taken=found.name in _files()):
            raise settings_files.wrong(path, "name", "", wrong)
        return found
    return read(named(_files(), name, f"There is no study '{name}'."))


def with_cells(study: Study, cells: tuple[Cells, ...]) -> Study:
    """Return the study with other cells."""
    return replace(study, cells=cells)


def of_inference(study: Study) -> Study:
    """Return a study of which the user wants the forward pass only: its name, title and question are adapted."""
    return replace(
        study,
        name=f"{study.name[: names.LONGEST - len('-inference')]}-inference",
        title=f"{study.title}: inference",
        question="Which framework runs the forward pass fastest on this machine?",
    )


def only(study: Study, requested: Collection[str]) -> Study | None:
    """Return the study with only the requested `workload:preset` pairs, and the sizes that have any; None if it lacks one."""
    kept = [(each, tuple(name for name in each.workloads if name in requested)) for each in study.cells]
    if set(requested) - {name for _, names_kept in kept for name in names_kept}:
        return None
    cells = tuple(replace(each, workloads=names_kept) for each, names_kept in kept if names_kept)
    sizes = {
        size: each for size, each in study.sizes.items() if any(not one.sizes or size in one.sizes for one in cells)
    }
    return replace(study, cells=cells, sizes=sizes)


def of_workloads(study: Study, requested: tuple[str, ...], found: list[Workload], protocol: str = "") -> Study:
    """Return a study for workloads that the user chose, measured as its first cells are, or with another protocol.

    Its name, title and question are adapted to the workloads.
    """
    first = study.cells[0]
    cells = Cells(
        requested,
        first.frameworks,
        protocol=protocol or first.protocol,
        rounds=first.rounds,
        train_steps=first.train_steps,
        evaluation_limit=first.evaluation_limit,
    )
    titles = list(dict.fromkeys(each.title for each in found))
    different = list(dict.fromkeys(each.name for each in found))
    joined = "-".join(different)
    name = joined if len(joined) <= names.LONGEST else f"{len(different)}-workloads"
    title = " and ".join([", ".join(titles[:-1]), titles[-1]] if titles[1:] else titles)
    which = "each of them" if titles[1:] else "it"
    question = f"Which framework trains {which} fastest on this machine?"
    return replace(study, name=name, title=title, question=question, cells=(cells,), sizes={}, published=())


def read(path: Path) -> Study:
    """Read one study file."""
    raw = settings_files.read(path)
    found: Study = settings_files.build(path, raw, "", Study)
    sizes = {name: settings_files.build(path, table, f"sizes.{name}", Size) for name, table in found.sizes.items()}
    if not found.cells:
        raise settings_files.wrong(
            path, "cells", "", "there are no [[cells]], so there is nothing to measure. Add one."
        )
    cells = tuple(_cells(path, number, table, sizes) for number, table in enumerate(found.cells))
    for size in sizes:
        if not any(not each.sizes or size in each.sizes for each in cells):
            raise settings_files.wrong(path, "", f"sizes.{size}", f"no [[cells]] belong to the size '{size}'.")
    return replace(found, cells=cells, sizes=sizes, published=gathering.read(path, found.published))


def _cells(path: Path, number: int, table: Any, sizes: dict[str, Size]) -> Cells:
    where = f"cells[{number}]"
    found: Cells = settings_files.build(path, table, where, Cells)
    for key in ("workloads", "frameworks"):
        if not getattr(found, key):
            sentence = f"'{key}' is empty, so there is nothing to measure. Add at least one entry."
            raise settings_files.wrong(path, key, where, sentence)
    for size in found.sizes:
        if size not in sizes:
            sentence = f"'sizes' names '{size}', which is no size of this study.{nearest(size, list(sizes))}"
            raise settings_files.wrong(path, "sizes", where, sentence)
    return found
