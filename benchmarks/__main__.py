"""Run every benchmark, or those named: `python -m benchmarks startup storage`."""

from __future__ import annotations

import importlib
import sys
import time

from rich.console import Console
from rich.table import Table

ALL = ("startup", "environments", "storage", "decisions", "preparation", "workers", "implementations", "references")


def main(names: list[str]) -> int:
    """Print one table of ratios with their limits; the exit code is 1 when one is missed, and 2 when a name is not known."""
    if unknown := [name for name in names if name not in ALL]:
        print(f"There is no benchmark {unknown[0]}; there are {', '.join(ALL)}.", file=sys.stderr)
        return 2
    console = Console()
    table = Table("", "measured", "limit", "", "how", box=None, pad_edge=False)
    missed = 0
    for name in names or ALL:
        begin = time.monotonic()
        console.print(f"[dim]{name} ...[/]", end=" ")
        rows = importlib.import_module(f"benchmarks.{name}").measure()
        console.print(f"[dim]{time.monotonic() - begin:.0f} s[/]")
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


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
