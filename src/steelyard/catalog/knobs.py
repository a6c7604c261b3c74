"""Knobs: settings of a framework that may change speed but not results, as tables of its `framework.toml`."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from steelyard.errors import UserError
from steelyard.files import settings_files
from steelyard_worker import accumulation

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from steelyard_worker.case import Optimizer, Settings

# Stands for every value of a knob but its default, and for every kind of tensors.
OTHER_VALUES = EVERYWHERE = "*"


@dataclass(frozen=True)
class Knob:
    """A setting that may change speed but not results. `values`: the values allowed; empty: any value of the default's type.

    `unsupported`: why something cannot be done; `another_algorithm`: what is computed instead; `wrong_on_purpose`: which mistake
    is made, and whose it was; `apart`: why cases with a value are compared with each other only, and certified as with the
    default; `float32_only`: why a value has no float64 that computes in the same way. All by "VALUE", "VALUE on DEVICE",
    "VALUE in MODE", "VALUE in PRECISION", or "VALUE with WORD", where the word is the optimizer or a part of it (`words`); the
    value "*" is every one but the default.

    `matters_for`: the kinds of tensors (`steelyard_worker.network.KINDS`) of networks that another value may make faster; "*": of
    every network. A search for the fastest settings tries its values there, and leaves it alone elsewhere.

    `later`: older cases do not have it. So it is left out of a case where it has its default, and the case has the id that it had
    before there was such a knob.
    """

    default: Any
    values: tuple[Any, ...]
    help: str
    unsupported: dict[str, str] = field(default_factory=dict)
    another_algorithm: dict[str, str] = field(default_factory=dict)
    wrong_on_purpose: dict[str, str] = field(default_factory=dict)
    apart: dict[str, str] = field(default_factory=dict)
    float32_only: dict[str, str] = field(default_factory=dict)
    matters_for: tuple[str, ...] = ()
    later: bool = False

    def reason(self, table: Mapping[str, str], value: Any, settings: Settings, rule: Optimizer) -> str:
        """Return the first text of a table that applies to a value; empty if none does."""
        where = f" on {settings.device}", f" in {settings.mode}", f" in {settings.precision}"
        conditions = [*where, *(f" with {word}" for word in words(rule, settings))]
        shown = [text_of(value)] + ([OTHER_VALUES] if value != self.default else [])
        keys = [f"{each}{condition}" for each in shown for condition in ("", *conditions)]
        return next((table[key] for key in keys if key in table), "")

    def matters(self, kinds: set[str]) -> bool:
        """Say whether another value may make a network with tensors of these kinds faster."""
        return EVERYWHERE in self.matters_for or bool(kinds & set(self.matters_for))


def words(rule: Optimizer, settings: Settings) -> list[str]:
    """Return the words by which knobs and modes refer to an optimizer: its name, its implementation, and the parts that it has.

    The name of an inference's optimizer is "none". "accumulation": gradients of several parts of a batch are added.
    """
    parts = {
        "momentum": rule.momentum,
        "decay": rule.weight_decay and rule.decay,
        "clip": rule.clip,
        "groups": rule.groups,
    }
    parts |= {"accumulation": accumulation.parts_of(settings) > 1}
    return [rule.name, rule.implementation, *(name for name, value in parts.items() if value)]


def text_of(value: Any) -> str:
    """Return a knob's value as it is typed."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def read(path: Path, where: str, table: Any) -> Knob:
    """Read one table of knobs. UserError: a value or a condition in it is wrong."""
    knob: Knob = settings_files.build(path, table, where, Knob)
    for value in knob.values:
        if type(value) is not type(knob.default):
            sentence = f"'values' must be of the type of 'default', but one is {value!r}."
            raise settings_files.wrong(path, "values", where, sentence)
    if knob.values:
        settings_files.check_one_of(path, "default", knob.default, knob.values, where)
    known = [text_of(value) for value in knob.values]
    for table in ("unsupported", "another_algorithm", "wrong_on_purpose", "apart", "float32_only"):
        for key in getattr(knob, table):
            value, condition, _ = key.partition(" ")
            if knob.values and condition and value != OTHER_VALUES:
                settings_files.check_one_of(path, key, value, known, f"{where}.{table}")
    return knob


def as_type_of(default: Any, name: str, text: str) -> Any:
    """Return a value from its text, with the type of the default. UserError: the text is no value of that type."""
    if isinstance(default, bool):
        if text.lower() not in ("true", "false"):
            raise UserError(f"Knob {name} must be true or false, not '{text}'.")
        return text.lower() == "true"
    try:
        value = type(default)(text)
    except ValueError:
        value = math.nan
    if isinstance(value, float) and not math.isfinite(value):
        kind = "whole" if isinstance(default, int) else "finite"
        raise UserError(f"Knob {name} must be a {kind} number such as {default!r}, not '{text}'.")
    return value
