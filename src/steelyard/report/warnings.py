"""Reasons not to trust a number as it is, each with advice; stored with the result."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from steelyard.report.formatting import SHORT_INPUTS
from steelyard.statistics.sentences import percent

if TYPE_CHECKING:
    from collections.abc import Iterator

    from steelyard.report.model import Comparison, Contender, Source, Speed

INPUT_BOUND = 0.95
"""Below this ratio of the time with a cached batch to the time with the pipeline, the input limits the speed."""
SLOW_FIRST_STEPS = 20
CHANGES = {
    "warm-up": "Steps got faster during the measurement",
    "slowdown": "Steps got slower during the measurement",
    "unstable": "Step times changed late in the measurement",
}


@dataclass(frozen=True)
class ResultWarning:
    """A warning about a result. `severity`: error (the number is invalid), warning, note."""

    name: str
    severity: str
    subject: str
    sentence: str
    advice: str


def find(
    comparisons: tuple[Comparison, ...], disturbances: tuple[dict[str, Any], ...], source: Source
) -> tuple[ResultWarning, ...]:
    """Return all warnings about a run, the most severe first."""
    found = [*_disturbed(disturbances), *_noise_floor(source)]
    for comparison in comparisons:
        found += _scatter(comparison, source)
        for contender in comparison.contenders:
            found += _of_contender(comparison, contender, source)
            for name, speed in contender.speeds.items():
                found += _of_speed(comparison, contender, name, speed)
    order = {"error": 0, "warning": 1, "note": 2}
    return tuple(sorted(found, key=lambda warning: order[warning.severity]))


def _disturbed(disturbances: tuple[dict[str, Any], ...]) -> Iterator[ResultWarning]:
    counted = [line for line in disturbances if line["kept"] and line["reasons"]]
    repeated = sum(not line["kept"] for line in disturbances)
    if counted:
        reasons = sorted({reason for line in counted for reason in line["reasons"]})
        yield ResultWarning(
            "DisturbedRounds",
            "warning",
            "this machine",
            f"{_rounds(len(counted))} disturbed but still counted: {'; '.join(reasons)}.",
            "Close other programs, or measure when the machine is idle. The intervals are wider than necessary.",
        )
    if repeated:
        yield ResultWarning(
            "RepeatedRounds",
            "note",
            "this machine",
            f"{_rounds(repeated)} repeated because the machine was disturbed.",
            "No action needed. A round is repeated for all contenders, and never because of its times.",
        )


def _noise_floor(source: Source) -> Iterator[ResultWarning]:
    plan, noise = source.plan, source.noise
    if not noise.measured and plan.protocol.sequential and any(len(group.variants) > 1 for group in plan.groups):
        yield ResultWarning(
            "UnknownNoise",
            "warning",
            "this machine",
            "The noise floor of this machine was assumed, not measured.",
            "Its calibration did not finish. The next run repeats it."
            if plan.options.calibrate
            else "Run once without --no-calibrate. The noise floor is then stored for this machine.",
        )


def _scatter(comparison: Comparison, source: Source) -> Iterator[ResultWarning]:
    ranking = comparison.rankings.get(comparison.primary)
    if ranking and ranking.delta_used > source.decision.delta:
        yield ResultWarning(
            "NoisyMachine",
            "warning",
            comparison.group,
            f"Ratios scatter by {percent(ranking.scatter)} from round to round, so 'practically the same' means within "
            f"{percent(ranking.delta_used)}, not {percent(source.decision.delta)}.",
            "Measure on a quieter machine to resolve smaller differences.",
        )


def _of_contender(comparison: Comparison, contender: Contender, source: Source) -> Iterator[ResultWarning]:
    subject = f"{contender.title} on {comparison.group}"
    if contender.case.id in source.record.above_peak:
        yield ResultWarning(
            "FasterThanPossible",
            "error",
            subject,
            source.record.above_peak[contender.case.id],
            "The result is invalid: a synchronisation is missing, or part of the work was skipped.",
        )
    if contender.failure:
        yield ResultWarning(
            "Failed", "warning", subject, contender.failure, "The run continued with the other contenders."
        )
    if contender.speeds and contender.proof.state != "certified":
        yield ResultWarning(
            "NotCertified",
            "warning",
            subject,
            contender.proof.sentence,
            "The numbers are shown but not used in any verdict. `steelyard certify` reports the first tensor that differs.",
        )
    for kind in sorted({warning["name"] for trial in contender.trials for warning in trial.warnings}):
        yield _of_worker(kind, subject)
    first, steady = contender.first_step_ns, contender.speeds.get(comparison.primary)
    if first and steady and first > SLOW_FIRST_STEPS * steady.location.value_ns:
        yield ResultWarning(
            "SlowFirstStep",
            "note",
            subject,
            f"The first step took {first / 1e9:.1f} s, as long as {first / steady.location.value_ns:,.0f} later steps.",
            "It includes compilation, tracing and memory allocation. This matters for short jobs; compare the first steps.",
        )


def _of_worker(kind: str, subject: str) -> ResultWarning:
    known = {
        "no-steady-state": (
            "The process did not reach a steady state within the limit of the warm-up.",
            "Check its step times on the page. More rounds reduce the effect.",
        ),
        "compiled-while-counted": (
            "The framework compiled or traced something while steps were counted.",
            "The time includes compilation. Check the step times on the page.",
        ),
    }
    sentence, advice = known.get(kind, (f"The worker reported the warning '{kind}'.", "See output.log of the trial."))
    return ResultWarning(kind.title().replace("-", ""), "warning", subject, sentence, advice)


def _of_speed(comparison: Comparison, contender: Contender, source: str, speed: Speed) -> Iterator[ResultWarning]:
    subject = f"{contender.title} on {comparison.group}, {SHORT_INPUTS[source]}"
    if speed.label and speed.label.moves_mean:
        yield ResultWarning(
            "Unsteady",
            "warning",
            subject,
            f"{CHANGES[speed.label.label]}; this may bias the mean by about {percent(abs(speed.label.shift))}.",
            "Check the step times on the page. Measuring again on an idle machine may help.",
        )
    cached = contender.speeds.get("cached")
    if source == "pipeline" and cached and cached.location.value_ns / speed.location.value_ns < INPUT_BOUND:
        share = 1 - cached.location.value_ns / speed.location.value_ns
        yield ResultWarning(
            "InputBound",
            "note",
            subject,
            f"The input pipeline limits the speed: a step takes {percent(share)} less time with a cached batch.",
            "See the table of the cached batch for the framework alone, or use more loader workers (--loader-workers).",
        )


def _rounds(count: int) -> str:
    return "1 round was" if count == 1 else f"{count} rounds were"
