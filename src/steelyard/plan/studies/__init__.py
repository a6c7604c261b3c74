"""Studies: predefined comparisons, each of which answers one question."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from steelyard.errors import named
from steelyard.files import settings_files

FOLDER = Path(__file__).parent
LONGEST_NAME = 40


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
        return read(Path(name).expanduser())
    return named(all_studies(), name, f"There is no study '{name}'.")


def chosen(study: Study, titles: list[str], names: list[str]) -> Study:
    """Return a study for workloads that the user chose: its name, title and question are adapted to them."""
    once, short = list(dict.fromkeys(titles)), "-".join(dict.fromkeys(names))
    name = short if len(short) <= LONGEST_NAME else f"{len(dict.fromkeys(names))}-workloads"
    which = "it" if len(once) == 1 else "each of them"
    return replace(
        study, name=name, title=" and ".join([", ".join(once[:-1]), once[-1]] if once[1:] else once),
        question=f"Which framework trains {which} fastest on this machine?",
    )  # fmt: skip


def read(path: Path) -> Study:
    """Read one study file."""
    raw = settings_files.read(path)
    found: Study = settings_files.build(path, raw, "", Study)
    for key in ("workloads", "frameworks"):
        if not getattr(found, key):
            sentence = f"'{key}' is empty, so there is nothing to measure. Add at least one entry."
            raise settings_files.wrong(path, key, "", sentence)
    return found
