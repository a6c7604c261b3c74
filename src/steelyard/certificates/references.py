"""The references of a certificate: their float64 tensors and rounding levels, cached.

All candidates with the same specification, inputs and form of the update rule share them.
"""

import math
import shutil
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from steelyard.certificates import dumps, imports, judge, record, sentences
from steelyard.certificates.judgement import Judgement
from steelyard.certificates.method import PERTURBATIONS
from steelyard.certificates.plan import CertificationPlan
from steelyard.certificates.scales import Scale, measure_scales
from steelyard.errors import UserError
from steelyard.files import atomic
from steelyard.results import imported
from steelyard_worker import tensors


@dataclass(frozen=True)
class References:
    """The facts about the references that all candidates need.

    `agreed`: whether two references match; `sentence`: which reference differs from the others, and how; empty where none does.
    `agreement`: the largest relative difference of those that match, None with one reference; `titles`: their names; `scales`:
    how the error of each tensor is measured. `imported`: what their processes imported from elsewhere (`imports`).
    """

    agreed: bool
    sentence: str
    agreement: float | None
    titles: tuple[str, ...]
    scales: dict[str, Scale]
    imported: dict[str, str] = field(default_factory=dict)


def reference_folder(plan: CertificationPlan) -> Path:
    """Return the cache folder of a certificate's references."""
    return record.folder() / "references" / plan.reference_key[:20]


def has_reference(plan: CertificationPlan) -> bool:
    """Return whether the references are cached, so that their tasks need not run; those of other imported files are deleted."""
    folder = reference_folder(plan)
    if not atomic.is_intact(folder):
        return False
    if imported.changed(tensors.read_meta(folder).get("imported", {})):
        forget(plan)
        return False
    return True


def forget(plan: CertificationPlan) -> None:
    """Delete the references from the cache, so that they are computed again."""
    shutil.rmtree(reference_folder(plan), ignore_errors=True)


def find(plan: CertificationPlan) -> References | None:
    """Return the references as `load` does; None when one of them saved no tensors."""
    try:
        return load(plan)
    except UserError:
        return None


def load(plan: CertificationPlan) -> References:
    """Return the references from the cache, or from their tasks' dumps; UserError when one of these saved no tensors."""
    folder = atomic.place(reference_folder(plan), lambda partial: _summarise(plan, partial))
    meta = tensors.read_meta(folder)
    scales = {key: Scale(**scale) for key, scale in meta["scales"].items()}
    return References(**meta | {"titles": tuple(meta["titles"]), "scales": scales})


def condense(plan: CertificationPlan) -> None:
    """Summarise references that have run, and delete what they saved unless they disagree: a third one is compared with it."""
    found = find(plan)
    if found and found.agreed:
        for task in plan.reference_tasks:
            dumps.delete(Path(task.job.folder))


def _summarise(plan: CertificationPlan, folder: Path) -> None:
    """Write the first reference's tensors, with rounding levels and agreement as metadata."""
    first, *others = plan.reference_tasks
    reference, *noisy = (dumps.read(first, perturbation) for perturbation in PERTURBATIONS)
    network = plan.candidate.network
    scales = measure_scales(network, reference, noisy, first.job.certify.noise, first.job.case.optimizer)
    title, *titles = [each.title for each in plan.references]
    saved = {name: dumps.read(task, 0) for name, task in zip(titles, others, strict=True)}
    compared = {name: judge.compare_references(network, reference, scales, own) for name, own in saved.items()}
    found = _agreement(title, compared, scales)
    if len(saved) > 1 and not found.agreed:
        one, other = saved.values()
        between = judge.compare_references(network, one, scales, other)
        found = replace(found, sentence=_of_three(title, compared, between))
    files, odd = imports.joined(map(imports.of_task, plan.reference_tasks))
    if odd:
        raise UserError(sentences.changed_meanwhile(odd))
    meta: dict[str, Any] = asdict(replace(found, imported=files))
    tensors.write(folder, reference, meta)


def _agreement(title: str, compared: Mapping[str, Judgement], scales: dict[str, Scale]) -> References:
    """Return which references match the first one, `title`, by the comparisons of the others with it.

    Two that disagree leave open which one is wrong. Of three, one that differs from two others that match is wrong.
    """
    matching = {name: found for name, found in compared.items() if found.passed}
    different = {name: found for name, found in compared.items() if not found.passed}
    agreement = max((found.largest for found in (matching or compared).values()), default=None)
    titles = (title, *(matching or compared))
    if not different:
        return References(True, "", agreement, titles, scales)
    if matching:
        ((odd, found),) = different.items()
        return References(True, sentences.odd_reference(found.sentence, odd, titles), agreement, titles, scales)
    first = next(iter(different.values()))
    return References(False, sentences.references_disagree(first.sentence, titles), agreement, titles, scales)


def _of_three(third: str, compared: Mapping[str, Judgement], between: Judgement) -> str:
    """Return the sentence for three references of which no two match: on the two that disagreed first, then on the `third`.

    `compared`: the comparisons of the two with the third; `between`: with each other.
    """
    shares = {title: found.worst.share if found.worst else math.inf for title, found in compared.items()}
    two = sentences.references_disagree(between.sentence, list(compared))
    return f"{two} {sentences.third_reference(third, shares)}"
