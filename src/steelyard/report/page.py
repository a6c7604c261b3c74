"""Write a view as one self-contained HTML page with text, style, plots and the plotting library. It needs no network."""

import base64
import gzip
import hashlib
import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path
from typing import Any

from jinja2 import BytecodeCache, Environment, FileSystemLoader, StrictUndefined
from jinja2.bccache import Bucket
from markupsafe import Markup
from plotly.offline import get_plotlyjs

from steelyard.analysis import formatting, headlines, nodes, notices, published, summaries
from steelyard.analysis.model import Comparison, View
from steelyard.analysis.summaries import Summary
from steelyard.report import blocks as blocks_of_page
from steelyard.report import privacy
from steelyard.report.blocks import ON_PAGE, Block, within
from steelyard.report.figures import Figure
from steelyard.report.plots.ratio_bars import RatioBars, ratio_bars
from steelyard.report.sections import OF_RUN, folded, navigation
from steelyard.report.sections.run_subject import RunSection, RunSubject
from steelyard.report.sections.subject import Subject
from steelyard.report.styles import Styles, styles
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
    """One comparison on the page, with its sections."""

    comparison: Comparison
    blocks: Sequence[Block]

    @property
    def figures(self) -> list[Figure]:
        """The plots of all sections."""
        return blocks_of_page.figures(self.blocks)

    @property
    def explanations(self) -> dict[str, str]:
        """The explanations of the columns of its tables, by heading."""
        return blocks_of_page.explanations(self.blocks)

    @property
    def anchor(self) -> str:
        """The name of the section for links inside the page."""
        return re.sub(r"\W+", "-", self.comparison.group)


def _workload(subject: Subject) -> Workload:
    return Workload(subject.comparison, within(folded(subject), ON_PAGE))


def _summaries(view: View, known: Styles) -> list[tuple[Summary, RatioBars | None]]:
    """Return the summary of each comparison at the top of the page, with the drawing of its ratios."""
    found = [(comparison, summaries.of_comparison(comparison, view.comparisons)) for comparison in view.comparisons]
    return [(summary, ratio_bars(comparison, comparison.primary, known)) for comparison, summary in found if summary]


def render(view: View) -> str:
    """Return the page of a run."""
    style, host = styles(view.comparisons), dict(view.record.host)
    known = replace(view.record, command=addresses.command(view.record.command))
    workloads = [_workload(Subject(each, view.comparisons, style, view.name)) for each in view.comparisons]
    tasks = {each.task for each in view.comparisons}
    in_tables = {name: text for workload in workloads for name, text in workload.explanations.items()}
    by_time, terms = view.quantity is STEP_TIME, glossary(view.quantity, tasks, in_tables)
    style_text, drawing, tables = read("style.css"), read("draw.js"), read("tables.js")
    sections = _sections(RunSubject(view, terms.texts))
    figures = [figure for workload in workloads for figure in workload.figures]
    figures += [figure for _, content in sections for figure in blocks_of_page.figures(content)]
    return (
        environment(terms)
        .get_template(PAGE)
        .render(
            view=view,
            record=known,
            workloads=workloads,
            sections=sections,
            navigation=partial(navigation, [section for section, _ in sections]),
            summaries=_summaries(view, style),
            most_clauses=summaries.MOST_CLAUSES,
            few_clauses=summaries.FEW_CLAUSES,
            errors=notices.gather(each for each in view.warnings if each.severity == "error"),
            question=known.plan.study.question if by_time else headlines.basis(in_task(view.quantity, view.task)),
            redone=published.documents(view),
            rule="" if by_time else fill(headlines.RULE, view.task),
            intervals=headlines.INTERVALS,
            when=formatted.moment(known.created),
            machine_line=nodes.machine_line(known, view.disturbances, formatted.machine(host)),
            figures=embedded([figure.as_dict() for figure in figures]),
            library=library() if figures else "",
            terms=terms.texts,
            style=style_text,
            drawing=drawing,
            tables=tables,
            policy=policy([tables, drawing, get_plotlyjs()], [style_text, ""]),
        )
    )


def _sections(subject: RunSubject) -> list[tuple[RunSection, list[Block]]]:
    """Return the sections of a run that have something to show on the page, with their blocks."""
    made = [(section, within(section.blocks(subject), ON_PAGE)) for section in OF_RUN]
    return [(section, content) for section, content in made if content]


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
        "default-src": "'none'",
        "script-src": _hashes(scripts),
        "style-src-elem": _hashes(styles),
        "style-src-attr": "'unsafe-inline'",
        "img-src": "data:",
        "base-uri": "'none'",
        "form-action": "'none'",
    }
    return "; ".join(f"{name} {sources}" for name, sources in rules.items())


def _hashes(texts: Iterable[str]) -> str:
    digests = (hashlib.sha256(text.encode()).digest() for text in texts)
    return " ".join(f"'sha256-{base64.b64encode(digest).decode('ascii')}'" for digest in digests)


def environment(terms: Glossary) -> Environment:
    """Return the environment that renders the templates of pages with these terms."""
    loader = FileSystemLoader(TEMPLATES)
    found = Environment(
        loader=loader,
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_shared,
        bytecode_cache=COMPILED,
    )
    found.filters.update(explained=lambda sentence: terms.marked(privacy.without_names(sentence)), term=terms.button)
    found.filters.update(anchor=anchor, build=formatting.build, describe=headlines.describe)
    return found


def _shared(value: Any) -> Any:
    """Return a value for the page: texts of the record without user names and home folders, and HTML unchanged."""
    return value if isinstance(value, Markup) else privacy.without_names(str(value))


def read(name: str) -> str:
    """Return the text of a file in the folder of the templates."""
    return (TEMPLATES / name).read_text(encoding="utf-8")
