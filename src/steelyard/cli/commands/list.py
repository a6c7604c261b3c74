"""`steelyard list`: frameworks, workloads, presets, studies, strategies, data sets and runs."""

import argparse
from typing import Any

from steelyard.catalog import frameworks, workloads
from steelyard.cli.commands import data_sets, preset_list, runs, selection, strategy_list, study_list
from steelyard.errors import UserError
from steelyard.plan.options import Options

CAPTIONS = {
    "workloads": "Number of presets certified on this machine with the current files. To certify the small presets of every "
    "workload: steelyard certify --all. To certify the published presets: steelyard certify --full.",
    "presets": "To see the sizes of a workload's presets, which --set changes: steelyard list presets NAME",
    "data": "To see which files are read from a folder: steelyard list data NAME",
}


def execute(arguments: argparse.Namespace) -> int:
    """Print one list, as a table or as JSON."""
    options = selection.options_of(arguments)
    frameworks.use(options.framework_folders)
    lists: dict[str, Any] = {
        "frameworks": _frameworks,
        "workloads": lambda: _workloads(options, arguments.json),
        "presets": lambda: preset_list.rows(options.workload_folders, arguments.name),
        "studies": study_list.rows,
        "strategies": lambda: strategy_list.rows(options),
        "data": lambda: data_sets.rows(options, arguments.name),
        "runs": lambda: runs.rows(selection.runs_of(arguments)),
    }
    if arguments.name and arguments.what not in ("data", "presets"):
        raise UserError(
            f"'steelyard list {arguments.what}' takes no name; only 'steelyard list data NAME' and 'steelyard list "
            "presets NAME' do."
        )
    rows = lists[arguments.what]()
    if arguments.json:
        selection.print_json(rows)
    elif arguments.name and arguments.what == "presets":
        preset_list.show(rows)
    elif arguments.name:
        data_sets.show(rows[0])
    elif arguments.what == "studies":
        study_list.show(rows)
    elif arguments.what == "strategies":
        strategy_list.show(rows)
    elif arguments.what == "runs":
        runs.show(rows, selection.runs_of(arguments))
    else:
        from rich.console import Console

        selection.print_rows(rows)
        if arguments.what in CAPTIONS:
            Console().print(CAPTIONS[arguments.what])
    return 0


def _frameworks() -> list[dict[str, Any]]:
    from steelyard.environments import versions_of

    return [
        {
            "framework": name,
            "title": known.title,
            "versions": versions_of(name),
            "modes": [mode + (" (default)" if mode == known.default_mode else "") for mode in known.modes],
            "devices": list(known.devices),
            "knobs": list(known.knobs),
            "note": known.note,
        }
        for name, known in frameworks.listed().items()
    ]


def _workloads(options: Options, as_json: bool) -> list[dict[str, Any]]:
    """Ten rows, a column per framework: in how many presets it is certified on this machine."""
    from steelyard.certificates.coverage import coverage_of

    found = workloads.find(options.workload_folders)
    table = coverage_of(found.values())
    rows = []
    for name, cells in table.items():
        labels = {framework: coverage.label for framework, coverage in cells.items()}
        reasons = {key: each.reason for key, each in cells.items() if each.reason}
        more = {"title": found[name].title, "reasons": reasons} if as_json else {}
        rows.append({"workload": name, **labels, **more})
    return rows
