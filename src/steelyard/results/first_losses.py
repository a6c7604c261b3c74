"""Whether a trial computed what was certified: compare its first losses, or outputs, with those in its certificate.

A certificate feeds batches directly. A trial reads them through the framework's own input pipeline, in its own environment, so a
mistake there, such as labels of the wrong samples, would pass unnoticed. Losses also distinguish batches: the losses of two
batches differ by far more than rounding, and a difference that changes no loss does not change the training.
"""

import math
from collections.abc import Mapping
from typing import Any

from steelyard.errors import UserError
from steelyard.results.trials import Trial
from steelyard_worker.case import INFERENCE

DIFFERS = "The input pipeline or the environment of this process differs from what was certified."


def deviation(trial: Trial, certificate: dict[str, Any]) -> str:
    """Return a sentence about the first loss or output that differs from the certificate; empty if none differs, or none can be
    compared.
    """
    if not_compared(trial, certificate):
        return ""
    if trial.job.case.task == INFERENCE:
        return _of_outputs(trial, certificate)
    expected: list[float] = certificate["losses"]
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


def not_compared(trial: Trial, certificate: dict[str, Any]) -> str:
    """Return why the beginning of a trial cannot be compared with its certificate, as the end of a sentence; empty if it can.

    A certificate trains on the prepared data in the run's order; without data, on the synthetic batch.
    """
    if not certificate.get("outputs" if trial.job.case.task == INFERENCE else "losses"):
        return "the certificate has none to compare with"
    if trial.job.schedule.batch:
        return "they have another batch size than the certificate"
    if trial.blocks and trial.blocks[0].input != ("pipeline" if trial.job.data.prepared else "cached"):
        return "they begin with the synthetic batch, the certificate with data"
    return "" if trial.blocks else "they did no step"


def _of_outputs(trial: Trial, certificate: dict[str, Any]) -> str:
    odd = odd_output(trial.outputs, certificate)
    return f"The {odd}. {DIFFERS}" if odd else ""


def odd_output(found: Mapping[str, float], certificate: dict[str, Any]) -> str:
    """Return the first output of an inference whose fingerprint is not the certified one, in words; empty where all are.

    `found`: fingerprints by batch and output, such as `inference1/logits`.
    """
    for key, exact in certificate["outputs"].items():
        value, limit = found.get(key, math.nan), certificate["output_limits"][key]
        if not abs(value - exact) <= limit:
            batch, _, name = key.removeprefix("inference").partition("/")
            return (
                f"output {name} of batch {batch} is not the certified one: its fingerprint is {value:.7g} instead of "
                f"{exact:.7g} (within {limit:.1g})"
            )
    return ""
