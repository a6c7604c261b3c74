"""Is an environment what its lock says? Checked thoroughly once, then remembered by a marker with a stamp."""

import json
from dataclasses import asdict, dataclass, fields
from datetime import UTC, datetime
from pathlib import Path

from steelyard.environments.interpreter import Answer, StartError, ask, python_in, starts
from steelyard.environments.lock import version_order
from steelyard.environments.spec import Environment, EnvironmentSpec
from steelyard.environments.stamp import damage, stamp

MARKER = "steelyard-environment.json"


class BrokenError(Exception):
    """An environment is not what its lock says; the text says how."""


@dataclass(frozen=True)
class Marker:
    """What is remembered of a verified environment; written last, so that half an environment has none.

    `version` is the framework's, as installed (`2.13.0+cpu`); `made_with` is `uv` or `pip`.
    """

    name: str
    version: str
    python_version: str
    packages: dict[str, str]
    made_with: str
    verified_at: str
    stamp: str


def read_marker(folder: Path) -> Marker | None:
    """The marker of a folder; None when the environment was never finished or the marker is damaged."""
    try:
        told = json.loads((folder / MARKER).read_text("utf-8"))
        return Marker(**{field.name: told[field.name] for field in fields(Marker)})
    except (OSError, ValueError, KeyError, TypeError):
        return None


def is_unchanged(folder: Path, marker: Marker) -> bool:
    """The cheap check: the interpreter starts, and no package file changed since it was verified."""
    return starts(python_in(folder)) and stamp(folder) == marker.stamp


def verify(spec: EnvironmentSpec, folder: Path, made_with: str) -> Marker:
    """Check every package file's size, import the framework, compare versions; write and return the marker.

    Raises `BrokenError` with the first thing that is wrong.
    """
    answer = _sound_answer(spec, folder)
    found = answer.packages.get(spec.lock.distribution, "0")
    if version_order(found) != version_order(spec.version):
        raise BrokenError(f"its lock wants {spec.lock.distribution} {spec.version}, it holds {found}")
    now = datetime.now(UTC).isoformat(timespec="seconds")
    marker = Marker(spec.name, found, answer.python_version, answer.packages, made_with, now, stamp(folder))
    fresh = folder / f".{MARKER}.new"
    fresh.write_text(json.dumps(asdict(marker), indent=1), "utf-8")
    fresh.replace(folder / MARKER)
    return marker


def _sound_answer(spec: EnvironmentSpec, folder: Path) -> Answer:
    python = python_in(folder)
    if not python.exists():
        raise BrokenError("its interpreter is missing")
    if found := damage(folder):
        raise BrokenError(found)
    try:
        answer = ask(python, spec.lock.import_name)
    except StartError as error:
        raise BrokenError(f"its interpreter fails: {error}") from error
    if answer.import_error:
        raise BrokenError(f"{spec.lock.import_name} does not import: {answer.import_error}")
    return answer


def environment_of(spec: EnvironmentSpec, folder: Path, marker: Marker) -> Environment:
    """The environment that a specification and a marker describe."""
    return Environment(
        name=spec.name,
        framework=spec.framework,
        version=marker.version,
        accelerator=spec.accelerator,
        python=python_in(folder),
        python_version=marker.python_version,
        packages=marker.packages,
        spec=spec,
        folder=folder,
    )
