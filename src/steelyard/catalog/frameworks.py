"""The frameworks as described by their framework.toml files. No framework is imported."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import steelyard_worker
from steelyard.errors import UserError, nearest
from steelyard.files import settings_files

if TYPE_CHECKING:
    from steelyard_worker.case import Optimizer, Settings

WORKER = Path(steelyard_worker.__file__).resolve().parent
REQUIRED = {"title", "import", "distribution", "default_mode", "modes", "devices", "precisions"}
OPTIONAL = {"knobs", "optimizers", "unsupported", "reference", "maintained", "scripted", "note"}


@dataclass(frozen=True)
class Framework:
    """One framework as described by its `framework.toml`.

    `devices` and `precisions` map each name to a remark, such as that it is untested. `unsupported` gives reasons.
    """

    name: str
    title: str
    module: str
    distribution: str
    default_mode: str
    modes: dict[str, str]
    devices: dict[str, str]
    precisions: dict[str, str]
    knobs: dict[str, dict[str, Any]]
    optimizers: dict[str, dict[str, str]]
    unsupported: dict[str, str]
    reference: int = 0  # order of preference as a float64 reference, 1 is the first; 0: never used as one
    maintained: bool = True
    scripted: bool = False
    note: str = ""

    def mode(self, name: str) -> str:
        """Return the mode; UserError: the framework does not have it."""
        if name not in self.modes:
            raise UserError(f"{self.title} has no mode '{name}'.{nearest(name, list(self.modes))}")
        return name

    def knob(self, name: str, text: str) -> Any:
        """Return a knob's value from its text, with the type of its default. UserError: unknown knob or value."""
        if name not in self.knobs:
            raise UserError(f"{self.title} has no knob '{name}'.{nearest(name, list(self.knobs))}")
        value = _as_type_of(self.knobs[name]["default"], name, text)
        values = self.knobs[name]["values"]
        if values and value not in values:
            raise UserError(f"{self.title}: knob {name} must be one of {', '.join(map(str, values))}, not '{text}'.")
        return value

    def complete(self, settings: Settings) -> Settings:
        """Return the settings with every knob of the framework: a knob that was not set has its default."""
        defaults = {name: knob["default"] for name, knob in self.knobs.items()}
        return replace(settings, knobs=defaults | settings.knobs)


def declared_form(known: Framework, rule: Optimizer) -> dict[str, str]:
    """Return how a framework's own optimizer differs from the canonical formula; empty for the reference implementation."""
    return dict(known.optimizers.get(rule.name, {})) if rule.implementation == "native" else {}


@cache
def all_frameworks() -> dict[str, Framework]:
    """Return every framework by name, including the scripted ones that are used in tests."""
    folders = sorted(path.parent for path in (WORKER / "frameworks").glob("*/framework.toml"))
    return {folder.name: _read(folder) for folder in folders}


def contenders() -> dict[str, Framework]:
    """Return the real frameworks."""
    return {name: found for name, found in all_frameworks().items() if not found.scripted}


def framework(name: str) -> Framework:
    """Return a framework by name; UserError suggests the nearest."""
    known = all_frameworks()
    if name not in known:
        raise UserError(f"There is no framework '{name}'.{nearest(name, list(contenders()))}")
    return known[name]


def _read(folder: Path) -> Framework:
    path = folder / "framework.toml"
    raw = settings_files.read(path)
    settings_files.check_keys(path, raw, "", REQUIRED, REQUIRED | OPTIONAL)
    tables: dict[str, Any] = {
        key: {} for key in ("modes", "devices", "precisions", "knobs", "optimizers", "unsupported")
    }
    values = {key: value for key, value in raw.items() if key != "import"}
    return Framework(name=folder.name, module=raw["import"], **{**tables, **values})


def _as_type_of(default: Any, name: str, text: str) -> Any:
    if isinstance(default, bool):
        if text.lower() not in ("true", "false"):
            raise UserError(f"Knob {name} must be true or false, not '{text}'.")
        return text.lower() == "true"
    try:
        return type(default)(text)
    except ValueError:
        raise UserError(f"Knob {name} must be a number such as {default!r}, not '{text}'.") from None
