"""What is concluded from the folders that the processes of a certificate leave behind.

`jobs_for` -> run the reference tasks (unless `has_reference`) and the candidate -> run `further_tasks` until there are none ->
`conclude`.
References are kept, and shared by all candidates with the same specification, inputs and form of update rule.
"""

from __future__ import annotations

from dataclasses import asdict, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from steelyard.certificates import doubts, judge, record
from steelyard.certificates.evidence import Evidence, read, reference_folder, refusal
from steelyard.certificates.method import VARIANTS, VERSION, method
from steelyard.certificates.proceedings import (
    Peer,
    Proceedings,
    Subject,
    Task,
    form_sentence,
    jobs_for,
    reference_optimizer,
)
from steelyard.certificates.record import Certificate
from steelyard.certificates.sources import implementation_hash, specification_hash
from steelyard.files import atomic
from steelyard_worker import tensors

__all__ = [
    "Peer",
    "Proceedings",
    "Subject",
    "Task",
    "conclude",
    "form_sentence",
    "further_tasks",
    "has_reference",
    "jobs_for",
    "reference_optimizer",
]


def has_reference(proceedings: Proceedings) -> bool:
    """Say whether the references are in the cache, so that their tasks need not run."""
    return atomic.is_whole(reference_folder(proceedings))


def further_tasks(proceedings: Proceedings) -> tuple[Task, ...]:
    """Return what must run next, once references and candidate have run: mostly nothing (see `doubts`)."""
    if proceedings.candidate.job.case.settings.precision == "float64":
        return ()
    evidence = Evidence(proceedings, tensors.read_meta(_settle(proceedings)))
    if not evidence.meta["passed"] or _refused(proceedings):
        return ()
    strict = evidence.hold(evidence.candidate)
    return () if strict.passed or not strict.findings else doubts.further(evidence, strict)


def conclude(proceedings: Proceedings) -> Certificate:
    """Return the certificate from what the tasks left behind, and keep it.

    A candidate that was refused for its implementation fails; one whose process broke down fails without being kept.
    UserError when a reference left no tensors.
    """
    meta = tensors.read_meta(_settle(proceedings))
    refused = _refused(proceedings)
    if refused:
        kind, message = refused
        found = _certificate(proceedings, judge.Judgement(False, message), meta)
        return _kept(found) if kind == "implementation" else found
    if not meta["passed"]:
        return _certificate(proceedings, judge.Judgement(False, meta["sentence"], (), meta["agreement"]), meta)
    evidence = Evidence(proceedings, meta)
    strict = evidence.hold(evidence.candidate)
    if not strict.passed and (broken := doubts.broken(proceedings)):
        said = f"{strict.sentence} What was to settle it broke down: {broken}"
        return _certificate(proceedings, replace(strict, sentence=said), meta)
    settled, exact = doubts.settle(evidence, strict)
    return _kept(_certificate(proceedings, settled, meta, exact))


def _kept(found: Certificate) -> Certificate:
    record.save(found)
    return found


def _settle(proceedings: Proceedings) -> Path:
    """Return the references' summary: the first one's tensors, with rounding levels and the agreement as meta."""

    def fill(partial: Path) -> None:
        first, *others = proceedings.references
        variants = [read(first, variant) for variant in VARIANTS]
        subject = proceedings.subject
        noise = proceedings.references[0].job.certify.noise
        rule = proceedings.references[0].job.case.optimizer
        scales = judge.measure_scales(subject.network, variants, noise, rule)
        meta: dict[str, Any] = {"scales": {key: asdict(scale) for key, scale in scales.items()}, "agreement": None}
        meta |= {"passed": True, "sentence": "", "references": [peer.title for peer in proceedings.peers]}
        for other, peer in zip(others, proceedings.peers[1:], strict=True):
            titles = proceedings.peers[0].title, peer.title
            agreed = judge.agree(subject.network, variants[0], scales, read(other, 0), titles)
            meta |= {"agreement": agreed.agreement, "passed": agreed.passed, "sentence": agreed.sentence}
        tensors.write(partial, variants[0], meta)

    return atomic.place(reference_folder(proceedings), fill)


def _refused(proceedings: Proceedings) -> tuple[str, str] | None:
    return refusal(Path(proceedings.candidate.job.folder) / "variant0")


def _certificate(
    proceedings: Proceedings, found: judge.Judgement, meta: dict[str, Any], exact: float | None = None
) -> Certificate:
    subject, job = proceedings.subject, proceedings.candidate.job
    rule = proceedings.references[0].job.case.optimizer
    worst, first = found.worst, found.first
    return Certificate(
        key=proceedings.key, passed=found.passed, sentence=found.sentence, framework=job.case.framework,
        version=subject.peer.version, workload=job.case.workload, preset=job.case.preset, settings=asdict(job.case.settings),
        optimizer=asdict(job.case.optimizer) | {"decay": list(job.case.optimizer.decay)}, declared=form_sentence(rule),
        references=tuple(meta["references"]),
        agreement=meta["agreement"], exact=exact, worst=worst.said if worst else "", worst_units=worst.units if worst else 0.0,
        limit=method(job.case.settings.precision).limit, first=first.said if first else "",
        stage=first.stage if first else "", tensors=len(found.findings),
        trainable_scalars=subject.network.trainable_count, resolution=found.resolution, steps=subject.scope.steps, method=VERSION,
        inputs=subject.inputs, specification=specification_hash(job), implementation=implementation_hash(job),
        created=datetime.now(UTC).isoformat(timespec="seconds"),
    )  # fmt: skip
