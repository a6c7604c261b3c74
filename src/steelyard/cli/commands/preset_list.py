"""`steelyard list presets [NAME]`: the presets of all workloads, or the sizes of those of one, which `--set` takes."""

from __future__ import annotations

import ast
import inspect
from typing import TYPE_CHECKING, Any

from steelyard.catalog import workloads
from steelyard.catalog.describing_process import MODULE
from steelyard.cli.commands import selection
from steelyard.errors import named

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from steelyard.catalog.workloads import Preset

SET = "Another value: --set SIZE=VALUE, such as --set {0}={1}. Options of the data that have the name of a size follow it{2}."


def rows(folders: Iterable[str], name: str) -> list[dict[str, Any]]:
    """Return a row for every preset; with a name, WORKLOAD or WORKLOAD:PRESET, its sizes and data. UserError: it is unknown."""
    known = workloads.find(folders, [name] if name else [])
    if not name:
        return [row for workload in known.values() for row in _summaries(workload)]
    wanted, _, preset = name.partition(":")
    workload = named(known, wanted, f"There is no workload '{wanted}'.")
    chosen = [workload.preset(preset)] if preset else list(workload.presets.values())
    meaning = _meaning(workload.folder / MODULE)
    return [
        {
            "preset": f"{workload.name}:{each.name}",
            "summary": each.summary,
            "sizes": each.sizes,
            "data": each.data,
            "meaning": meaning,
        }
        for each in chosen
    ]


def show(found: list[dict[str, Any]]) -> None:
    """Print the sizes of presets: a row for each size, a column for each preset."""
    from rich.console import Console

    names = dict.fromkeys(name for row in found for name in row["sizes"])
    table = [
        {"size": name, **{row["preset"].partition(":")[2]: row["sizes"].get(name, "-") for row in found}}
        for name in names
    ]
    console = Console(highlight=False)
    selection.print_rows(table)
    if meaning := found[0]["meaning"]:
        console.print(meaning, markup=False)
    first, followed = next(iter(names)), [name for name in names if any(name in row["data"] for row in found)]
    which = f" ({', '.join(followed)})" if followed else ""
    console.print(SET.format(first, found[0]["sizes"].get(first, 1), which), markup=False)


def _summaries(workload: workloads.Workload) -> list[dict[str, Any]]:
    networks = workload.networks()
    return [
        {
            "preset": f"{workload.name}:{name}",
            "summary": preset.summary,
            "parameters": f"{networks[name].trainable_count:,}",
            "batch": preset.sizes["batch"],
            "data": _data(preset),
        }
        for name, preset in workload.presets.items()
    ]


def _data(preset: Preset) -> str:
    return str(preset.data.get("name", workloads.SYNTHETIC))


def _meaning(path: Path) -> str:
    """Return what the docstring of `describe` says of the sizes; empty if it says nothing. The code is not run."""
    try:
        code = ast.parse(path.read_text(encoding="utf-8"))
    except (OSError, SyntaxError, ValueError, RecursionError):
        return ""
    for each in code.body:
        if isinstance(each, ast.FunctionDef) and each.name == "describe":
            return " ".join(inspect.cleandoc(ast.get_docstring(each) or "").split())
    return ""
