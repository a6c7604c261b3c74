"""Comparisons between the tensors that the processes of one certificate have saved so far."""

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Self, TypeVar

from steelyard.certificates import judge
from steelyard.certificates.dumps import is_done, read, read_meta
from steelyard.certificates.judgement import Finding, Judgement
from steelyard.certificates.method import (
    COARSE_GRADIENTS,
    PERTURBATIONS,
    SMALL_BATCH,
    Method,
    is_adaptive,
    method_for,
    roundings_of_a_sum,
    terms_over_a_batch,
)
from steelyard.certificates.plan import CertificationPlan, Task
from steelyard.certificates.references import References, reference_folder
from steelyard.certificates.scales import Scale, SignChanges, measure_changes, measure_scales, sign_changes
from steelyard.certificates.tensors import (
    AFTER_UPDATES,
    BEFORE_THE_LOSS,
    Tensors,
    is_statistic,
    places,
    state_step,
)
from steelyard.inputs.rates import comparable_losses
from steelyard_worker import tensors
from steelyard_worker.distances import CHANGED_AFTER, change, some_elements, written
from steelyard_worker.network import STATISTICS, Network

Result = TypeVar("Result")
# Further kinds of tensors that are judged on the small batch.
AFTER_THE_LOSS = ("loss", "gradient", "adversarial", "isolated")


@dataclass(frozen=True)
class Comparisons:
    """Earlier results, by folder: comparing the tensors of a large network takes seconds, and several decisions use a result.

    `judged`: tensors of one candidate. `changes` and `scales`: of noisy runs of references, the same for all candidates of a
    group. No task whose tensors were compared may run again.
    """

    judged: dict[str, Judgement] = field(default_factory=dict)
    changes: dict[str, dict[str, float]] = field(default_factory=dict)
    scales: dict[str, dict[str, Scale]] = field(default_factory=dict)

    def of_another_candidate(self) -> Self:
        """Return what is known of another candidate of the group: the results about references."""
        return replace(self, judged={})


@dataclass(frozen=True)
class Evidence:
    """The tensors of one certificate: of its references, and of the other tasks that have run. New comparisons become `known`."""

    plan: CertificationPlan
    references: References
    known: Comparisons = field(default_factory=Comparisons)

    @property
    def network(self) -> Network:
        """The candidate's network."""
        return self.plan.candidate.network

    @property
    def limits(self) -> Method:
        """How the candidate's precision is judged."""
        return method_for(self.plan.candidate.job.case.settings.precision)

    @property
    def reference(self) -> Tensors:
        """The first reference's tensors."""
        return tensors.read(reference_folder(self.plan))

    @property
    def candidate(self) -> Tensors:
        """The candidate's tensors, in its own precision. Each time their index is read anew, which takes long for many."""
        return read(self.plan.candidate_task)

    @property
    def by_rounding(self) -> Judgement:
        """The comparison of the candidate, in its own precision, with the reference."""
        return self._once("rounding", lambda: self._compare(self.candidate, self.reference))

    @property
    def in_float64(self) -> Judgement:
        """The comparison of the candidate's run in float64 with the reference."""
        return self._once("float64", lambda: self._compare(read(self.plan.float64_task), self.reference))

    def allowing(self, task: Task) -> Judgement:
        """Compare the candidate, and also allow the relative change of every tensor in `task`, a noisy run of the reference."""
        return self._once(
            f"allowing {task.job.folder}",
            lambda: self._compare(
                self.candidate, self.reference, self._changes(task, lambda: self.reference, self.references.scales)
            ),
        )

    def allowing_sign_changes(self) -> Judgement:
        """Compare the candidate, and also allow in what follows an update the relative change in `sign_changes_task`."""
        task = self.plan.sign_changes_task

        def compare() -> Judgement:
            reference = self.reference
            ordered = places(reference, self.network)
            changes = self._changes(task, lambda: reference, self.references.scales)
            following = {key: size for key, size in changes.items() if ordered[key].kind in AFTER_UPDATES}
            return self._compare(self.candidate, reference, following)

        return self._once(task.job.folder, compare)

    def only_updates_differ(self) -> bool:
        """Return whether rounding explains everything but what follows the first update of an adaptive optimizer."""
        beyond = [finding.kind for finding in self.by_rounding.findings if not finding.passed]
        adaptive = is_adaptive(self.plan.candidate.job.case.optimizer)
        return adaptive and bool(beyond) and set(beyond) <= set(AFTER_UPDATES)

    def first_sign_changes(self) -> SignChanges | None:
        """Return the sign changes in the first state that differs, if nothing before it does and they are most of its error."""
        first = self.by_rounding.first
        if not first or first.kind != "state" or not self.only_updates_differ():
            return None
        found = sign_changes(self.reference, self.candidate, first.key)
        return found if found.share > 1 / 2 else None

    def on_draw(self, pair: tuple[Task, Task]) -> Judgement:
        """Compare the candidate with the reference on another random draw of weights and batches."""
        reference, candidate = pair
        return self._once(candidate.job.folder, lambda: self._compare(read(candidate), read(reference)))

    def on_small_batch(self, pair: tuple[Task, Task]) -> Judgement:
        """Compare on one pair of the small batch, see `_compare_small`."""
        found = self._once(pair[1].job.folder, lambda: self._compare_small(pair))
        task = self.plan.normalised_task(pair)
        if found.passed or task is None or not is_done(task):
            return found
        return self._once(task.job.folder, lambda: self._compare_small(pair, task))

    def _once(self, what: str, compare: Callable[[], Judgement]) -> Judgement:
        return _known(self.known.judged, what, compare)

    def _changes(self, task: Task, reference: Callable[[], Tensors], scales: Mapping[str, Scale]) -> dict[str, float]:
        """Return the relative change of every tensor in `task`, a noisy run of `reference`."""
        return _known(
            self.known.changes,
            f"{task.job.folder} {task.job.certify.noise}",
            lambda: measure_changes(self.network, reference(), scales, read(task)),
        )

    def _small_scales(self) -> dict[str, Scale]:
        """Return how the error of each tensor is measured on the small batch."""
        job = self.plan.small_tasks[0][0].job

        def measure() -> dict[str, Scale]:
            reference, *noisy = (read(self.plan.small_tasks[0][0], perturbation) for perturbation in PERTURBATIONS)
            return measure_scales(self.network, reference, noisy, job.certify.noise, job.case.optimizer)

        return _known(self.known.scales, job.folder, measure)

    def _compare(
        self, candidate: Tensors, reference: Tensors, allowances: Mapping[str, float] | None = None
    ) -> Judgement:
        """Compare tensors with those of a run of the reference; `allowances` are further relative errors allowed."""
        return judge.compare(
            self.network,
            reference,
            self.references.scales,
            candidate,
            self.limits,
            self.references.agreement,
            allowances,
        )

    def is_coarse(self) -> bool:
        """Return whether a lower precision of the backward pass could pass, and a batch with fewer samples may show it."""
        batch = self.plan.candidate_task.job.case.batch
        return batch > max(SMALL_BATCH) and self.by_rounding.resolution.get("gradients", 0.0) > COARSE_GRADIENTS

    def _compare_small(self, pair: tuple[Task, Task], normalised: Task | None = None) -> Judgement:
        """Compare the forward pass, the gradients and the steps with the adversarial batch of one pair of the small batch.

        `normalised`: with which the candidate is compared except for the batch statistics, which are its own there.

        Rounding levels are those of that batch. Other updates are not judged: a rule that divides a gradient by its own size
        turns rounding into full steps. A loss that is a likelihood of whole sequences, and its gradients, are also allowed that
        likelihood's error. So are the steps with the adversarial batch, whose update is about the gradient (`Adversarial.rule`).
        """
        first = self.plan.small_tasks[0][0]
        reference, scales = read(first, PERTURBATIONS[0]), self._small_scales()
        kinds = {key: place.kind for key, place in places(reference, self.network).items()}
        allowances = {key: math.inf for key, kind in kinds.items() if kind not in (*BEFORE_THE_LOSS, *AFTER_THE_LOSS)}
        if self.network.recursion:
            changes = self._changes(self.plan.small_likelihood_task, lambda: reference, scales)
            allowances |= {key: changes[key] for key, kind in kinds.items() if kind in AFTER_THE_LOSS}
        for key, error in self._errors_of_sums(scales).items():
            allowances[key] = max(error, allowances.get(key, 0.0))
        against = reference if pair[0] is first else read(pair[0])
        if normalised:
            statistics = {key: array for key, array in against.items() if is_statistic(key)}
            against = dict(read(normalised)) | statistics
        return judge.compare(
            self.network, against, scales, read(pair[1]), self.limits, self.references.agreement, allowances
        )

    def _errors_of_sums(self, scales: Mapping[str, Scale]) -> dict[str, float]:
        """Return the relative errors of the tensors that are sums over the samples of a batch, by key."""
        terms = terms_over_a_batch(self.network, self.plan.candidate_task.job.case.batch)
        roundings = {each.name: roundings_of_a_sum(each.kind, terms) for each in self.network.parameters}
        found = {}
        for key, scale in scales.items():
            count = roundings.get(key.rpartition("/")[2], 0.0)
            if count and (key.startswith("grad/") or state_step(key)):
                level = scale.amplification if is_statistic(key) else 1.0
                found[key] = count * level * self.limits.unit_roundoff
        return found

    def losses(self) -> tuple[tuple[float, ...], tuple[float, ...]]:
        """Return the candidate's loss at each step, and how far the loss of a trial may be from it: by rounding alone.

        A trial runs the same code on the same numbers, so long sums and near-ties are no reason for a difference. Where the
        learning rate changes, later steps of a certificate have other rates than those of a trial.
        """
        rule, scope = self.plan.candidate_task.job.case.optimizer, self.plan.candidate.scope
        steps = [finding for finding in self.by_rounding.findings if re.fullmatch(r"loss\d+", finding.key)]
        steps = steps[: comparable_losses(rule, scope.steps)]
        own = self.candidate
        losses = tuple(float(own[step.key]) for step in steps)
        return losses, tuple(map(self._limit, steps))

    def outputs(self) -> tuple[dict[str, float], dict[str, float]]:
        """Return the fingerprints of an inference's outputs by key, and how far those of a trial may be from them."""
        found: dict[str, float] = read_meta(self.plan.candidate_task).get("fingerprints", {})
        limits = {each.key: self._limit(each) for each in self.by_rounding.findings if each.key in found}
        return found, limits

    def updates(self) -> tuple[dict[str, list[float]], dict[str, float]]:
        """Return changes of some elements of the candidate's tensors after two steps, and their limits, by tensor in its order.

        After one step where there is only one; none where the learning rates of these steps are not those of training. A limit
        is relative to the change of the whole tensor. Tensors that do not change are left out, and those of which not every
        element was saved: a process samples whole ones.
        """
        job, scope = self.plan.candidate_task.job, self.plan.candidate.scope
        after = min(CHANGED_AFTER, scope.steps)
        rule, sample = job.case.optimizer, job.certify.sample
        if rule.schedule.changes and after >= comparable_losses(rule, scope.steps):
            return {}, {}
        findings, own = {each.key: each for each in self.by_rounding.findings}, self.candidate
        changes, limits = dict[str, list[float]](), dict[str, float]()
        for each in self.network.parameters:
            key = f"after{after}/{each.name}"
            whole = not sample or each.count <= sample
            if key in findings and whole and (each.trainable or each.kind in STATISTICS):
                found = some_elements(change(own, key))
                if found.any():
                    changes[each.name] = written(found)
                    limits[each.name] = findings[key].allowed + findings[key].unavoidable
        return changes, limits

    def _limit(self, finding: Finding) -> float:
        """Return the L2 distance from the reference that a tensor may have, in its own unit."""
        return self.references.scales[finding.key].norm * (finding.allowed + finding.unavoidable)


def _known(results: dict[str, Result], what: str, compute: Callable[[], Result]) -> Result:
    if what not in results:
        results[what] = compute()
    return results[what]
