"""Sentences about strategies: up to three for a comparison, and one line for every contender."""

from __future__ import annotations

from typing import TYPE_CHECKING

from steelyard.analysis import formatting, scaling
from steelyard.statistics import sentences
from steelyard_worker import strategy_kinds
from steelyard_worker.strategy_kinds import ALONE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from steelyard.analysis.scaling import Scaled, Weak


def in_short(rows: Sequence[Scaled]) -> list[str]:
    """Return the share of the exchange in a step by framework, how many contenders shorten the step, and the memory.

    Memory is mentioned for ranks that divide the tensors of one process.
    """
    return [sentence for sentence in (_exchanges(rows), _speed_ups(rows), _memory(rows)) if sentence]


def _exchanges(rows: Sequence[Scaled]) -> str:
    spans = _spans([(row, row.exchange) for row in rows if row.exchange])
    return f"Of a step, the exposed exchange takes {spans}." if spans else ""


def _memory(rows: Sequence[Scaled]) -> str:
    spans = _spans([(row, scaling.as_share(row.memory)) for row in rows if row.memory])
    return (
        f"Where ranks divide weights or the network, the largest has {spans} of the peak memory of one process."
        if spans
        else ""
    )


def _spans(found: Sequence[tuple[Scaled, scaling.Share]]) -> str:
    """Return the shares by framework: of a single strategy with the interval, of several the least and the most."""
    by_framework: dict[str, list[tuple[str, scaling.Share]]] = {}
    for row, share in found:
        framework, _, strategy = row.contender.title.partition(", ")
        by_framework.setdefault(framework, []).append((strategy, share))
    return sentences.listed([f"{_span(shares)} in {framework}" for framework, shares in by_framework.items()])


def _span(found: list[tuple[str, scaling.Share]]) -> str:
    if len(found) == 1:
        ((strategy, share),) = found
        text = formatting.of_share(share)
        return f"{text} ({strategy})" if share.enough else f"{text.value} {_where(strategy, share)}"
    least, *_, most = sorted(found, key=lambda each: each[1].value)
    return " to ".join(
        f"{formatting.percent_text(share.value)} {_where(strategy, share)}" for strategy, share in (least, most)
    )


def _where(strategy: str, share: scaling.Share) -> str:
    return f"({strategy})" if share.enough else f"({strategy}, {sentences.NOT_ENOUGH})"


def _speed_ups(rows: Sequence[Scaled]) -> str:
    """Return how many contenders have a shorter step than one process. Asynchronous ranks have lines of their own."""
    counted = [row for row in rows if row.speed_up and strategy_kinds.of(row.kind).waits]
    ratios = [row.speed_up for row in counted if row.speed_up]
    if len(ratios) < 2:
        return ""
    others = sum(row.computes == scaling.OTHER for row in counted)
    which = f" ({others} {'computes' if others == 1 else 'compute'} {scaling.OTHER})" if others else ""
    shorter, longer = sum(each.low > 1 for each in ratios), sum(each.high < 1 for each in ratios)
    undecided = len(ratios) - shorter - longer
    parts = [f"{_make(shorter)} a step shorter than it is in one process of the same framework"]
    parts += [f"{_make(longer)} it longer"] if longer else []
    parts += [f"{undecided} {'is' if undecided == 1 else 'are'} undecided"] if undecided else []
    return f"Of {len(ratios)} trainings over several parts{which}, {sentences.listed(parts)}."


def _make(number: int) -> str:
    return "none makes" if not number else f"{number} {'makes' if number == 1 else 'make'}"


def line(row: Scaled) -> str:
    """Return the sentence of the terminal about one contender."""
    name = f"{row.contender.title}{f' ({row.computes})' if row.computes == scaling.OTHER else ''}"
    if not row.speed_up or not row.single:
        reason = (
            row.computes if row.computes not in (scaling.SAME, scaling.OTHER) else "no single process to compare with"
        )
        return f"{name}: no speed-up, {reason}."
    speed_up, efficiency = formatting.of_ratio(row.speed_up), formatting.of_share(row.efficiency)
    parts = [
        f"{name}: {speed_up} the speed of {row.single.case.strategy}",
        f"efficiency {efficiency.value} of {row.parts} parts",
    ]
    if row.kind != ALONE and row.shares_batch:
        parts.append(f"exposed exchange {formatting.of_share(row.exchange) if row.exchange else not_measured(row)}")
    if row.idle:
        ideal = f" (at best {formatting.percent_text(row.ideal_idle)})" if row.ideal_idle is not None else ""
        parts.append(f"idle {formatting.of_share(row.idle)}{ideal}")
    if row.memory:
        parts.append(
            f"peak memory of its largest rank {formatting.of_share(scaling.as_share(row.memory))} of that of one process"
        )
    return f"{'; '.join(parts)}."


def weak_line(each: Weak) -> str:
    """Return the sentence of the terminal about a contender with the single process's batch on every part."""
    return (
        f"{each.contender.title}, batch {each.batch}: overhead {formatting.of_share(each.overhead)} beside {each.single.title} "
        f"with batch {each.single_batch}."
    )


def not_measured(row: Scaled) -> str:
    """Return the words for an unknown exposed exchange, with the row that is missing for it."""
    return (
        "not measured"
        if row.without
        else f"not measured, as the row {ALONE}:{row.parts} is missing (--strategy {ALONE}:{row.parts})"
    )
