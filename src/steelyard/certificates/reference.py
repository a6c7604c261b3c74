"""What is concluded from the folders that the processes of a certificate leave behind.

`jobs_for` -> run the reference tasks (unless `has_reference`) and the candidate -> run `further_tasks` until there are none ->
`conclude`.
References are kept, and shared by all candidates with the same specification, materials and form of update rule.
"""

from __future__ import annotations

from dataclasses import asdict, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from steelyard.certificates import judge, record
from steelyard.certificates.method import VARIANTS, VERSION, likelihood_roundings, longest_sum, method
from steelyard.certificates.proceedings import (
    LIKELIHOOD_VARIANT,
    SUMS_VARIANT,
    Peer,
    Proceedings,
    Subject,
    Task,
    form_sentence,
    jobs_for,
    likelihood_task,
    reference_optimizer,
)
from steelyard.certificates.record import Certificate
from steelyard.certificates.sources import implementation_hash, specification_hash
from steelyard.data import shelf
from steelyard.errors import UserError
from steelyard_worker import protocol, tensors

if TYPE_CHECKING:
    from steelyard.certificates.tensors import Tensors

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
    return shelf.is_whole(_reference_folder(proceedings))


def further_tasks(proceedings: Proceedings) -> tuple[Task, ...]:
    """Return what must run next, once references and candidate have run: mostly nothing, and nothing after a breakdown.

    A candidate beyond the limit may compute another function, or may sum without care, or a ReLU or a maximum near a tie fell
    to the other side and changed gradients by a finite amount. If the framework can compute in float64, its run there
    tells: there sums lose nothing worth mentioning and ties are rare, so the same limits must hold. If it cannot, it is granted
    what its precision loses of a likelihood of whole sequences, where the loss is one, and held against the reference on other
    weights and batches: a tie of one draw is none of another, a mistake is one of all.
    """
    if proceedings.candidate.job.settings.precision == "float64":
        return ()
    meta = tensors.read_meta(_settle(proceedings))
    if not meta["passed"] or _refusal(Path(proceedings.candidate.job.folder)):
        return ()
    strict = _judged(proceedings, meta)
    if strict.passed or not strict.findings:
        return ()
    if proceedings.subject.exact:
        return () if _begun(proceedings) else (proceedings.exact, proceedings.sums)
    if _broken(proceedings) or _settled(proceedings, strict, meta).passed:
        return ()
    if proceedings.subject.network.recursion and not _is_done(proceedings.likelihood):
        return (likelihood_task(proceedings, _loss(proceedings)),)
    return next((pair for pair in proceedings.draws if not all(map(_is_done, pair))), ())


def conclude(proceedings: Proceedings) -> Certificate:
    """Return the certificate from what the tasks left behind, and keep it.

    A candidate that was refused for its implementation fails; one whose process broke down fails without being kept.
    UserError when a reference left no tensors.
    """
    meta = tensors.read_meta(_settle(proceedings))
    refused = _refusal(Path(proceedings.candidate.job.folder))
    if refused:
        kind, message = refused
        found = _certificate(proceedings, judge.Judgement(False, message), meta)
        return _kept(found) if kind == "implementation" else found
    if not meta["passed"]:
        return _certificate(proceedings, judge.Judgement(False, meta["sentence"], (), meta["agreement"]), meta)
    strict = _judged(proceedings, meta)
    if not strict.passed and (broken := _broken(proceedings)):
        said = f"{strict.sentence} What was to settle it broke down: {broken}"
        return _certificate(proceedings, replace(strict, sentence=said), meta)
    if not proceedings.subject.exact:
        return _kept(_certificate(proceedings, _settled(proceedings, strict, meta), meta))
    if strict.passed or not all(_is_done(task) for task in (proceedings.exact, proceedings.sums)):
        return _kept(_certificate(proceedings, strict, meta))
    exact, relaxed = _relaxed(proceedings, strict, meta)
    return _kept(_certificate(proceedings, relaxed if exact.passed else exact, meta, exact.largest))


def _kept(found: Certificate) -> Certificate:
    record.save(found)
    return found


def _is_done(task: Task) -> bool:
    return any(map(shelf.is_whole, Path(task.job.folder).glob("variant*")))


def _broken(proceedings: Proceedings) -> str:
    """Return why one of the further tasks left no tensors; nothing where all that were begun did."""
    begun = [task for task in _begun(proceedings) if not _is_done(task)]
    return next((refused[1] for task in begun if (refused := _refusal(Path(task.job.folder)))), "")


def _begun(proceedings: Proceedings) -> list[Task]:
    return [task for task in proceedings.further if Path(task.job.folder).is_dir()]


def _settle(proceedings: Proceedings) -> Path:
    """Return the references' summary: the first one's tensors, with rounding levels and the agreement as meta."""

    def fill(partial: Path) -> None:
        first, *others = (Path(task.job.folder) for task in proceedings.references)
        variants = [_read(first, variant) for variant in VARIANTS]
        subject = proceedings.subject
        noise = proceedings.references[0].job.certify.noise
        rule = proceedings.references[0].job.optimizer
        scales = judge.measure_scales(subject.network, variants, noise, rule)
        meta: dict[str, Any] = {"scales": {key: asdict(scale) for key, scale in scales.items()}, "agreement": None}
        meta |= {"passed": True, "sentence": "", "references": [peer.title for peer in proceedings.peers]}
        for other, peer in zip(others, proceedings.peers[1:], strict=True):
            titles = proceedings.peers[0].title, peer.title
            agreed = judge.agree(subject.network, variants[0], scales, _read(other, 0), titles)
            meta |= {"agreement": agreed.agreement, "passed": agreed.passed, "sentence": agreed.sentence}
        tensors.write(partial, variants[0], meta)

    return shelf.place(_reference_folder(proceedings), fill)


def _reference_folder(proceedings: Proceedings) -> Path:
    return record.folder() / "references" / proceedings.reference_key[:20]


def _read(folder: Path, variant: int) -> Tensors:
    try:
        return tensors.read(folder / f"variant{variant}")
    except (ValueError, OSError) as error:
        refused = _refusal(folder, variant)
        reason = refused[1] if refused else f"{error}"
        raise UserError(f"The float64 reference in {folder} is not there, so nothing can be certified: {reason}") from None


def _judged(proceedings: Proceedings, meta: dict[str, Any]) -> judge.Judgement:
    """Hold the candidate's own precision against the references, by rounding levels alone."""
    reference = tensors.read(_reference_folder(proceedings))
    candidate = tensors.read(Path(proceedings.candidate.job.folder) / "variant0")
    wanted = method(proceedings.subject.job.settings.precision)
    return judge.compare(proceedings.subject.network, reference, _scales(meta), candidate, wanted, meta["agreement"])


def _settled(proceedings: Proceedings, strict: judge.Judgement, meta: dict[str, Any]) -> judge.Judgement:
    """Judge a candidate without float64 by what has run so far; the first judgement that passes decides, else the plain one."""
    if strict.passed:
        return strict
    if proceedings.subject.network.recursion and _is_done(proceedings.likelihood):
        found = _granted(proceedings, meta)
        if found.passed:
            return replace(found, sentence=_lost_likelihood(proceedings, strict, found))
    for pair in proceedings.draws:
        if not all(map(_is_done, pair)):
            break
        found = _drawn(proceedings, pair, meta)
        if found.passed:
            said = strict.first.said if strict.first else "one"
            tie = f"At first {said} was off, as where a ReLU or a maximum near a tie falls to the other side."
            agrees = judge.continued(found.sentence)
            return replace(found, sentence=f"On another draw of weights and batch, {agrees} {tie}")
    return strict


def _loss(proceedings: Proceedings) -> float:
    return float(tensors.read(_reference_folder(proceedings))["loss"])


def _granted(proceedings: Proceedings, meta: dict[str, Any]) -> judge.Judgement:
    """Judge the candidate's own precision by what that loses of the likelihood."""
    network, scales = proceedings.subject.network, _scales(meta)
    reference = tensors.read(_reference_folder(proceedings))
    noisy = _read(Path(proceedings.likelihood.job.folder), LIKELIHOOD_VARIANT)
    lost = judge.measure_sums(network, reference, scales, noisy)
    candidate = tensors.read(Path(proceedings.candidate.job.folder) / "variant0")
    wanted = method(proceedings.subject.job.settings.precision)
    return judge.compare(network, reference, scales, candidate, wanted, meta["agreement"], lost)


def _lost_likelihood(proceedings: Proceedings, strict: judge.Judgement, found: judge.Judgement) -> str:
    settings, network = proceedings.subject.job.settings, proceedings.subject.network
    loss, share = _loss(proceedings), found.resolution.get("gradients", 0.0)
    noise = likelihood_roundings(network, loss) * method(settings.precision).unit_roundoff
    first = f"; {strict.first.said} shows it first, at {judge.grouped(strict.first.units)} levels" if strict.first else ""
    return (
        f"{len(found.findings)} tensors agree with the float64 reference to what {settings.precision} loses of a log-likelihood "
        f"of {judge.grouped(loss)} nats over {network.recursion} steps, {noise:.1e} of its exponential{first}. "
        f"{proceedings.subject.peer.title} has no float64 here that could show more: a mistake that changes gradients by "
        f"less than {share:.1e} would not be seen."
    )


def _drawn(proceedings: Proceedings, pair: tuple[Task, Task], meta: dict[str, Any]) -> judge.Judgement:
    reference, candidate = (_read(Path(task.job.folder), task.job.certify.variants[0]) for task in pair)
    wanted = method(proceedings.subject.job.settings.precision)
    return judge.compare(proceedings.subject.network, reference, _scales(meta), candidate, wanted, meta["agreement"])


def _relaxed(
    proceedings: Proceedings, strict: judge.Judgement, meta: dict[str, Any]
) -> tuple[judge.Judgement, judge.Judgement]:
    """Judge the candidate's float64 run by the same limits, then its own precision by what long sums may lose."""
    network, scales = proceedings.subject.network, _scales(meta)
    wanted = method(proceedings.subject.job.settings.precision)
    reference = tensors.read(_reference_folder(proceedings))
    exact_run = _read(Path(proceedings.exact.job.folder), 0)
    exact = judge.compare(network, reference, scales, exact_run, wanted, meta["agreement"])
    noisy = _read(Path(proceedings.sums.job.folder), SUMS_VARIANT)
    sums = judge.measure_sums(network, reference, scales, noisy)
    candidate = tensors.read(Path(proceedings.candidate.job.folder) / "variant0")
    relaxed = judge.compare(network, reference, scales, candidate, wanted, meta["agreement"], sums)
    if not exact.passed:
        return replace(exact, sentence=f"Computed in float64, {judge.continued(exact.sentence)}"), relaxed
    if not relaxed.passed:
        differs = f"The same function in float64, but not in {wanted.precision}: {judge.continued(relaxed.sentence)}"
        return exact, replace(relaxed, sentence=differs)
    return exact, replace(relaxed, sentence=_long_sums(proceedings, strict, exact))


def _long_sums(proceedings: Proceedings, strict: judge.Judgement, exact: judge.Judgement) -> str:
    job = proceedings.candidate.job
    count, first = longest_sum(proceedings.subject.network, job.batch), strict.first
    said = f"; its sums show first in {first.said}, at {judge.grouped(first.units)} rounding levels" if first else ""
    return (
        f"{len(exact.findings)} tensors agree with the float64 reference to {exact.largest:.1e} in float64, and in "
        f"{job.settings.precision} to what sums of {count:,} terms may lose{said}."
    )


def _scales(meta: dict[str, Any]) -> dict[str, judge.Scale]:
    return {key: judge.Scale(**scale) for key, scale in meta["scales"].items()}


def _refusal(folder: Path, variant: int = 0) -> tuple[str, str] | None:
    """Return (kind, message) of why a process left no tensors of a variant, None when they are there."""
    if shelf.is_whole(folder / f"variant{variant}"):
        return None
    errors = [event for event in protocol.read_events(folder / protocol.EVENTS) if event["event"] == "error"]
    if errors:
        return errors[-1]["kind"], errors[-1]["message"]
    return "crash", f"The process that should have filled {folder} left no tensors."


def _certificate(
    proceedings: Proceedings, found: judge.Judgement, meta: dict[str, Any], exact: float | None = None
) -> Certificate:
    subject, job = proceedings.subject, proceedings.candidate.job
    rule = proceedings.references[0].job.optimizer
    worst, first = found.worst, found.first
    return Certificate(
        key=proceedings.key, passed=found.passed, sentence=found.sentence, framework=job.framework,
        version=subject.peer.version, workload=job.workload, preset=job.preset, settings=asdict(job.settings),
        optimizer=asdict(job.optimizer) | {"decay": list(job.optimizer.decay)}, declared=form_sentence(rule),
        references=tuple(meta["references"]),
        agreement=meta["agreement"], exact=exact, worst=worst.said if worst else "", worst_units=worst.units if worst else 0.0,
        limit=method(job.settings.precision).limit, first=first.said if first else "",
        stage=first.stage if first else "", tensors=len(found.findings),
        trainable_scalars=subject.network.trainable_count, resolution=found.resolution, steps=subject.scope.steps, method=VERSION,
        materials=subject.materials, specification=specification_hash(job), implementation=implementation_hash(job),
        created=datetime.now(UTC).isoformat(timespec="seconds"),
    )  # fmt: skip
