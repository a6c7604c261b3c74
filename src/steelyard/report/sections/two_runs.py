"""Two results of a run, or two runs, on a terminal: a table of two runs, then a sentence for every result."""

from __future__ import annotations

from typing import TYPE_CHECKING

from steelyard.analysis import changes
from steelyard.report.blocks import ON_TERMINAL, Paragraph, Role, Small, Strong, line, plain_table
from steelyard.wording.formatted import NO_VALUE
from steelyard.wording.notation import quantity_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from steelyard.analysis.compare import Finding
    from steelyard.report.blocks import Block


def lines(found: Sequence[Finding]) -> Iterator[Block]:
    """Yield the table of two runs, the sentence and the differences of every result, then what applies to all results."""
    if found[0].variant:
        headings = ["workload", "input", "contender", found[0].b, found[0].a, "after / before"]
        yield plain_table("", "", headings, map(_row, found), media=ON_TERMINAL)
        yield line("")
    else:
        yield line(f"In run {found[0].run}:")
    yield from _results(found)
    of_runs = [sentence for each in found for sentence in changes.sentences(each.differences, changes.COMMON)]
    unknown = [each.cause.sentence for each in found if each.cause.sentence and not each.cause.classes]
    yield from map(line, dict.fromkeys([*of_runs, *unknown]))


def _results(found: Sequence[Finding]) -> Iterator[Block]:
    shown = set[tuple[str, str]]()
    for each in found:
        yield line(Strong(each.group), " ", Small(each.input), f"  {each.sentence}")
        about = [each.cause.sentence] if each.cause.classes else []
        if (each.group, each.variant) not in shown:
            about += changes.sentences(each.differences, changes.OWN)
        shown.add((each.group, each.variant))
        yield from (Paragraph((sentence,), Role.DETAIL, media=ON_TERMINAL) for sentence in about)


def _row(of: Finding) -> list[str]:
    """Return the values before and after, and their ratio with its interval."""
    values = (_value(of.unit, value) for value in (of.value_b, of.value_a))
    ratio = NO_VALUE if of.ratio is None else f"{of.ratio:.3f} [{of.low:.3f}, {of.high:.3f}]"
    return [of.group, of.input, of.title, *values, ratio]


def _value(unit: str, value: float | None) -> str:
    return NO_VALUE if value is None else quantity_text(unit, value)
