"""Where rounding alone cannot decide: what is run besides, and what it says.

A candidate beyond the limit may compute another function. Or it sums without care, or loses a likelihood's last digits, or a
ReLU or a maximum near a tie fell to the other side and changed gradients by a finite amount.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from steelyard.certificates import judge
from steelyard.certificates.evidence import is_done, read, refusal
from steelyard.certificates.method import likelihood_roundings, longest_sum
from steelyard.certificates.proceedings import likelihood_task

if TYPE_CHECKING:
    from steelyard.certificates.evidence import Evidence
    from steelyard.certificates.proceedings import Proceedings, Task


def further(evidence: Evidence, strict: judge.Judgement) -> tuple[Task, ...]:
    """Return what must run next for a candidate that rounding does not explain; nothing once it is settled or broke down.

    If the framework can compute in float64, its run there tells: there sums lose nothing worth mentioning and ties are rare,
    so the same limits must hold. If it cannot, it is granted what its precision loses of a likelihood of whole sequences, where
    the loss is one, and held against the reference on other weights and batches: a tie of one draw is none of another, a mistake
    is one of all.
    """
    proceedings = evidence.proceedings
    if proceedings.subject.exact:
        return () if _begun(proceedings) else (proceedings.exact, proceedings.sums)
    if broken(proceedings) or settle(evidence, strict)[0].passed:
        return ()
    if evidence.network.recursion and not is_done(proceedings.likelihood):
        return (likelihood_task(proceedings, _loss(evidence)),)
    return next((pair for pair in proceedings.draws if not all(map(is_done, pair))), ())


def broken(proceedings: Proceedings) -> str:
    """Return why one of the further tasks left no tensors; nothing where all that were begun did."""
    begun = [Path(task.job.folder) for task in _begun(proceedings) if not is_done(task)]
    return next((refused[1] for folder in begun if (refused := refusal(folder / "variant"))), "")


def settle(evidence: Evidence, strict: judge.Judgement) -> tuple[judge.Judgement, float | None]:
    """Return the judgement by all that has run so far, and the largest error in float64, None without such a run."""
    proceedings = evidence.proceedings
    if strict.passed:
        return strict, None
    if proceedings.subject.exact:
        return _by_float64(evidence, strict) if all(map(is_done, proceedings.further)) else (strict, None)
    if evidence.network.recursion and is_done(proceedings.likelihood):
        found = evidence.hold(evidence.candidate, granted=evidence.changes(proceedings.likelihood))
        if found.passed:
            return replace(found, sentence=_lost_likelihood(evidence, strict, found)), None
    return _by_draws(evidence, strict), None


def _begun(proceedings: Proceedings) -> list[Task]:
    return [task for task in proceedings.further if Path(task.job.folder).is_dir()]


def _by_float64(evidence: Evidence, strict: judge.Judgement) -> tuple[judge.Judgement, float]:
    """Judge the candidate's float64 run by the same limits, then its own precision by what long sums may lose."""
    exact = evidence.hold(read(evidence.proceedings.exact))
    if not exact.passed:
        return replace(exact, sentence=f"Computed in float64, {judge.continued(exact.sentence)}"), exact.largest
    relaxed = evidence.hold(evidence.candidate, granted=evidence.changes(evidence.proceedings.sums))
    if relaxed.passed:
        return replace(relaxed, sentence=_long_sums(evidence, strict, exact)), exact.largest
    differs = (
        f"The same function in float64, but not in {evidence.wanted.precision}: {judge.continued(relaxed.sentence)}"
    )
    return replace(relaxed, sentence=differs), exact.largest


def _by_draws(evidence: Evidence, strict: judge.Judgement) -> judge.Judgement:
    """Judge on the other draws; the first that passes decides, else the plain judgement stands."""
    for pair in evidence.proceedings.draws:
        if not all(map(is_done, pair)):
            break
        reference, candidate = map(read, pair)
        found = evidence.hold(candidate, reference)
        if found.passed:
            said = strict.first.said if strict.first else "one"
            tie = f"At first {said} was off, as where a ReLU or a maximum near a tie falls to the other side."
            agrees = judge.continued(found.sentence)
            return replace(found, sentence=f"On another draw of weights and batch, {agrees} {tie}")
    return strict


def _loss(evidence: Evidence) -> float:
    return float(evidence.reference["loss"])


def _long_sums(evidence: Evidence, strict: judge.Judgement, exact: judge.Judgement) -> str:
    count, first = longest_sum(evidence.network, evidence.proceedings.candidate.job.case.batch), strict.first
    said = f"; its sums show first in {first.said}, at {judge.grouped(first.units)} rounding levels" if first else ""
    return (
        f"{len(exact.findings)} tensors agree with the float64 reference to {exact.largest:.1e} in float64, and in "
        f"{evidence.wanted.precision} to what sums of {count:,} terms may lose{said}."
    )


def _lost_likelihood(evidence: Evidence, strict: judge.Judgement, found: judge.Judgement) -> str:
    loss, steps, first = _loss(evidence), evidence.network.recursion, strict.first
    noise = likelihood_roundings(evidence.network, loss) * evidence.wanted.unit_roundoff
    shown = f"; {first.said} shows it first, at {judge.grouped(first.units)} rounding levels" if first else ""
    return (
        f"{len(found.findings)} tensors agree with the float64 reference to what {evidence.wanted.precision} loses of a "
        f"log-likelihood of {judge.grouped(loss)} nats over {steps} steps, {noise:.1e} of its exponential{shown}. "
        f"{evidence.proceedings.subject.peer.title} has no float64 here that could show more: a mistake that changes gradients "
        f"by less than {found.resolution.get('gradients', 0.0):.1e} would not be seen."
    )
