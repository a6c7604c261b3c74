"""Write a view as one self-contained HTML page with text, style, plots and the plotting library. It needs no network."""

import base64
import gzip
import hashlib
import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import BytecodeCache, Environment, FileSystemLoader, StrictUndefined
from jinja2.bccache import Bucket
from markupsafe import Markup
from plotly.offline import get_plotlyjs

from steelyard.analysis import formatting, headlines, nodes, published, summaries, tuned, warnings
from steelyard.analysis.model import Comparison, View
from steelyard.report import blocks as blocks_of_page
from steelyard.report import details, privacy
from steelyard.report.blocks import ON_PAGE, Block, within
from steelyard.report.figures import Figure
from steelyard.report.plots import stability
from steelyard.report.sections import OF_COMPARISON
from steelyard.report.sections.subject import Subject
from steelyard.report.styles import styles
from steelyard.report.terms import Glossary, anchor, glossary
from steelyard.results import addresses
from steelyard.results.quantities import STEP_TIME, in_task
from steelyard.wording import formatted
from steelyard.wording.task_words import fill

TEMPLATES = Path(__file__).parent / "templates"
PAGE = "page.html.jinja"
COMPRESSION = 6
"""Level of gzip: level 9 takes twice as long and saves 1 %."""


class Compiled(BytecodeCache):
    """Keeps the compiled templates of this process, because environments with other terms have the same templates.

    To compile those of a page takes most of the time in which one is written.
    """

    def __init__(self) -> None:
        self._code: dict[str, bytes] = {}

    def load_bytecode(self, bucket: Bucket) -> None:
        if kept := self._code.get(bucket.key):
            bucket.bytecode_from_string(kept)

    def dump_bytecode(self, bucket: Bucket) -> None:
        self._code[bucket.key] = bucket.bytecode_to_string()


COMPILED = Compiled()


@dataclass(frozen=True)
class Workload:
    """One comparison on the page: its sections by name."""

    comparison: Comparison
    blocks: dict[str, Sequence[Block]]

    @property
    def figures(self) -> list[Figure]:
        """The plots of all sections."""
        return [figure for blocks in self.blocks.values() for figure in blocks_of_page.figures(blocks)]

    @property
    def explanations(self) -> dict[str, str]:
        """The explanations of the columns of its tables, by heading."""
        parts = [blocks_of_page.explanations(blocks) for blocks in self.blocks.values()]
        return {heading: text for part in parts for heading, text in part.items()}

    @property
    def anchor(self) -> str:
        """The name of the section for links inside the page."""
        return re.sub(r"\W+", "-", self.comparison.group)


def _workload(subject: Subject) -> Workload:
    return Workload(subject.comparison, {name: within(make(subject), ON_PAGE) for name, make in OF_COMPARISON.items()})


def render(view: View) -> str:
    """Return the page of a run."""
    style, host = styles(view.comparisons), dict(view.record.host)
    known = replace(view.record, command=addresses.command(view.record.command))
    workloads = [_workload(Subject(each, view.comparisons, style, view.name)) for each in view.comparisons]
    machine = stability.machine(view)
    figures = [figure for workload in workloads for figure in workload.figures] + ([machine] if machine else [])
    tasks = {each.task for each in view.comparisons}
    in_tables = {name: text for workload in workloads for name, text in workload.explanations.items()}
    by_time, terms = view.quantity is STEP_TIME, glossary(view.quantity, tasks, in_tables)
    style_text, drawing = read("style.css"), read("draw.js")
    return environment(terms).get_template(PAGE).render(
        view=view, record=known, workloads=workloads, machine=machine,
        summaries=[found for each in view.comparisons if (found := summaries.of_comparison(each, view.comparisons))],
        most_clauses=summaries.MOST_CLAUSES, notices=warnings.gather(view.warnings),
        question=known.plan.study.question if by_time else headlines.basis(in_task(view.quantity, view.task)),
        redone=published.section(view), tuned=tuned.section(view),
        rule="" if by_time else fill(headlines.RULE, view.task), intervals=headlines.INTERVALS,
        options=details.without_tables(asdict(known.plan.options)), when=formatted.moment(known.created),
        machine_line=nodes.machine_line(known, view.disturbances, formatted.machine(host)),
        nodes=nodes.rounds(view.disturbances), pooled=nodes.POOLED, host=details.host_facts(host),
        figures=embedded([figure.as_dict() for figure in figures]), library=library() if figures else "",
        terms=terms.texts, style=style_text, drawing=drawing, policy=policy([drawing, get_plotlyjs()], [style_text, ""]),
    )  # fmt: skip


def embedded(values: Any) -> str:
    """Return JSON for a script element, escaped so that it cannot close the element or open another."""
    text = privacy.without_names(json.dumps(values, allow_nan=False, separators=(",", ":")))
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")


@cache
def library() -> str:
    """Return plotly.js (MIT licence) as base64 of its gzip: 1.9 MB instead of 4.8."""
    packed = gzip.compress(get_plotlyjs().encode(), COMPRESSION, mtime=0)
    return base64.b64encode(packed).decode("ascii")


def policy(scripts: Iterable[str], styles: Iterable[str]) -> str:
    """Return the Content-Security-Policy of a page, which allows these scripts and style sheets only.

    plotly.js adds an empty style sheet, which it fills later, and sets the style of single elements. Browsers refuse the style
    sheet that it adds for maps, which no plot needs.
    """
    rules = {
        "default-src": "'none'", "script-src": _hashes(scripts), "style-src-elem": _hashes(styles),
        "style-src-attr": "'unsafe-inline'", "img-src": "data:", "base-uri": "'none'", "form-action": "'none'",
    }  # fmt: skip
    return "; ".join(f"{name} {sources}" for name, sources in rules.items())


def _hashes(texts: Iterable[str]) -> str:
    digests = (hashlib.sha256(text.encode()).digest() for text in texts)
    return " ".join(f"'sha256-{base64.b64encode(digest).decode('ascii')}'" for digest in digests)


def environment(terms: Glossary) -> Environment:
    """Return the environment that renders the templates of pages with these terms."""
    loader = FileSystemLoader(TEMPLATES)
    found = Environment(
        loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True, finalize=_shared,
        bytecode_cache=COMPILED,
    )  # fmt: skip
    found.filters.update(explained=lambda sentence: terms.marked(privacy.without_names(sentence)), term=terms.button)
    found.filters.update(anchor=anchor, build=formatting.build, describe=headlines.describe, facts=details.facts)
    found.filters.update(
        lines=published.lines, tables=details.tables, without_tables=details.without_tables, remaining=_remaining
    )
    return found


def _shared(value: Any) -> Any:
    """Return a value for the page: texts of the record without user names and home folders, and HTML unchanged."""
    return value if isinstance(value, Markup) else privacy.without_names(str(value))


def _remaining(proof: dict[str, Any]) -> dict[str, Any]:
    """Return the fields of a certificate that the page does not show elsewhere."""
    return {name: value for name, value in proof.items() if name not in ("passed", "sentence")}


def read(name: str) -> str:
    """Return the text of a file in the folder of the templates."""
    return (TEMPLATES / name).read_text(encoding="utf-8")
