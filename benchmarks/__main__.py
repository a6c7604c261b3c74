"""Run all benchmarks, or the named ones, as in `python -m benchmarks startup storage`."""

from __future__ import annotations

import argparse
import importlib
import sys
import time

from rich.console import Console
from rich.table import Table

ALL = (
    "startup",
    "environments",
    "storage",
    "pages",
    "ports",
    "decisions",
    "turns",
    "waits",
    "effort",
    "fixed_protocol",
    "first_look",
    "preparation",
    "workers",
    "implementations",
    "references",
    "ranks",
    "histories",
    "curves",
    "cluster",
    "daemons",
    "words",
    "standstill",
    "claims",
)


AGAINST = "pages"
"""The benchmark that can compare with another version."""


def main(names: list[str], against: str = "") -> int:
    """Print one table of values with their limits; the exit code is 1 if a limit is missed or a benchmark fails."""
    console = Console()
    table = Table("", "measured", "limit", "", "how", box=None, pad_edge=False)
    missed = 0
    for name in names or ALL:
        start = time.monotonic()
        console.print(f"[dim]{name} ...[/]", end=" ")
        try:
            more = {"against": against} if name == AGAINST else {}
            rows = importlib.import_module(f"benchmarks.{name}").measure(**more)
        except Exception:  # the others take hours, so their values must not be lost
            console.print_exception()
            missed += 1
            continue
        console.print(f"[dim]{time.monotonic() - start:.0f} s[/]")
        for row in rows:
            missed += not row.ok
            table.add_row(
                row.name,
                f"{row.value:.4g}",
                f"{row.sense} {row.limit:g}",
                "[green]met[/]" if row.ok else "[red]missed[/]",
                row.detail,
            )
    console.print(table)
    return int(missed > 0)


def _given(argv: list[str]) -> tuple[list[str], str]:
    """Return the names of benchmarks, and the version to compare with."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"{', '.join(ALL)} (default: all)")
    other = f"of `{AGAINST}`: a Git revision, or an interpreter with another version, to compare with"
    parser.add_argument("--against", metavar="VERSION", default="", help=other)
    arguments = parser.parse_args(argv)
    names: list[str] = arguments.names
    if unknown := [name for name in names if name not in ALL]:
        parser.error(f"there is no benchmark '{unknown[0]}'; choose from {', '.join(ALL)}")
    if arguments.against and AGAINST not in (names or ALL):
        parser.error(f"--against is an option of the benchmark '{AGAINST}'")
    return names, arguments.against


if __name__ == "__main__":
    sys.exit(main(*_given(sys.argv[1:])))
