"""Whether a trial computed what was certified: its first losses, or outputs, against those that its certificate recorded.

A certificate feeds batches directly. A trial reads them through the framework's own input pipeline, in its own environment, so
a mistake there, such as labels of the wrong samples, would pass unnoticed.
"""

import math
from typing import Any

from steelyard.errors import UserError
from steelyard.results.trials import Trial
from steelyard_worker.case import INFERENCE

DIFFERS = "The input pipeline or the environment of this process differs from what was certified."


def deviation(trial: Trial, certificate: dict[str, Any]) -> str:
    """Return a sentence about the first loss or output that is not the certified one; empty where all are, or none can be
    compared.
    """
    if trial.job.case.task == INFERENCE:
        return _of_outputs(trial, certificate)
    expected: list[float] = certificate.get("losses", [])
    if not expected or not _starts_like_the_certificate(trial):
        return ""
    try:
        found = trial.first_losses(len(expected))
    except UserError as error:
        return str(error)
    for step, (loss, exact, limit) in enumerate(zip(found, expected, certificate["loss_limits"], strict=False), 1):
        if not abs(loss - exact) <= limit:
            return (
                f"The loss of training step {step} is {loss:.7g}, but the certified computation has {exact:.7g} there (within "
                f"{limit:.1g}). {DIFFERS}"
            )
    return ""


def _of_outputs(trial: Trial, certificate: dict[str, Any]) -> str:
    expected: dict[str, float] = certificate.get("outputs", {})
    if not expected or not _starts_like_the_certificate(trial):
        return ""
    for key, exact in expected.items():
        found, limit = trial.outputs.get(key, math.nan), certificate["output_limits"][key]
        if not abs(found - exact) <= limit:
            batch, _, name = key.removeprefix("inference").partition("/")
            return (
                f"The output {name} of batch {batch} is not the certified one: its fingerprint is {found:.7g} instead of "
                f"{exact:.7g} (within {limit:.1g}). {DIFFERS}"
            )
    return ""


def _starts_like_the_certificate(trial: Trial) -> bool:
    """A certificate trains on the prepared data in the run's order; without data, on the synthetic batch. A batch of another size
    has other losses.
    """
    if trial.job.schedule.batch:
        return False
    first = trial.blocks[0].input if trial.blocks else ""
    return first == ("pipeline" if trial.job.data.prepared else "cached")
