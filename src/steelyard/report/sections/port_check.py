"""A port check on a page and on a terminal: the verdict, the differences, all compared modules, and the map of tensors."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from steelyard.analysis import port_findings
from steelyard.report.blocks import ON_TERMINAL, Facts, Headline, aside, finding, line, plain_table
from steelyard.report.small_page import PageSection, SmallPage

if TYPE_CHECKING:
    from collections.abc import Iterator

    from steelyard.report.blocks import Block
    from steelyard.results.port_record import Difference, PortRecord, Side

QUESTION = "Do two models compute the same, and where do they part?"
MODULES = "Relative distances of what each pair of modules receives and returns, while both compute on the same values."
TRAINING = ("stage", "compared", "result")
DIFFERENCES = ("cause", "place", "receives", "returns", "part at the outputs")


def page(record: PortRecord) -> SmallPage:
    """Return the page of a check."""
    found = port_findings.verdict(record)
    first, *more = found.sentences
    causes = [finding(sentence) for sentence in found.causes]
    heading = f"{record.left.name} and {record.right.name}"
    sections = []
    if record.differences:
        table = plain_table(
            "", "Differences", _headings(record, DIFFERENCES), (_difference(each) for each in record.differences)
        )
        sections.append(PageSection("Differences", "differences", [table]))
    if record.compared:
        headings = _headings(record, ("kind", "receives", "returns"))
        rows = (
            [each.left, each.right, each.kind, _number(each.inputs), _number(each.outputs)] for each in record.compared
        )
        sections.append(PageSection("Modules", "modules", [aside(MODULES), plain_table("", "Modules", headings, rows)]))
    if record.training:
        table = plain_table("", "Training", TRAINING, map(port_findings.stage_words, record.training))
        sections.append(PageSection("Training", "training", [table, *_in_training(record)]))
    pairs = map(port_findings.pair_words, record.mapped)
    sections.append(PageSection("Tensors", "tensors", [plain_table("", "Tensors", _headings(record, ("how",)), pairs)]))
    sections.append(PageSection("Both models", "models", [Facts([_fact(record.left), _fact(record.right)])]))
    return SmallPage(
        f"port {record.port}",
        "port check",
        heading,
        QUESTION,
        [Headline(first), *causes, *(aside(sentence) for sentence in more if sentence not in found.causes)],
        sections,
        (),
    )


def _in_training(record: PortRecord) -> Iterator[Block]:
    found = [each for stage in record.training for each in stage.differences]
    if found:
        yield plain_table("", "Differences in training", _headings(record, DIFFERENCES), map(_difference, found))


def lines(record: PortRecord) -> Iterator[Block]:
    """Yield what a terminal shows."""
    for sentence in port_findings.verdict(record).sentences:
        yield line(sentence)
    if record.differences:
        rows = [_difference(each) for each in record.differences]
        yield plain_table("", "", _headings(record, DIFFERENCES), rows, media=ON_TERMINAL)


def _headings(record: PortRecord, more: tuple[str, ...]) -> list[str]:
    return [record.left.name, record.right.name, *more]


def _difference(of: Difference) -> list[str]:
    part = "" if of.part is None else f"{of.part:.1%}"
    return [of.left, of.right, of.cause or "unknown", of.where, _number(of.inputs), _number(of.outputs), part]


def _fact(side: Side) -> tuple[str, str]:
    versions = ", ".join(f"{name} {version}" for name, version in side.libraries.items())
    return side.name, f"{side.kind}, {side.tensors} tensors, {side.parameters:,} trained parameters; {versions}"


def _number(value: float) -> str:
    return "another shape" if math.isinf(value) else "0" if value == 0 else f"{value:.1e}"
