"""The references of a certificate: their float64 tensors and rounding levels, cached.

All candidates with the same specification, inputs and form of the update rule share them.
"""

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from steelyard.certificates import judge, record
from steelyard.certificates.dumps import read
from steelyard.certificates.method import PERTURBATIONS
from steelyard.certificates.plan import CertificationPlan
from steelyard.certificates.scales import Scale, measure_scales
from steelyard.files import atomic
from steelyard_worker import tensors


@dataclass(frozen=True)
class References:
    """What all candidates need of the references.

    `agreed`: whether the two references match, else `sentence` gives the difference; `agreement`: their largest relative
    difference, None with one reference; `titles`: their names; `scales`: how the error of each tensor is measured.
    """

    agreed: bool
    sentence: str
    agreement: float | None
    titles: tuple[str, ...]
    scales: dict[str, Scale]


def reference_folder(plan: CertificationPlan) -> Path:
    """Return the cache folder of a certificate's references."""
    return record.folder() / "references" / plan.reference_key[:20]


def has_reference(plan: CertificationPlan) -> bool:
    """Return whether the references are cached, so that their tasks need not run."""
    return atomic.is_intact(reference_folder(plan))


def load(plan: CertificationPlan) -> References:
    """Return the references from the cache, or from their tasks' dumps; UserError when one of these saved no tensors."""
    folder = atomic.place(reference_folder(plan), lambda partial: _summarise(plan, partial))
    meta = tensors.read_meta(folder)
    scales = {key: Scale(**scale) for key, scale in meta["scales"].items()}
    return References(**meta | {"titles": tuple(meta["titles"]), "scales": scales})


def _summarise(plan: CertificationPlan, folder: Path) -> None:
    """Write the first reference's tensors, with rounding levels and agreement as metadata."""
    first, *others = plan.reference_tasks
    runs = [read(first, perturbation) for perturbation in PERTURBATIONS]
    network = plan.candidate.network
    scales = measure_scales(network, runs, first.job.certify.noise, first.job.case.optimizer)
    found = References(True, "", None, tuple(each.title for each in plan.references), scales)
    meta: dict[str, Any] = asdict(found)
    for second in others:
        titles = plan.references[0].title, plan.references[1].title
        compared = judge.compare_references(network, runs[0], scales, read(second, 0), titles)
        meta |= {"agreed": compared.passed, "sentence": compared.sentence, "agreement": compared.agreement}
    tensors.write(folder, runs[0], meta)
