"""`steelyard port new|check|show`: two existing models, unmodified: are they the same, and where do they part?"""

import argparse
import datetime as dt
from contextlib import closing
from pathlib import Path

from steelyard.cli.commands import selection
from steelyard.errors import UserError
from steelyard.files.paths import runs_folder
from steelyard.results import port_record

CHECKS = "ports"


def execute(arguments: argparse.Namespace) -> int:
    """Write a folder to fill in, check one, or show a record again; a check ends with 0 equal, 1 different, 2 unclear."""
    return {"new": _new, "check": _check, "show": _show}[arguments.action](arguments)


def _new(arguments: argparse.Namespace) -> int:
    from steelyard.port import scaffold

    folder = scaffold.write(Path(arguments.folder).expanduser().absolute(), arguments.frameworks)
    if arguments.json:
        selection.print_json({"folder": folder, "files": sorted(path.name for path in folder.iterdir())})
        return 0
    print(f"Created {folder}. Let model() in both files return your models, describe the inputs in port.toml, then:")
    print(f"  steelyard port check {arguments.folder}")
    return 0


def _check(arguments: argparse.Namespace) -> int:
    from steelyard.port import check, definition, interpreters

    port = definition.read(Path(arguments.folder))
    with closing(selection.screen_of(arguments)) as screen:
        pythons = interpreters.of(port, screen)
        screen.stage("Port check")
        record = check.check(port, pythons, screen.say, arguments.silence_s)
    folder = _record_folder(arguments, port.folder.name)
    port_record.write(folder, record)
    return _shown(arguments, record, folder)


def _show(arguments: argparse.Namespace) -> int:
    folder = Path(arguments.folder).expanduser().absolute()
    return _shown(arguments, port_record.read(folder), folder)


def _record_folder(arguments: argparse.Namespace, name: str) -> Path:
    """Return a new folder for the record: the one that is named, or one of this time beside the runs."""
    if arguments.output:
        folder = Path(arguments.output).expanduser().absolute()
        if (folder / port_record.FILE).exists():
            raise UserError(f"{folder} holds the record of an earlier check. Name another folder with --output.")
    else:
        stamp = dt.datetime.now(dt.UTC).strftime("%Y%m%d-%H%M%S-%f")
        folder = runs_folder() / CHECKS / f"{name}-{stamp}"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _shown(arguments: argparse.Namespace, record: port_record.PortRecord, folder: Path) -> int:
    """Print a record, write its page beside it, and return the exit code of its verdict."""
    from steelyard.analysis import port_findings
    from steelyard.report import small_page
    from steelyard.report.sections import port_check

    written = small_page.write(port_check.page(record), folder / "report.html")
    if arguments.json:
        selection.print_json({**port_findings.json_of(record), "folder": folder})
    else:
        selection.print_blocks(port_check.lines(record))
        print(f"\nPage: {written}")
    return port_findings.verdict(record).exit_code
