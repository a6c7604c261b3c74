"""Steps that several commands share: build Options, find folders, start a run, choose the view, print a table."""

import argparse
import errno
import json
import os
import shlex
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from steelyard.catalog import user_networks
from steelyard.console import Screen
from steelyard.errors import ResumableError, UserError
from steelyard.files import paths
from steelyard.host.exclusive import StoppedWaiting
from steelyard.plan.options import Options
from steelyard.plan.run_plan import RunPlan
from steelyard.results import addresses, port_record, record, run_folders
from steelyard.results.port_record import PortRecord

if TYPE_CHECKING:
    from steelyard.report.blocks import Block


def options_of(arguments: argparse.Namespace) -> Options:
    """Return the arguments as Options. Arguments that a command lacks, or that were not given, have their defaults.

    From here on, the limit of silence also applies to processes that run the user's code.
    """
    given: dict[str, Any] = {}
    for field in fields(Options):
        value = getattr(arguments, field.name, None)
        if value is not None:
            given[field.name] = tuple(value) if isinstance(value, list) else value
    found = Options(**{**given, "external": dict(given.get("external", ()))})
    user_networks.allow(found.silence_s)
    return found


def of_port(arguments: argparse.Namespace, asked: Options) -> tuple[Options, PortRecord | None]:
    """Check both sides of a port; return the options of a run that times them, and the record; None with --no-certify."""
    from steelyard.ports import timing

    prepared = timing.prepared(Path(arguments.port), asked, screen_of(arguments))
    return prepared.options, prepared.record


def keep(checked: PortRecord | None, folder: Path) -> None:
    """Write the record of a port's check, if there is one, into the folder of the run that times its sides."""
    if checked:
        port_record.write(folder, checked)


def runs_of(arguments: argparse.Namespace) -> Path:
    """Return the folder that holds the runs."""
    return Path(arguments.runs).expanduser().absolute() if arguments.runs else paths.runs_folder()


@contextmanager
def begun(plan: RunPlan, root: Path, name: str, argv: Sequence[str] | None = None) -> Iterator[Path]:
    """Create a run folder with the record of a run, which the block carries out.

    If the run is refused before its first process, or stopped while it waits for its turn, the folder is removed, unless the
    user can continue the run. `argv`: the arguments that repeat the run; None: those of this command.
    """
    from steelyard.measure.launch import worker_hash
    from steelyard.results import removal

    folder = run_folders.new_folder(root, name)
    command = shlex.join(["steelyard", *addresses.without_addresses(list(sys.argv[1:] if argv is None else argv))])
    try:
        record.write(folder, record.new(plan, command, worker_hash()))
        yield folder
    except ResumableError:
        raise
    except (UserError, StoppedWaiting):
        removal.discard(folder)
        raise


def check_cache() -> None:
    """Reject a cache folder that cannot be written, before anything is created."""
    folder = paths.cache_folder()
    try:
        paths.make_private(folder)
        if not os.access(folder, os.W_OK | os.X_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
    except OSError as error:
        raise UserError(
            f"The cache folder {folder} cannot be written ({error.strerror}). Set STEELYARD_CACHE to another folder."
        ) from None


def screen_of(arguments: argparse.Namespace, plan: RunPlan | None = None) -> Screen:
    """Return the live view for a terminal, otherwise plain lines. `plan`: the plan of a run with rounds."""
    from steelyard.console import Screen

    if arguments.plain or not sys.stderr.isatty():
        return Screen()
    from steelyard.cli.live import LiveScreen

    return LiveScreen(plan)


def print_json(value: Any) -> None:
    """Print plain values for scripts."""
    print(json.dumps(value, indent=1, default=str))


def print_table(rows: Iterable[Iterable[str]], *columns: str) -> None:
    """Print rows under these headings, if there are any; texts may have rich's markup."""
    from rich.console import Console
    from rich.table import Column, Table

    # Users copy names, so they must be complete: a word that is too long for its column continues on the next line.
    headings = [Column(title, overflow="fold") for title in columns]
    table = Table(*headings, box=None, pad_edge=False, show_header=any(columns))
    for row in rows:
        table.add_row(*row)
    Console(highlight=False).print(table)


def print_blocks(blocks: "Iterable[Block]") -> None:
    """Print what a section shows."""
    from rich.console import Console

    from steelyard.report import terminal_blocks

    terminal_blocks.show(Console(highlight=False), blocks)


def print_rows(rows: list[dict[str, Any]]) -> None:
    """Print dictionaries with the same keys as a table; a list takes a line for each of its values."""
    texts = ([_text(value) for value in row.values()] for row in rows)
    print_table(texts, *rows[0])


def _text(value: object) -> str:
    return "\n".join(value) if isinstance(value, list) else str(value)
