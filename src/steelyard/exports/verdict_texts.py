"""The verdict tables of a run as texts, with what a reader needs to judge and repeat them; the same for Markdown and LaTeX."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from steelyard.analysis import formatting, headlines, nodes
from steelyard.analysis.notices import gather
from steelyard.report import privacy
from steelyard.results import addresses
from steelyard.wording import formatted

if TYPE_CHECKING:
    from collections.abc import Iterator

    from steelyard.analysis.model import Comparison, Contender, View

KEY_LENGTH = 12
"""Digits of a certificate's key in a table."""


@dataclass(frozen=True)
class VerdictTable:
    """The table of one input. `title` and `label`: the comparison and its group; `heading`: the input, in words."""

    title: str
    label: str
    heading: str
    headline: str
    sentence: str
    headings: tuple[str, ...]
    rows: list[tuple[str, ...]]


@dataclass(frozen=True)
class VerdictTexts:
    """All tables of a run. `left_out`, `warnings`: sentences. `facts`: (name, value) pairs; `command` repeats the run."""

    run: str
    tables: list[VerdictTable]
    left_out: list[str]
    warnings: list[str]
    facts: list[tuple[str, str]]
    command: str


def of_view(view: View) -> VerdictTexts:
    """Return the tables of all comparisons and inputs. Home folders and the name of the user are hidden in every text."""
    pairs = [(each, source) for each in view.comparisons for source in each.rankings]

    def hidden(text: str) -> str:
        return privacy.without_names(text.replace(str(view.folder), view.name))

    return VerdictTexts(
        view.name,
        [_table(*pair) for pair in pairs],
        [hidden(each) for each in _left_out(view)],
        [hidden(each) for each in _warnings(view)],
        [(name, hidden(value)) for name, value in _facts(view) if value],
        hidden(addresses.command(view.record.command)),
    )


def _table(comparison: Comparison, source: str) -> VerdictTable:
    quantity = comparison.quantity
    measured = [each for each in comparison.contenders if source in each.standings]
    headings = (
        "framework",
        "version, mode",
        quantity.label,
        f"ratio to the {quantity.best}",
        "processes",
        "certificate",
    )
    return VerdictTable(
        comparison.title,
        comparison.group,
        headlines.heading(comparison, source),
        headlines.headline(comparison, source),
        headlines.below_headline(comparison, source),
        headings,
        [_row(comparison, each, source) for each in measured],
    )


def _row(comparison: Comparison, contender: Contender, source: str) -> tuple[str, ...]:
    return (
        contender.name,
        formatting.build(contender),
        str(formatting.standing(comparison, contender, source)),
        str(formatting.ratio(comparison, contender, source)),
        str(contender.standings[source].processes),
        certificate(contender),
    )


def certificate(contender: Contender) -> str:
    """Return the state of a certificate, and the beginning of its key: a hash of everything that decides it."""
    key = str(contender.proof.details.get("key", ""))[:KEY_LENGTH]
    return f"{formatting.certificate(contender.proof)} {key}".strip()


def _left_out(view: View) -> Iterator[str]:
    for comparison in view.comparisons:
        skipped = [(each.title, f"Not measured. {each.reason}") for each in comparison.skipped]
        failed = [(each.title, f"Failed. {each.failure}.") for each in comparison.contenders if each.failure]
        yield from (f"{comparison.group}, {title}: {reason}" for title, reason in (*skipped, *failed))
    yield from (f"{each.group}, {each.title}: Not measured. {each.reason}" for each in view.missing)


def _warnings(view: View) -> Iterator[str]:
    for notice in gather(each for each in view.warnings if each.severity != "note"):
        for sentence, subjects in notice.findings:
            yield f"{'; '.join(subjects)}: {sentence}"


def _facts(view: View) -> list[tuple[str, str]]:
    known = view.record
    machine = nodes.machine_line(known, view.disturbances, formatted.machine(dict(known.host)))
    contenders = {each.case.environment: each for part in view.comparisons for each in part.contenders}
    versions = [f"{each.facts.title} {each.version}".strip() for each in contenders.values()]
    return [
        ("Machine", f"{machine} ({known.machine})" if known.machine else machine),
        ("Versions", ", ".join([*versions, f"steelyard {known.steelyard}, method {known.method}".strip()])),
        ("Run", f"{view.name}, {formatted.moment(known.created)}"),
        ("Price", str(view.price) if view.price else ""),
    ]
