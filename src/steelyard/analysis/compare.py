"""Two contenders of one run, or the same contenders in two runs: sentences and numbers for `steelyard compare`."""

import math
from dataclasses import dataclass, field, replace
from typing import Any

from steelyard.analysis import changes, same_settings
from steelyard.analysis.changes import Cause, Difference
from steelyard.analysis.model import Comparison, Contender, View
from steelyard.analysis.same_settings import Unlike
from steelyard.errors import UserError, nearest
from steelyard.results.quantities import Quantity
from steelyard.statistics.intervals import Ratio
from steelyard.statistics.sentences import percent, verdict_sentence
from steelyard.statistics.unpaired import welch
from steelyard.wording.notation import quantity_text

ERROR = 0.05
MOST_NAMES = 3  # of packages that are named
THE_MACHINE = "the machine"


@dataclass(frozen=True)
class Finding:
    """One comparison. `ratio`: value of A / value of B, None without an interval; `ratio_of` says this in words.

    `value_a`, `value_b`: means over processes, in `unit`; None if none was measured. `run`: the run with both results.
    If two runs are compared, `a` is the later one, `variant` is their common result, and there are `differences` and a `cause`.
    """

    group: str
    input: str
    a: str
    b: str
    ratio: float | None
    low: float | None
    high: float | None
    sentence: str
    ratio_of: str
    value_a: float | None
    value_b: float | None
    unit: str
    run: str = ""
    variant: str = ""
    title: str = ""
    differences: tuple[Difference, ...] = ()
    cause: Cause = field(default_factory=Cause)


def contenders(view: View, a: str, b: str) -> list[Finding]:
    """Compare two contenders in every group that contains both."""
    found = []
    for comparison in view.comparisons:
        left, right = pick(comparison, a), pick(comparison, b)
        if left and right and left is not right:
            pairs = (_pair(comparison, source, left, right) for source in comparison.rankings)
            found += [replace(pair, run=view.name) for pair in pairs]
    if not found:
        names = sorted({contender.variant for comparison in view.comparisons for contender in comparison.contenders})
        known = nearest(b if any(pick(comparison, a) for comparison in view.comparisons) else a, names)
        raise UserError(f"No workload of run {view.name} has both '{a}' and '{b}'.{known}")
    return found


def runs(before: View, after: View, anyway: bool = False) -> list[Finding]:
    """Compare every contender that two runs have in common.

    Two results are comparable only where everything that decides the computation and its settings is equal; versions may
    differ. Otherwise a UserError names the fields that differ; with `anyway`, both values are returned without a verdict.
    """
    earlier = {
        (each.group, contender.variant): contender for each in before.comparisons for contender in each.contenders
    }
    pairs = [
        (comparison, old, new)
        for comparison in after.comparisons
        for new in comparison.contenders
        if (old := earlier.get((comparison.group, new.variant)))
    ]
    if not pairs:
        raise UserError(f"Runs {before.name} and {after.name} have no contender in common.")
    common = _differing_terms(before, after)
    found, differing = [], list(common)
    for comparison, old, new in pairs:
        terms = [*common, *map(_difference, same_settings.of_cases(old.case, new.case))]
        differing += terms
        facts = changes.differences((after, new), (before, old))
        for source in comparison.rankings:
            values = [_values(comparison.quantity, each, source) for each in (old, new)]
            ratio = None if terms else _ratio(old, new, *values)
            if terms:
                sentence = _side_by_side(comparison, new, values, terms)
            else:
                sentence = _change(comparison, new, ratio, _what_changed(before, after, old, new))
            cause = changes.cause((before, old), (after, new), comparison.quantity, source, ratio)
            finding = _finding(comparison, source, (after.name, before.name), (new, old), sentence, ratio)
            found.append(replace(finding, variant=new.variant, title=new.title, differences=facts, cause=cause))
    if differing and not anyway:
        terms = [_with_facts(each, before, after) for each in dict.fromkeys(differing)]
        raise UserError(
            f"Runs {before.name} and {after.name} did not measure the same thing; they differ in: {'; '.join(terms)}. "
            "With --anyway both are shown without a verdict."
        )
    return found


def _differing_terms(before: View, after: View) -> list[str]:
    """Return how two runs differ as a whole: machine, method, and schedules of their common groups."""
    old, new = before.record, after.record
    found = [THE_MACHINE] if old.machine != new.machine else []
    if old.method != new.method:
        where = "see the changelog's section Measurement"
        found.append(f"the method of measuring ({old.method} before, {new.method} after; {where})")
    earlier = {group.name: group for group in old.plan.groups}
    for group in new.plan.groups:
        if before_it := earlier.get(group.name):
            found += map(_difference, same_settings.of_schedules(before_it, group))
    return list(dict.fromkeys(found))


def _with_facts(term: str, before: View, after: View) -> str:
    """Return a term; that of the machine with the facts that differ."""
    facts = [changes.change(each) for each in changes.machines(after, before)] if term == THE_MACHINE else []
    return f"{term} ({', '.join(facts[:MOST_NAMES])})" if facts else term


def _difference(of: Unlike) -> str:
    return f"{of.name} ({of.first} before, {of.second} after)"


def pick(comparison: Comparison, name: str) -> Contender | None:
    """Return a contender by its name, or by its framework or environment if only one has that; None without any.

    UserError: several contenders have that framework or environment.
    """
    exact = [c for c in comparison.contenders if c.variant == name]
    loose = [c for c in comparison.contenders if name in (c.case.environment, c.case.framework)]
    if len(exact or loose) > 1:
        names = ", ".join(c.variant for c in loose)
        raise UserError(f"'{name}' could be any of {names} in {comparison.group}. Name one of them in full.")
    return next(iter(exact or loose), None)


def _pair(comparison: Comparison, source: str, left: Contender, right: Contender) -> Finding:
    titles = {c.case.id: f"{c.title} {c.version}".strip() for c in (left, right)}
    verdict = comparison.rankings[source].between(left.case.id, right.case.id)
    if verdict is None:
        uncertified = [c.title for c in (left, right) if c.proof.state != "certified"]
        reason = f"{' and '.join(uncertified)} not certified" if uncertified else "they share no round"
        return _finding(comparison, source, (left.title, right.title), (left, right), f"No verdict: {reason}.", None)
    sentence = verdict_sentence(verdict, titles, comparison.quantity.wording) + "."
    ratio = comparison.quantity.ratio(verdict)
    return _finding(comparison, source, (left.title, right.title), (left, right), sentence, ratio)


def _finding(
    comparison: Comparison,
    source: str,
    names: tuple[str, str],
    of: tuple[Contender, Contender],
    sentence: str,
    ratio: Ratio | None,
) -> Finding:
    """Return the comparison of two contenders, the first over the second. `names`: their names."""
    value, low, high = (ratio.value, ratio.low, ratio.high) if ratio else (None, None, None)
    quantity, (a, b) = comparison.quantity, names
    means = [sum(each) / len(each) if (each := _values(quantity, who, source)) else None for who in of]
    return Finding(
        comparison.group,
        source,
        a,
        b,
        value,
        low,
        high,
        sentence,
        f"{quantity.label} of {a} / {quantity.label} of {b}",
        means[0],
        means[1],
        quantity.unit,
    )


def _values(quantity: Quantity, contender: Contender, source: str) -> list[float]:
    return list(quantity.of_rounds({trial.job.round: trial for trial in contender.trials}, source).values())


def _side_by_side(comparison: Comparison, new: Contender, values: list[list[float]], terms: list[str]) -> str:
    """Return both values of results that are not comparable, with the reason."""
    unit = comparison.quantity.unit
    before, after = (quantity_text(unit, sum(each) / len(each)) if each else "nothing" for each in values)
    return f"{new.title}: {before} before, {after} after. Not comparable: {'; '.join(terms)}."


def _ratio(old: Contender, new: Contender, before: list[float], after: list[float]) -> Ratio | None:
    """Return by how much a quantity has changed; None if too few certified processes measured it."""
    estimate = welch(after, before)
    certified = {old.proof.state, new.proof.state} == {"certified"}
    return estimate.ratio(ERROR) if estimate and certified else None


def _what_changed(before: View, after: View, old: Contender, new: Contender) -> str:
    """Return the change of version, and the other differences between the software of two comparable results."""
    found = [new.version if new.version == old.version else f"{old.version} -> {new.version}"]
    packages = [_packages(each, old.case.environment) for each in (before, after)]
    names = sorted(
        name for name in packages[0].keys() | packages[1].keys() if packages[0].get(name) != packages[1].get(name)
    )
    others = [name for name in names if (packages[0].get(name), packages[1].get(name)) != (old.version, new.version)]
    if others:
        more = f" and {len(others) - MOST_NAMES} more" if len(others) > MOST_NAMES else ""
        found.append(f"other versions of {', '.join(others[:MOST_NAMES])}{more}")
    if _implementation(old) != _implementation(new):
        found.append("other implementation files")
    return ", ".join(found)


def _implementation(of: Contender) -> tuple[Any, list[str]]:
    """Return the hash of the implementation, and the hashes of modules that it imports from elsewhere, without their paths."""
    return of.proof.details.get("implementation"), sorted(of.proof.details.get("imported", {}).values())


def _packages(view: View, environment: str) -> dict[str, str]:
    found = view.record.environments.get(environment)
    return found["packages"] if found else {}


def _change(comparison: Comparison, new: Contender, ratio: Ratio | None, what: str) -> str:
    """Return the sentence on how much a quantity changed between two runs. `what`: the other changes."""
    if ratio is None:
        return f"{new.title}: too few certified processes to compare."
    low, high = ratio.low, ratio.high
    quantity = comparison.quantity
    name = "the time" if quantity.name == "step time" else f"the {quantity.label}"
    span = f"[{low:.3f}, {high:.3f}] of {name} before"
    if low <= 1 <= high:
        less, more = (_at_most(bound) for bound in (1 - low, high - 1))
        words = (
            (quantity.worsened, quantity.improved)
            if quantity.more_is_better
            else (quantity.improved, quantity.worsened)
        )
        ruled_out = f"more than {less} {words[0]} and more than {more} {words[1]} are ruled out"
        return f"{new.title} ({what}): no change detected, {span} ({ruled_out})."
    improved = (high < 1) is not quantity.more_is_better
    word = quantity.improved if improved else quantity.worsened
    return f"{new.title} ({what}): {percent(abs(1 - math.sqrt(low * high)))} {word}, {span}."


def _at_most(fraction: float) -> str:
    """Return a bound in percent with one decimal, rounded up, so that it still holds."""
    return (
        percent(math.ceil(round(fraction * 1000, 6)) / 1000)
        if fraction < 0.1
        else f"{math.ceil(round(fraction * 100, 6))} %"
    )
