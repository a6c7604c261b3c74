"""Studies: predefined comparisons, each of which answers one question."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from steelyard.errors import named
from steelyard.files import names, settings_files

if TYPE_CHECKING:
    from steelyard.catalog.workloads import Workload

FOLDER = Path(__file__).parent


@dataclass(frozen=True)
class Study:
    """A predefined comparison. `workloads` are `name` or `name:preset`; `frameworks` are names, or `*` for all."""

    name: str
    title: str
    question: str
    version: int
    protocol: str
    workloads: tuple[str, ...]
    frameworks: tuple[str, ...]
    train_steps: int = 0
    evaluation_limit: int = 0
    minutes: float = 0.0  # no round starts later than this after the first; 0: no limit


def all_studies() -> dict[str, Study]:
    """Return the studies that are part of steelyard, by name."""
    return {study.name: study for study in map(read, sorted(FOLDER.glob("*.toml")))}


def study(name: str) -> Study:
    """Return a study by its name, or read it from the user's .toml file."""
    if name.endswith(".toml"):
        path = Path(name).expanduser()
        found = read(path)
        if wrong := names.flaw(found.name, "study", taken=found.name in all_studies()):
            raise settings_files.wrong(path, "name", "", wrong)
        return found
    return named(all_studies(), name, f"There is no study '{name}'.")


def chosen(study: Study, workloads: list[Workload]) -> Study:
    """Return a study for workloads that the user chose: its name, title and question are adapted to them."""
    titles = list(dict.fromkeys(each.title for each in workloads))
    different = list(dict.fromkeys(each.name for each in workloads))
    joined = "-".join(different)
    name = joined if len(joined) <= names.LONGEST else f"{len(different)}-workloads"
    title = " and ".join([", ".join(titles[:-1]), titles[-1]] if titles[1:] else titles)
    which = "each of them" if titles[1:] else "it"
    return replace(study, name=name, title=title, question=f"Which framework trains {which} fastest on this machine?")


def read(path: Path) -> Study:
    """Read one study file."""
    raw = settings_files.read(path)
    found: Study = settings_files.build(path, raw, "", Study)
    for key in ("workloads", "frameworks"):
        if not getattr(found, key):
            sentence = f"'{key}' is empty, so there is nothing to measure. Add at least one entry."
            raise settings_files.wrong(path, key, "", sentence)
    return found
