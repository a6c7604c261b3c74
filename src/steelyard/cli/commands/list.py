"""`steelyard list`: frameworks, workloads, presets, studies, data sets and runs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from steelyard.catalog import frameworks, workloads
from steelyard.cli.commands import selection
from steelyard.plan import studies
from steelyard.results import record

if TYPE_CHECKING:
    import argparse


CAPTIONS = {
    "workloads": "Number of presets certified on this machine with the current files. To certify the small presets of every "
    "workload: steelyard certify --all. To certify the published presets: steelyard certify --full.",
}


def execute(arguments: argparse.Namespace) -> int:
    """Print one list, as a table or as JSON."""
    lists = {
        "frameworks": _frameworks, "workloads": _workloads, "presets": _presets, "studies": _studies, "data": _data,
        "runs": _runs,
    }  # fmt: skip
    frameworks.use(selection.folders_of(arguments.frameworks))
    rows = lists[arguments.what](arguments)
    if arguments.json:
        print(json.dumps(rows, indent=1, default=str))
        return 0
    from rich.console import Console
    from rich.table import Table

    if not rows:
        Console().print("There are no runs yet. Start with: steelyard run")
        return 0
    table = Table(*rows[0], box=None, pad_edge=False, header_style="bold")
    for column in table.columns:
        column.overflow = "fold"  # names must be complete, as users copy them
    for row in rows:
        table.add_row(
            *("\n".join(map(str, value)) if isinstance(value, list) else str(value) for value in row.values())
        )
    Console().print(table)
    if arguments.what in CAPTIONS:
        Console().print(CAPTIONS[arguments.what])
    return 0


def _frameworks(arguments: argparse.Namespace) -> list[dict[str, Any]]:  # noqa: ARG001
    from steelyard.environments import versions_of

    return [
        {
            "framework": name, "title": known.title, "versions": versions_of(name),
            "modes": [mode + (" (default)" if mode == known.default_mode else "") for mode in known.modes],
            "devices": list(known.devices), "knobs": list(known.knobs), "note": known.note,
        }
        for name, known in frameworks.contenders().items()
    ]  # fmt: skip


def _workloads(arguments: argparse.Namespace) -> list[dict[str, Any]]:
    """Ten rows, a column per framework: in how many presets it is certified on this machine."""
    from steelyard.certificates.coverage import coverage_of

    found = workloads.find(tuple(Path(folder) for folder in arguments.workloads))
    table = coverage_of(found.values())
    rows = []
    for name, cells in table.items():
        labels = {framework: coverage.label for framework, coverage in cells.items()}
        reasons = {key: each.reason for key, each in cells.items() if each.reason}
        more = {"title": found[name].title, "reasons": reasons} if arguments.json else {}
        rows.append({"workload": name, **labels, **more})
    return rows


def _presets(arguments: argparse.Namespace) -> list[dict[str, Any]]:
    found = workloads.find(tuple(Path(folder) for folder in arguments.workloads))
    return [
        {
            "preset": f"{name}:{preset.name}", "summary": preset.summary,
            "parameters": f"{workload.network(preset).trainable_count:,}", "batch": preset.sizes["batch"],
            "data": preset.data.get("name", "synthetic"),
        }
        for name, workload in found.items()
        for preset in workload.presets.values()
    ]  # fmt: skip


def _studies(arguments: argparse.Namespace) -> list[dict[str, Any]]:  # noqa: ARG001
    return [
        {
            "study": study.name,
            "question": study.question,
            "workloads": list(study.workloads),
            "protocol": study.protocol,
        }
        for study in studies.all_studies().values()
    ]


def _data(arguments: argparse.Namespace) -> list[dict[str, Any]]:  # noqa: ARG001
    from steelyard.inputs.data import list_data

    return [{"data": d.name, "title": d.title, "terms": d.terms} for d in list_data()]


def _runs(arguments: argparse.Namespace) -> list[dict[str, Any]]:
    folders = sorted((path.parent for path in selection.runs_of(arguments).glob(f"*/{record.FILE}")), reverse=True)
    return [_run_row(folder) for folder in folders]


def _run_row(folder: Path) -> dict[str, Any]:
    try:
        known = record.read(folder)
    except record.UnreadableRun as error:
        return {"run": folder.name, "study": "", "state": error.state, "processes": 0, "page": ""}
    page = folder / record.PAGE
    processes = sum(1 for _ in folder.glob("trials/*/"))
    return {
        "run": folder.name,
        "study": known.study,
        "state": record.state(folder, known),
        "processes": processes,
        "page": page if page.exists() else "",
    }
