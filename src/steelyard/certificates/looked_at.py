"""What a certificate compared and what it did not compare, in words: parts of its sentence, made from the plan.

A further check adds its part to one list, and removes from the other the gap that it closes.
"""

from steelyard.certificates import sentences
from steelyard.certificates.plan import CertificationPlan
from steelyard_worker.case import INFERENCE


def parts(plan: CertificationPlan) -> tuple[str, ...]:
    """Return what was compared with the reference."""
    job, network = plan.candidate.job, plan.candidate.network
    trains = job.case.task != INFERENCE
    found = [_training(plan), "inference before and after them"] if trains else [_inference(plan)]
    if job.data.adversarial:
        found.append("a step with adversarial weights" if trains else "a batch with adversarial weights")
        if trains and network.adversarial.isolation:
            found.append("one with weights that isolate a layer")
    return tuple(found)


def gaps(plan: CertificationPlan, hidden: float = 0.0) -> tuple[str, ...]:
    """Return what was not compared; `hidden`: the relative error below which a mistake may pass in gradients."""
    candidate = plan.candidate
    job, sample = candidate.job, candidate.scope.sample
    trains = job.case.task != INFERENCE
    changing = trains and job.case.optimizer.schedule.changes
    later = f"later steps{' and their learning rates' if changing else ''}" if trains else "later batches"
    found = [(later, True)]
    found.append(("real data", not job.data.prepared))
    found.append(("extreme weights and inputs", not job.data.adversarial))
    found.append((f"all but {sample:,} elements of each larger tensor", bool(sample)))
    without = any(each.zero_gradient for each in candidate.network.parameters)
    found.append(("updates of parameters that change no output", trains and without))
    found.append((f"mistakes of less than {sentences.percentage(hidden)} in gradients", bool(hidden)))
    return tuple(words for words, applies in found if applies)


def _training(plan: CertificationPlan) -> str:
    job, steps = plan.candidate.job, plan.candidate.scope.steps
    which = "training step" if steps == 1 else f"{steps} training steps"
    own = "the run's own data" if job.data.prepared else "synthetic data"
    return f"the first {which} (batch of {job.case.batch}, {own})"


def _inference(plan: CertificationPlan) -> str:
    job, count = plan.candidate.job, plan.candidate.scope.steps
    if not job.data.prepared:
        return f"one synthetic batch of {job.case.batch}"
    which = "batch" if count == 1 else f"{count} batches"
    return f"the first {which} of the run's own data (batch of {job.case.batch})"
