"""`steelyard env create|list|remove`: manage the isolated environments."""

import argparse
from contextlib import closing

from steelyard.catalog import frameworks
from steelyard.cli.commands import selection
from steelyard.errors import UserError


def execute(arguments: argparse.Namespace) -> int:
    """Create, list or remove environments; the exit code is 1 if one could not be created."""
    return {"create": _create, "list": _list, "remove": _remove}[arguments.action](arguments)


def _create(arguments: argparse.Namespace) -> int:
    from steelyard import environments

    names = map(environments.EnvironmentName.parse, arguments.names or frameworks.contenders())
    with closing(selection.screen_of(arguments)) as screen:
        planned = environments.plan_environments(environments.expanded(names), arguments.device)
        results = environments.ensure_all(planned, environments.shown_on(screen, failures=False))
    failures = [found.sentence for found in results.values() if isinstance(found, environments.Failure)]
    for found in results.values():
        if isinstance(found, environments.Environment):
            print(f"{found.name} {found.version}: {found.python}")
    for sentence in failures:
        print(f"steelyard: {sentence}")
    return int(bool(failures))


def _list(arguments: argparse.Namespace) -> int:
    from steelyard import environments

    rows = environments.list_environments()
    if arguments.json:
        selection.print_json([row.to_dict() for row in rows])
    elif not rows:
        print("There are no environments yet. The next run creates those it needs.")
    else:
        table = [(each.name, each.accelerator, f"{each.size_bytes / 2**20:,.0f} MiB", each.state) for each in rows]
        selection.print_table(table, "environment", "accelerator", "size", "state")
        print(f"\nThey are in {environments.environments_folder()}")
        if any(each.state == environments.UNCHECKED for each in rows):
            print("Unchecked: files were touched since the last check. The next run that needs them checks again.")
    return 0


def _remove(arguments: argparse.Namespace) -> int:
    from steelyard import environments

    if not arguments.names:
        raise UserError("Name the environments to remove, or write 'all'. To list them: steelyard env list")
    for row in environments.remove(arguments.names):
        print(f"Removed {row.name} {row.version} ({row.size_bytes / 2**20:,.0f} MiB).")
    return 0
