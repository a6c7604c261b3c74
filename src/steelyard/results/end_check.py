"""Whether a trial at its end still computed what was certified, and whether its batches followed the order of the run.

The first losses of a trial only show its beginning. A later difference, such as leaving out a part of the backward
pass from some step on, shows when the timed trainer repeats the certified steps.
"""

import math
from typing import Any

import numpy as np

from steelyard.results.first_losses import not_compared, odd_output
from steelyard.results.trials import Trial
from steelyard_worker.case import INFERENCE

DIFFERS = "The process did not compute to its end what was certified."
OTHER_BATCHES = "The process did not go through the batches in the order of the run to its end."
# A change of a tensor is judged by 16 of its elements, which may be off by more than all of them: by up to three times the limit.
# The median is judged, because an adaptive rule makes a whole step from the sign of a gradient that is almost zero.
SAMPLING = 3.0
# But never by more than this share of the change. Where training is chaotic, a certificate allows half of it, and would not see a
# tensor that is no longer trained at all; a process runs the code of its certificate on the same numbers, so it needs much less.
MOST = 1 / 3


def deviation(trial: Trial, certificate: dict[str, Any]) -> str:
    """Return a sentence about the first difference between the end of a trial and its certificate; empty if there is none, or if
    nothing can be compared.
    """
    if sentence := _of_batches(trial):
        return sentence
    if not_checked(trial, certificate):
        return ""
    if trial.job.case.task == INFERENCE:
        return _of_outputs(trial, certificate)
    return _of_losses(trial, certificate) or _of_ranks(trial) or _of_updates(trial, certificate)


def not_checked(trial: Trial, certificate: dict[str, Any]) -> str:
    """Return why the end of a trial is not compared with its certificate, as the end of a sentence; empty if it is compared."""
    if reason := not_compared(trial, certificate):
        return reason
    if trial.end_check is None:
        return "nothing was computed once more at the end"
    if trial.end_check.not_checked:
        return trial.end_check.not_checked
    found = trial.end_check.outputs if trial.job.case.task == INFERENCE else trial.end_check.losses
    return "" if found else "nothing was computed once more at the end"


def batches_not_checked(trial: Trial) -> str:
    """Return why the batches of a trial's input pipeline are not compared with the order at its end; empty where they are."""
    if not any(block.input == "pipeline" for block in trial.blocks):
        return ""
    if not trial.batch_checks:
        return "the process did not look"
    return next((each.not_checked for each in trial.batch_checks if each.not_checked), "")


def _of_batches(trial: Trial) -> str:
    for each in trial.batch_checks:
        if each.differs:
            return (
                f"Batch {each.differs} of the input pipeline is not the one that the order has there. {OTHER_BATCHES}"
            )
    return ""


def _of_losses(trial: Trial, certificate: dict[str, Any]) -> str:
    assert trial.end_check is not None
    expected = zip(trial.end_check.losses, certificate["losses"], certificate["loss_limits"], strict=False)
    for step, (loss, exact, limit) in enumerate(expected, 1):
        if not abs(loss - exact) <= limit:
            return (
                f"At the end of the process, the loss of certified step {step} is {loss:.7g}, but the certified computation has "
                f"{exact:.7g} there (within {limit:.1g}). {DIFFERS}"
            )
    return ""


def _of_ranks(trial: Trial) -> str:
    assert trial.end_check is not None
    if not trial.end_check.unequal:
        return ""
    changed = f"certified steps change the tensor '{trial.end_check.unequal}' differently in its ranks"
    return f"At the end of the process, {changed}. {DIFFERS}"


def _of_updates(trial: Trial, certificate: dict[str, Any]) -> str:
    assert trial.end_check is not None
    for name, exact in certificate.get("updates", {}).items():
        limit = min(MOST, SAMPLING * certificate["update_limits"][name])
        off = distance(trial.end_check.changes.get(name, ()), exact)
        if not off <= limit:
            return (
                f"At the end of the process, certified steps change the tensor '{name}' by something else than in the certified "
                f"computation: its elements are typically off by {off:.2g} of their change (within {limit:.1g}). {DIFFERS}"
            )
    return ""


def distance(found: tuple[float, ...], exact: list[float]) -> float:
    """Return how far changes of elements are from the exact ones: the median distance, relative to the exact root mean square.

    0 if the exact changes are all zero; not a number if their numbers differ.
    """
    if len(found) != len(exact):
        return math.nan
    size = float(np.sqrt(np.mean(np.square(exact)))) if exact else 0.0
    return float(np.median(np.abs(np.subtract(found, exact)))) / size if size else 0.0


def _of_outputs(trial: Trial, certificate: dict[str, Any]) -> str:
    assert trial.end_check is not None
    odd = odd_output(trial.end_check.outputs, certificate)
    return f"At the end of the process, the {odd}. {DIFFERS}" if odd else ""
