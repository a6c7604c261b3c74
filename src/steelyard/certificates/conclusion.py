"""From the folders of a certificate's processes to the certificate.

`plan_certification` -> run the reference tasks (unless `has_reference`) and the candidate's -> run `next_tasks` until there are
none -> `conclude`.
"""

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from steelyard.catalog import frameworks
from steelyard.certificates import (
    detection,
    dumps,
    escalation,
    imports,
    inner,
    kernels,
    looked_at,
    record,
    references,
    rule_checks,
    rule_sentences,
    sentences,
)
from steelyard.certificates.evidence import Comparisons, Evidence
from steelyard.certificates.judgement import Judgement
from steelyard.certificates.method import VERSION, method_for
from steelyard.certificates.plan import CertificationPlan, Task
from steelyard.certificates.record import Certificate
from steelyard.certificates.references import References
from steelyard.certificates.rule_checks import RuleCheck
from steelyard.certificates.rule_plan import obstacle
from steelyard.certificates.sources import implementation_hash, specification_hash
from steelyard_worker import records
from steelyard_worker.case import NO_OPTIMIZER, TRAINING, Optimizer
from steelyard_worker.strategy import without_hosts


def next_tasks(plan: CertificationPlan, known: Comparisons | None = None) -> tuple[Task, ...]:
    """Return what must run next, once references and candidate have run: usually nothing (see `escalation`).

    `known`: what this function and `conclude` have compared, used again and added to.
    """
    if plan.candidate_task.job.case.settings.precision == "float64":
        return ()
    evidence = Evidence(plan, references.load(plan), known or Comparisons())
    if not evidence.references.agreed:
        return inner.next_tasks(plan, inner.of_references(plan))
    if dumps.failure(plan.candidate_task):
        return ()
    if not evidence.by_rounding.findings:
        return ()
    return escalation.next_tasks(evidence) or _inner_tasks(evidence)


def conclude(plan: CertificationPlan, known: Comparisons | None = None) -> Certificate:
    """Return the certificate from the results of all tasks, and save it. `known`: as of `next_tasks`.

    A candidate whose implementation does not fit the network fails. One whose process failed for another reason, or whose
    references disagree, fails too, but that certificate is not saved. UserError when a reference saved no tensors.
    """
    found = references.load(plan)
    files, odd = imports.joined([found.imported, *map(imports.of_task, imports.of_candidate(plan))])
    found = replace(found, imported=files)  # those of all processes
    if odd:
        return _certificate(plan, Judgement(False, sentences.changed_meanwhile(odd)), found)
    if failed := dumps.failure(plan.candidate_task):
        kind, message = failed
        certificate = _certificate(plan, Judgement(False, message), found)
        return _saved(certificate) if kind in ("implementation", "altered") else certificate
    if not found.agreed:
        layer = inner.sentence(plan, inner.of_references(plan), method_for("float64"))
        return _certificate(plan, Judgement(False, found.sentence + layer, (), found.agreement), found)
    evidence = Evidence(plan, found, known or Comparisons())
    by_rounding = evidence.by_rounding
    decided = by_rounding.passed and not evidence.is_coarse()
    if not decided and (message := escalation.failure(plan)):
        sentence = sentences.further_run_failed(by_rounding, message)
        return _certificate(plan, replace(by_rounding, passed=False, sentence=sentence), found)
    settled, float64_error = escalation.settle(evidence)
    if not settled.passed and by_rounding.findings:
        layer = inner.sentence(plan, escalation.rejected_on(evidence), evidence.limits)
        settled = replace(settled, sentence=settled.sentence + layer)
    settled = _in_full_precision(plan, _in_full(plan, settled, float64_error is not None))
    certificate = _certificate(plan, settled, found, float64_error)
    if not settled.passed:
        return _saved(certificate)
    if (rule := plan.candidate.rule) and not rule_checks.find(rule.key):
        return replace(certificate, passed=False, sentence=_failed_check(rule_checks.task_of(rule)))
    if (check := _check_of(plan)) and not check.passed:
        return _saved(replace(certificate, passed=False, sentence=check.sentence))
    losses, limits = evidence.losses()
    outputs, output_limits = evidence.outputs()
    updates, update_limits = evidence.updates()
    certificate = replace(certificate, losses=losses, loss_limits=limits, outputs=outputs, output_limits=output_limits)
    return _saved(replace(certificate, updates=updates, update_limits=update_limits))


def _in_full(plan: CertificationPlan, settled: Judgement, in_float64: bool) -> Judgement:
    """Return the judgement whose sentence says on what it rests, or which further causes there are.

    `in_float64`: its definition was judged by a run in float64.
    """
    if settled.passed:
        alone = plan.candidate.job.case.settings.precision if in_float64 else ""
        seen = detection.sentence(settled, plan.candidate.network, alone)
        sentence = f"{settled.sentence} {seen}" if seen else settled.sentence
        gaps = looked_at.gaps(plan, detection.hidden(settled))
        return replace(settled, sentence=sentences.located(sentence, looked_at.parts(plan), gaps))
    candidate, exporter = plan.candidate, plan.candidate.exporter
    title = exporter.title if exporter else ""
    rule = candidate.job.case.optimizer
    return replace(settled, sentence=sentences.in_context(settled, rule, title, candidate.installation.title))


def _inner_tasks(evidence: Evidence) -> tuple[Task, ...]:
    """Return what must run to find the first layer that differs, where the forward pass of a rejected candidate does."""
    if escalation.failure(evidence.plan):
        return ()
    settled, _ = escalation.settle(evidence)
    first = settled.first
    if settled.passed or not first or first.kind not in inner.IN_THE_FORWARD_PASS:
        return ()
    return inner.next_tasks(evidence.plan, escalation.rejected_on(evidence))


def _in_full_precision(plan: CertificationPlan, settled: Judgement) -> Judgement:
    """Return the judgement, rejected where libraries ran kernels of a lower precision at the batch that is timed."""
    job = plan.candidate_task.job
    reason = kernels.lower(kernels.read(Path(job.folder)), job.case.settings.precision)
    if not reason:
        return settled
    return replace(settled, passed=False, sentence=reason if settled.passed else f"{settled.sentence} {reason}")


def _constants(rule: Optimizer) -> dict[str, Any]:
    """Return an update rule with its constants; none where there is no rule."""
    plain: dict[str, Any] = {} if rule == NO_OPTIMIZER else records.parse(records.to_line(rule))
    return plain


def _saved(certificate: Certificate) -> Certificate:
    record.save(certificate)
    return certificate


def _certificate(
    plan: CertificationPlan, judgement: Judgement, found: References, float64_error: float | None = None
) -> Certificate:
    candidate, job = plan.candidate, plan.candidate_task.job
    check = _check_of(plan)
    odd = f" {found.sentence}" if found.agreed and found.sentence else ""
    sentence = judgement.sentence + odd + _of_rule(plan, check)
    case = job.case
    rule = plan.reference_tasks[0].job.case.optimizer
    first = judgement.first
    worst = (judgement.deviation if judgement.passed else None) or judgement.worst
    return Certificate(
        key=plan.key,
        passed=judgement.passed,
        sentence=sentence,
        framework=case.framework,
        version=candidate.installation.version,
        workload=case.workload,
        preset=case.preset,
        task=case.task,
        strategy=without_hosts(case.strategy),
        settings=records.plain(case.settings),
        optimizer=_constants(case.optimizer),
        declared=sentences.optimizer_form(rule),
        references=found.titles,
        agreement=found.agreement,
        float64_error=float64_error,
        worst=worst.label if worst else "",
        worst_units=worst.units if worst else 0.0,
        limit=method_for(case.settings.precision).limit,
        first=first.label if first else "",
        stage=first.stage if first else "",
        tensors=len(judgement.findings),
        trainable_scalars=candidate.network.trainable_count,
        resolution=judgement.resolution,
        losses=(),
        loss_limits=(),
        outputs={},
        output_limits={},
        steps=candidate.scope.steps,
        method=VERSION,
        inputs=candidate.inputs,
        specification=specification_hash(job),
        implementation=implementation_hash(job),
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        kernels=kernels.read(Path(job.folder)),
        imported=found.imported,
        looked_at=looked_at.parts(plan),
        not_looked_at=looked_at.gaps(plan, detection.hidden(judgement)),
        seen=detection.shares(judgement),
        rule_steps=check.steps if check else 0,
    )


def _check_of(plan: CertificationPlan) -> RuleCheck | None:
    """Return the check of the candidate's update rule by itself; None where there is none."""
    rule = plan.candidate.rule
    return rule_checks.find(rule.key) if rule else None


def _of_rule(plan: CertificationPlan, check: RuleCheck | None) -> str:
    """Return what a certificate says about its update rule by itself: what was found, or why it was not checked."""
    job = plan.candidate_task.job
    if check:
        return rule_sentences.checked(check.steps, bool(job.spread)) if check.passed else f" {check.sentence}"
    known = frameworks.framework(job.case.framework)
    reason = (
        obstacle(known.name, job.case.settings.precision) if job.case.task == TRAINING and not known.scripted else ""
    )
    return rule_sentences.not_checked(reason) if reason else ""


def _failed_check(task: Task) -> str:
    failed = dumps.failure(task)
    return rule_sentences.failed(failed[1] if failed else "it saved no tensors.")
