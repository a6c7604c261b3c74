"""Compare the losses of all contenders of a run, which train on the same batches in the same order.

A certificate covers the first steps, which are compared with it elsewhere (`first_losses`). Here the loss curves of the
certified contenders are compared with each other over their whole length, on the first input of a process: on its second
input, contenders begin after different numbers of steps.
"""

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from steelyard.errors import UserError
from steelyard.results.trials import Trial
from steelyard.statistics import courses
from steelyard.statistics.courses import Stretch
from steelyard_worker import records
from steelyard_worker.case import TRAINING
from steelyard_worker.strategy import MICRO_BATCHES, parts_of

CORRECTION_ALONE = "As in the framework's own optimizer, bias correction"
"""The beginning of a certificate's note on a canonical update rule with another rounding of the bias correction."""

# Case id -> {round: trial}, as `RoundResults.finished` has them.
Rounds = Mapping[str, Mapping[int, Trial]]


@dataclass(frozen=True)
class Parting:
    """Cases whose losses diverge without a clear majority: the sides are `cases` and `apart`. `sentence` names no case."""

    cases: tuple[str, ...]
    apart: tuple[str, ...]
    sentence: str


@dataclass(frozen=True)
class Found:
    """Trials that train differently from the others, with a sentence for each, and partings."""

    odd: tuple[tuple[Trial, str], ...]
    partings: tuple[Parting, ...]


def compare(finished: Rounds, certificates: Mapping[str, dict[str, Any]]) -> Found:
    """Compare the losses of all trials for which this is possible. `certificates`: by case id."""
    alike: dict[str, dict[str, dict[int, Any]]] = defaultdict(lambda: defaultdict(dict))
    for key, rounds in finished.items():
        for number, trial in rounds.items():
            if not left_out(trial, certificates.get(key, {})):
                try:
                    alike[_training(trial, certificates[key])][key][number] = trial.losses(trial.blocks[0].input)
                except UserError:  # its losses cannot be read, which other checks report
                    continue
    odd, partings = list[tuple[Trial, str]](), list[Parting]()
    for each in alike.values():
        makers = {key: next(iter(finished[key].values())).job.case.framework for key in each}
        result = courses.compare(each, makers)
        odd += [(finished[found.key][found.number], _sentence(found.stretch)) for found in result.odd]
        if result.parting:
            (cases, apart), stretch = result.parting.sides, result.parting.stretch
            partings.append(Parting(cases, apart, _of_two_sides(stretch)))
    return Found(tuple(odd), tuple(partings))


def left_out(trial: Trial, certificate: Mapping[str, Any]) -> str:
    """Return why the losses of a trial are not compared with others, as the end of a sentence; empty if they are."""
    job, case = trial.job, trial.job.case
    if case.task != TRAINING:
        return "an inference has none"
    if not certificate.get("passed") or certificate.get(
        "on_purpose"
    ):  # also with dropout, which draws numbers of its own
        return "it is not certified"
    if not trial.blocks or not case.inputs:
        return "its inputs are not known"
    if job.schedule.batch:
        return "it has a batch size of its own"
    if job.spread and job.spread.does.otherwise:
        return f"it computes something else on purpose: {job.spread.does.otherwise}"
    return ""


def _training(trial: Trial, certificate: Mapping[str, Any]) -> str:
    """Return a key, as text: trainings with the same key have the same losses except for rounding.

    Forms of an optimizer differ by more than rounding: Adam with its epsilon elsewhere has 0.01 % other losses from the second
    step on, and three times the loss when a batch of reviews is nearly memorised.
    """
    case, spread = trial.job.case, trial.job.spread
    rule = records.plain(case.optimizer)
    for name in ("implementation", "form", "correction"):
        del rule[name]
    declared = str(certificate.get("declared", ""))
    over = [parts_of(case.strategy), spread.shares, spread.statistics, spread.loss] if spread else []
    micro = case.settings.knobs.get(MICRO_BATCHES) if spread and spread.does.in_micro_batches else None
    return json.dumps(
        [
            case.workload,
            case.specification,
            case.sizes,
            case.data,
            case.inputs,
            case.seed,
            case.settings.precision,
            rule,
            "" if declared.startswith(CORRECTION_ALONE) else declared,
            over,
            micro,
            trial.blocks[0].input,
        ],
        sort_keys=True,
    )


def _sentence(stretch: Stretch) -> str:
    return (
        f"The losses of training steps {stretch.first} to {stretch.last} are about {stretch.own:.3g}, but those of the other "
        f"contenders on the same batches {stretch.others:.3g}, and they go together. It does not go on as it was certified."
    )


def _of_two_sides(stretch: Stretch) -> str:
    return (
        f"Their losses part, though they train on the same batches: training steps {stretch.first} to {stretch.last} are about "
        f"{stretch.others:.3g} and {stretch.own:.3g}. One of them may not go on as it was certified, and nothing here says which."
    )


def names(cases: Iterable[str], titles: Mapping[str, str]) -> str:
    """Return the titles of cases as a list in a sentence."""
    *most, last = [titles.get(case, case) for case in cases]
    return f"{', '.join(most)} and {last}" if most else last
