"""`steelyard list studies`: every study with its question, its sizes, and their times."""

from typing import Any

from steelyard import feasibility
from steelyard.catalog import workloads
from steelyard.catalog.workloads import Workload
from steelyard.errors import UserError
from steelyard.plan import estimate, resolve, studies
from steelyard.plan.options import Options
from steelyard.plan.studies import Study


def rows() -> list[dict[str, Any]]:
    """Return every study with its sizes; `seconds` are those of the fewest rounds, None where the plan is impossible."""
    known, described = feasibility.known_here(), workloads.find()
    return [
        {
            "study": study.name,
            "title": study.title,
            "question": study.question,
            "sizes": [
                {
                    "size": size,
                    "summary": study.sizes[size].summary if size else "",
                    "seconds": _seconds(study, size, described, known),
                }
                for size in study.sizes or ("",)
            ],
        }
        for study in studies.all_studies().values()
    ]


def show(found: list[dict[str, Any]]) -> None:
    """Print the studies, each with a line per size."""
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    console = Console(highlight=False)
    for study in found:
        console.print(f"[bold]{study['study']}[/]  {escape(study['question'])}")
        table = Table(box=None, pad_edge=False, show_header=False, padding=(0, 2, 0, 0))
        table.add_column(min_width=2)
        table.add_column(min_width=1)
        table.add_column(ratio=1)
        table.add_column(justify="right", no_wrap=True, style="dim")
        for size in study["sizes"]:
            time = f"about {estimate.in_words(size['seconds'])}" if size["seconds"] else "unknown"
            table.add_row("", size["size"], escape(size["summary"]), time)
        console.print(table)
    console.print(
        "\nRun one with: steelyard run STUDY --size NAME. Times are rough estimates for this machine, for the fewest rounds, "
        "the profiles and the exchange of ranks by itself, without making environments and certificates."
    )


def _seconds(study: Study, size: str, described: dict[str, Workload], known: estimate.Known) -> float | None:
    try:
        plan = resolve.plan(Options(study=study.name, size=size), described)
    except UserError:
        return None
    found = estimate.estimate(plan, known)
    return found["rounds"] + found["exchange"] + found["profiles"]
