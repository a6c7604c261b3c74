"""View -> one HTML page that holds everything: text, style, plots and the library that draws them; no network."""

from __future__ import annotations

import base64
import gzip
import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from steelyard.report import details, notices, sections, stability, words
from steelyard.report.styles import styles
from steelyard.statistics.sentences import percent

if TYPE_CHECKING:
    from collections.abc import Iterable

    from steelyard.report.figures import Figure
    from steelyard.report.model import View
    from steelyard.report.sections import Workload
    from steelyard.results.record import Protocol

TEMPLATES = Path(__file__).parent / "templates"
PAGE = "page.html.jinja"
COMPRESSION = 6
"""Of gzip: 9 takes twice as long for 1 % less."""


def render(view: View) -> str:
    """Return the page of a run."""
    look = styles(view.comparisons)
    workloads = [sections.workload(comparison, look) for comparison in view.comparisons]
    machine = stability.machine(view)
    drawn = [figure for workload in workloads for figure in _figures(workload)] + ([machine] if machine else [])
    page: str = (
        _environment()
        .get_template(PAGE)
        .render(
            view=view,
            record=view.record,
            study=view.record.plan.study,
            options=details.untabled(asdict(view.record.plan.options)),
            workloads=workloads,
            machine=machine,
            notices=notices.gather(view.warnings),
            when=words.moment(view.record.created),
            machine_line=words.machine(view.record.host),
            noise=noise(view),
            protocol=protocol(view.record.plan.protocol),
            intervals=words.INTERVALS,
            figures=embedded([figure.as_dict() for figure in drawn]),
            library=library() if drawn else "",
            style=_read("style.css"),
            drawing=_read("draw.js"),
            host=details.host_facts(view.record.host),
        )
    )
    return page


def noise(view: View) -> str:
    """Return what is known of the machine's noise, in a sentence."""
    floor = view.noise
    if not floor.measured:
        return f"Not measured: {percent(floor.s_d0)} from round to round was assumed."
    return f"{percent(floor.s_d0)} from round to round, measured by comparing one framework with itself {floor.rounds} times."


def protocol(used: Protocol) -> str:
    """Return a protocol's name and what it does."""
    return f"{used.name}: {used.summary}."


def embedded(values: Any) -> str:
    """Return JSON that may stand inside a script element: nothing in it can close the element or open another."""
    text = json.dumps(values, allow_nan=False, separators=(",", ":"))
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")


def library() -> str:
    """Return plotly.js (MIT licence), packed by gzip into base64: 1.9 MB instead of 4.8 on the way to a phone."""
    from plotly.offline import get_plotlyjs

    packed = gzip.compress(get_plotlyjs().encode(), COMPRESSION, mtime=0)
    return base64.b64encode(packed).decode("ascii")


def _figures(workload: Workload) -> Iterable[Figure]:
    yield from (part.forest for part in workload.inputs if part.forest)
    yield from workload.figures


def _environment() -> Any:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined
    from markupsafe import Markup

    made = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= {
        "brackets": lambda sentence: Markup(sections.brackets(sentence)),
        "facts": details.facts,
        "tables": details.tables,
        "untabled": details.untabled,
        "unsaid": lambda proof: {name: value for name, value in proof.items() if name not in ("passed", "sentence")},
    }
    return made


def _read(name: str) -> str:
    return (TEMPLATES / name).read_text(encoding="utf-8")
