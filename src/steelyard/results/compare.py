"""Two contenders of one run, or the same contenders in two runs: sentences and numbers for `compare`."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from steelyard.errors import UserError, nearest
from steelyard.statistics.sentences import percent, verdict_sentence
from steelyard.statistics.unpaired import welch

if TYPE_CHECKING:
    from steelyard.report.model import Comparison, Contender, View

ERROR = 0.05


@dataclass(frozen=True)
class Finding:
    """One comparison: `ratio` is the time of A over the time of B, None where there is no interval."""

    group: str
    input: str
    a: str
    b: str
    ratio: float | None
    low: float | None
    high: float | None
    sentence: str


def contenders(view: View, a: str, b: str) -> list[Finding]:
    """Compare two contenders in every group where both took part."""
    found = []
    for comparison in view.comparisons:
        left, right = _pick(comparison, a), _pick(comparison, b)
        if left and right and left is not right:
            found += [_pair(comparison, source, left, right) for source in comparison.rankings]
    if not found:
        arms = sorted({contender.variant for comparison in view.comparisons for contender in comparison.contenders})
        known = nearest(a if not _anywhere(view, a) else b, arms)
        raise UserError(f"No workload of run {view.name} has both '{a}' and '{b}'.{known}")
    return found


def runs(before: View, after: View) -> list[Finding]:
    """Compare every contender that both runs certified, on the same computation and the same machine."""
    _same_terms(before, after)
    older = {(c.group, x.case.id): (c, x) for c in before.comparisons for x in c.contenders}
    found = []
    for comparison in after.comparisons:
        for contender in comparison.contenders:
            if (comparison.group, contender.case.id) in older:
                found += _moved(
                    comparison,
                    older[comparison.group, contender.case.id][1],
                    contender,
                    before.name,
                    after.name,
                )
    if not found:
        raise UserError(f"Runs {before.name} and {after.name} have no contender in common.")
    return found


def _same_terms(before: View, after: View) -> None:
    if before.record.machine != after.record.machine:
        raise UserError(
            f"Runs {before.name} and {after.name} were measured on different machines; their times cannot be compared."
        )
    if before.record.method != after.record.method:
        raise UserError(
            f"Run {before.name} was measured by method {before.record.method}, {after.name} by method {after.record.method}: "
            "the way of measuring itself changed between them. See the changelog's section Measurement, and measure again."
        )


def _pick(comparison: Comparison, name: str) -> Contender | None:
    exact = [c for c in comparison.contenders if c.variant == name]
    loose = [c for c in comparison.contenders if name in (c.case.environment, c.case.framework)]
    if len(exact or loose) > 1:
        arms = ", ".join(c.variant for c in loose)
        raise UserError(f"'{name}' could be any of {arms} in {comparison.group}. Name one of them in full.")
    return next(iter(exact or loose), None)


def _anywhere(view: View, name: str) -> bool:
    return any(_pick(comparison, name) for comparison in view.comparisons)


def _pair(comparison: Comparison, source: str, left: Contender, right: Contender) -> Finding:
    titles = {c.case.id: f"{c.title} {c.version}".strip() for c in (left, right)}
    verdict = comparison.rankings[source].between(left.case.id, right.case.id)
    if verdict is None:
        doubtful = [c.title for c in (left, right) if c.proof.state != "certified"]
        reason = f"{' and '.join(doubtful)} not certified" if doubtful else "they share no round"
        return Finding(comparison.group, source, left.title, right.title, None, None, None, f"No verdict: {reason}.")
    sentence = verdict_sentence(verdict, titles) + "."
    return Finding(
        comparison.group, source, left.title, right.title, verdict.ratio, verdict.low, verdict.high, sentence
    )


def _moved(comparison: Comparison, old: Contender, new: Contender, before: str, after: str) -> list[Finding]:
    found = []
    for source in comparison.rankings:
        located = [[v for t in c.trials if (v := t.location_ns(source))] for c in (new, old)]
        estimate = welch(*located)
        if estimate is None or {old.proof.state, new.proof.state} != {"certified"}:
            found.append(
                Finding(
                    comparison.group,
                    source,
                    after,
                    before,
                    None,
                    None,
                    None,
                    f"{new.title}: too few certified processes to compare.",
                )
            )
            continue
        ratio = estimate.ratio(ERROR)
        found.append(
            Finding(
                comparison.group,
                source,
                after,
                before,
                ratio.value,
                ratio.low,
                ratio.high,
                _change(old, new, ratio.low, ratio.high),
            )
        )
    return found


def _change(old: Contender, new: Contender, low: float, high: float) -> str:
    versions = new.version if new.version == old.version else f"{old.version} -> {new.version}"
    span = f"[{low:.3f}, {high:.3f}] of the time before"
    if low <= 1 <= high:
        bound = percent(max(high, 1 / low) - 1)
        return f"{new.title} ({versions}): no change can be told, {span} (a change above {bound} is ruled out)."
    word = "faster" if high < 1 else "slower"
    return f"{new.title} ({versions}): {percent(abs(1 - math.sqrt(low * high)))} {word}, {span}."
