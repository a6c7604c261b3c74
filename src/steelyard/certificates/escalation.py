"""Further runs where the rounding levels of the candidate's own batch do not decide.

One rounding of every input may not explain its deviation. It may then compute another function; or its sums lose precision, or
its log-likelihood does, or a ReLU or a maximum near a tie took the other side and changed gradients by a finite amount, or an
adaptive optimizer made full steps of the other sign from gradients near zero. Or all is within rounding, but in a large batch so
many ReLUs are near a tie that gradients of a lower precision would be, too.
"""

from dataclasses import replace
from pathlib import Path

from steelyard.certificates import dumps, sentences
from steelyard.certificates.dumps import is_done
from steelyard.certificates.evidence import Evidence
from steelyard.certificates.judgement import Judgement
from steelyard.certificates.method import likelihood_roundings
from steelyard.certificates.plan import CertificationPlan, Task, longest_sum_of, with_likelihood
from steelyard.certificates.tensors import ADVERSARIAL


def next_tasks(evidence: Evidence) -> tuple[Task, ...]:
    """Return what must run next after the judgement by rounding levels alone.

    Nothing runs once the result is clear or a further run failed.

    A candidate within rounding whose gradients are coarse is also compared on a small batch.

    For the others: if the framework can compute in float64, that run shows its definition: sums lose almost nothing there and
    near-ties are rare, so the same limits apply. Its own precision is judged by what long sums may lose, and on a small batch
    without long sums, where a lower precision in any layer shows. If it cannot, it is allowed the error of its precision in
    a likelihood of whole sequences, where the loss is one. Where only updates of an adaptive optimizer differ, it is allowed as
    many sign changes as the error causes that gradients may have, and is compared on a small batch, too. Then it is compared
    with the reference on other random draws of weights and batches: a near-tie depends on the random draw, a real bug shows up on
    every draw.
    """
    plan = evidence.plan
    if evidence.by_rounding.passed:
        return _small_next(evidence) if evidence.is_coarse() else ()
    if plan.candidate.has_float64:
        return _with_float64_next(evidence)
    if failure(plan) or settle(evidence)[0].passed:
        return ()
    if evidence.network.recursion and not is_done(plan.likelihood_task):
        return (with_likelihood(plan, plan.likelihood_task, _loss(evidence)),)
    if evidence.only_updates_differ():
        if not _small_started(plan):
            return tuple(task for task in (plan.sign_changes_task, *_first_small_tasks(evidence)) if not is_done(task))
        if evidence.allowing_sign_changes().passed:
            return _small_next(evidence)
    return next((pair for pair in plan.draw_tasks if not all(map(is_done, pair))), ())


def failure(plan: CertificationPlan) -> str:
    """Return the error of the first further task that started and saved no tensors; empty where there is none."""
    return next((failed[1] for task in _started(plan) if (failed := dumps.failure(task))), "")


def rejected_on(evidence: Evidence) -> tuple[Task, Task]:
    """Return the runs whose comparison decided a rejection: the reference's and the candidate's."""
    plan = evidence.plan
    first = plan.reference_tasks[0]
    if evidence.by_rounding.passed:
        return plan.small_tasks[0]
    if not plan.candidate.has_float64 and _only_signs_change(evidence):
        return plan.small_tasks[0]
    if not plan.candidate.has_float64 or not _started(plan):
        return first, plan.candidate_task
    if not evidence.in_float64.passed:
        return first, plan.float64_task
    return (first, plan.candidate_task) if _on_small_batches(evidence).passed else plan.small_tasks[0]


def settle(evidence: Evidence) -> tuple[Judgement, float | None]:
    """Return the judgement from all runs so far, and the largest relative error in float64, None without such a run.

    Outputs in inference before training are held to rounding whatever explains other deviations: nothing is summed over the batch
    there, and no ReLU near a tie changes them by much. So they show a kernel of lower precision at the batch that is timed.
    """
    found, float64_error = _settle(evidence)
    beyond = [each for each in evidence.by_rounding.findings if each.kind == "evaluation" and not each.passed]
    if found.passed and beyond:
        found = replace(evidence.by_rounding, sentence=sentences.different(beyond))
    return found, float64_error


def _settle(evidence: Evidence) -> tuple[Judgement, float | None]:
    plan, by_rounding = evidence.plan, evidence.by_rounding
    if by_rounding.passed:
        return (_within_rounding(evidence) if _small_started(plan) else by_rounding), None
    if plan.candidate.has_float64:
        return _with_float64(evidence) if _started(plan) else (by_rounding, None)
    if evidence.network.recursion and is_done(plan.likelihood_task):
        found = evidence.allowing(plan.likelihood_task)
        if found.passed:
            sentence = _likelihood_sentence(evidence, found)
            return replace(found, sentence=sentence, deviation=evidence.by_rounding.worst), None
    if _only_signs_change(evidence):
        return _with_sign_changes(evidence), None
    return _by_draws(evidence), None


def _started(plan: CertificationPlan) -> list[Task]:
    """Return the further tasks that have started for this candidate, its own first. The reference's may have run for another."""
    return [task for tasks in plan.further_tasks if Path(tasks[-1].job.folder).is_dir() for task in reversed(tasks)]


def _small_started(plan: CertificationPlan) -> bool:
    """Return whether this candidate's own process on the small batch has started."""
    return Path(plan.small_tasks[0][1].job.folder).is_dir()


def _only_signs_change(evidence: Evidence) -> bool:
    """Return whether sign changes of updates explain all that rounding does not, as far as the runs so far show."""
    started = is_done(evidence.plan.sign_changes_task) and _small_started(evidence.plan)
    return started and evidence.only_updates_differ() and evidence.allowing_sign_changes().passed


def _with_float64_next(evidence: Evidence) -> tuple[Task, ...]:
    plan = evidence.plan
    if not _started(plan):
        first = (plan.long_sums_task, plan.float64_task, *_first_small_tasks(evidence))
        return tuple(task for task in first if not is_done(task))
    if failure(plan) or not _by_float64(evidence)[0].passed:
        return ()
    return _small_next(evidence)


def _small_next(evidence: Evidence) -> tuple[Task, ...]:
    """Return the next pair of the small batch, until one matches."""
    plan = evidence.plan
    if not _small_started(plan):
        return tuple(task for task in _first_small_tasks(evidence) if not is_done(task))
    if failure(plan) or _on_small_batches(evidence).passed:
        return ()
    steps: list[tuple[Task, ...]] = []
    for pair in plan.small_tasks:
        normalised = plan.normalised_task(pair)
        steps += [pair, (normalised,)] if normalised else [pair]
    return next((step for step in steps if not all(map(is_done, step))), ())


def _first_small_tasks(evidence: Evidence) -> tuple[Task, ...]:
    plan = evidence.plan
    likelihood = with_likelihood(plan, plan.small_likelihood_task, _loss(evidence))
    return (*plan.small_tasks[0], likelihood) if evidence.network.recursion else plan.small_tasks[0]


def _within_rounding(evidence: Evidence) -> Judgement:
    """Judge a candidate that is within rounding on its own batch by the small one."""
    small, by_rounding = _on_small_batches(evidence), evidence.by_rounding
    if not small.passed:
        return replace(small, sentence=sentences.different_on_few_samples_only(small))
    sentence = f"{by_rounding.sentence} {sentences.same_on_few_samples(small)}"
    return replace(by_rounding, sentence=sentence, few=small.findings)


def _with_float64(evidence: Evidence) -> tuple[Judgement, float]:
    found, float64_error = _by_float64(evidence)
    if not found.passed:
        return found, float64_error
    small, precision = _on_small_batches(evidence), evidence.limits.precision
    if not small.passed:
        return replace(small, sentence=sentences.different_on_few_samples(small, precision)), float64_error
    sentence = f"{found.sentence} {sentences.same_on_few_samples(small)}"
    return replace(found, sentence=sentence, few=small.findings), float64_error


def _with_sign_changes(evidence: Evidence) -> Judgement:
    """Judge a candidate without float64, whose deviations sign changes of updates explain, by the small batch."""
    small, found = _on_small_batches(evidence), evidence.allowing_sign_changes()
    if not small.passed:
        return replace(small, sentence=sentences.different_on_few_samples_only(small))
    plan = evidence.plan
    sentence = sentences.same_but_for_signs(
        evidence.by_rounding,
        found,
        evidence.limits.precision,
        evidence.first_sign_changes(),
        plan.candidate.installation.title,
    )
    sentence = f"{sentence} {sentences.same_on_few_samples(small)}"
    return replace(found, sentence=sentence, deviation=evidence.by_rounding.worst, few=small.findings)


def _on_small_batches(evidence: Evidence) -> Judgement:
    """Compare on the small batch and the draws close to it that have run; the first match decides, otherwise the batch itself.

    A near-tie depends on the draw, but a lower precision shows on every draw.
    """
    done = (pair for pair in evidence.plan.small_tasks if all(map(is_done, pair)))
    found = [evidence.on_small_batch(pair) for pair in done]
    return next((each for each in found if each.passed), found[0])


def _by_float64(evidence: Evidence) -> tuple[Judgement, float]:
    """Judge the candidate's float64 run by the same limits, then its own precision by the error of long sums."""
    plan, precision = evidence.plan, evidence.limits.precision
    exact = evidence.in_float64
    if not exact.passed:
        sentence = sentences.different_in_float64(exact.findings) if exact.findings else exact.sentence
        return replace(exact, sentence=sentence), exact.largest
    relaxed = evidence.allowing(plan.long_sums_task)
    if relaxed.passed:
        terms = longest_sum_of(plan.candidate)
        signs = evidence.first_sign_changes()
        sentence = sentences.same_in_float64(evidence.by_rounding, exact, relaxed, precision, terms, signs)
    else:
        sentence = sentences.different_in_own_precision(relaxed.findings, precision)
    return replace(relaxed, sentence=sentence, deviation=evidence.by_rounding.worst), exact.largest


def _by_draws(evidence: Evidence) -> Judgement:
    """Compare on the other random draws; the first match decides, otherwise the original judgement stands."""
    for pair in evidence.plan.draw_tasks:
        if not all(map(is_done, pair)):
            break
        found = evidence.on_draw(pair)
        if found.passed:
            return replace(found, sentence=sentences.same_on_another_draw(evidence.by_rounding, found))
    return evidence.by_rounding


def _likelihood_sentence(evidence: Evidence, found: Judgement) -> str:
    loss, limits = _loss(evidence), evidence.limits
    error = likelihood_roundings(evidence.network, loss) * limits.unit_roundoff
    framework, steps = evidence.plan.candidate.installation.title, evidence.network.recursion
    return sentences.same_likelihood(evidence.by_rounding, found, limits.precision, loss, steps, error, framework)


def _loss(evidence: Evidence) -> float:
    """Return the larger loss, of the usual and of the adversarial batch."""
    losses = (evidence.reference.get(key, 0.0) for key in ("loss", f"{ADVERSARIAL}loss1"))
    return max(float(loss) for loss in losses)
