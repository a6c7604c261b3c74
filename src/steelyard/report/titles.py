"""Cells -> the shortest names that tell them apart: what sentences, tables and plots call a contender."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from steelyard.catalog import frameworks

if TYPE_CHECKING:
    from collections.abc import Sequence

    from steelyard.plan.cells import Cell


def titles(cells: Sequence[Cell]) -> dict[str, str]:
    """Return cell key -> title: the framework, its version where one was asked for, a mode that is not the
    default, and only those knobs in which cells of one environment and mode differ.
    """
    return {cell.key: ", ".join([_framework(cell), *_mode(cell), *_telling(cell, cells)]) for cell in cells}


def settings(cell: Cell) -> str:
    """Return the knobs of a cell in words; empty where all are at their defaults."""
    return ", ".join(_said(cell.settings.knobs, sorted(cell.settings.knobs)))


def _framework(cell: Cell) -> str:
    version = cell.environment.partition("@")[2]
    return frameworks.framework(cell.framework).title + (f" {version}" if version else "")


def _mode(cell: Cell) -> list[str]:
    mode = cell.settings.mode
    named = [] if mode == frameworks.framework(cell.framework).default_mode else [mode]
    return named if cell.strategy == "single" else [*named, cell.strategy]


def _telling(cell: Cell, cells: Sequence[Cell]) -> list[str]:
    own = cell.settings.knobs
    near = [other.settings.knobs for other in cells if _family(other) == _family(cell)]
    return _said(own, sorted(name for name in own if any(knobs.get(name) != own[name] for knobs in near)))


def _family(cell: Cell) -> tuple[str, str, str]:
    return cell.environment, cell.settings.mode, cell.strategy


def _said(knobs: dict[str, Any], names: list[str]) -> list[str]:
    return [f"{name} {knobs[name]}" for name in names]
