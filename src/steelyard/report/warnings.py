"""A closed list of reasons not to trust a number as it stands, each with advice; stored with the result."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

    from steelyard.report.model import Comparison, Contender, Source, Speed

INPUT_BOUND = 0.95
SLOW_FIRST_STEPS = 20


@dataclass(frozen=True)
class Caution:
    """What is the matter, with whom, and what to do. `severity`: error (the number is void), warning, note."""

    name: str
    severity: str
    subject: str
    sentence: str
    advice: str


def find(
    comparisons: tuple[Comparison, ...], disturbances: tuple[dict[str, Any], ...], source: Source
) -> tuple[Caution, ...]:
    """Look for every kind of warning."""
    found = list(_of_machine(disturbances, source))
    for comparison in comparisons:
        for contender in comparison.contenders:
            found += _of_contender(comparison, contender, source)
            for name, speed in contender.speeds.items():
                found += _of_speed(comparison, contender, name, speed)
    order = {"error": 0, "warning": 1, "note": 2}
    return tuple(sorted(found, key=lambda warning: order[warning.severity]))


def _of_machine(disturbances: tuple[dict[str, Any], ...], source: Source) -> Iterator[Caution]:
    kept = [line for line in disturbances if line["kept"] and line["reasons"]]
    repeated = sum(not line["kept"] for line in disturbances)
    if kept:
        reasons = sorted({reason for line in kept for reason in line["reasons"]})
        yield Caution(
            "DisturbedRounds",
            "warning",
            "this machine",
            f"{len(kept)} of the rounds that count were disturbed: {'; '.join(reasons)}.",
            "Close other programs, or measure when the machine is quiet; intervals are wider than they need be.",
        )
    if repeated:
        yield Caution(
            "RepeatedRounds",
            "note",
            "this machine",
            f"{repeated} rounds were measured again because the machine was disturbed.",
            "Nothing to do: a whole round is repeated, never one contender, and never because of its times.",
        )
    if not source.noise.measured and source.plan.protocol.sequential:
        yield Caution(
            "UnknownNoise",
            "warning",
            "this machine",
            "The noise floor of this machine was assumed, not measured.",
            "Leave out --no-calibrate once; the floor is then kept for this machine.",
        )
    feasible = 1.4 * source.noise.s_d0
    if feasible > source.plan.options.delta:
        yield Caution(
            "NoisyMachine",
            "warning",
            "this machine",
            f"The noise floor is {source.noise.s_d0:.1%}, so 'practically the same' means within {feasible:.1%}, "
            f"not {source.plan.options.delta:.0%}.",
            "A quieter machine would tell smaller differences apart.",
        )


def _of_contender(comparison: Comparison, contender: Contender, source: Source) -> Iterator[Caution]:
    subject = f"{contender.title} on {comparison.group}"
    if contender.case.id in source.record.above_peak:
        yield Caution(
            "FasterThanPossible",
            "error",
            subject,
            source.record.above_peak[contender.case.id],
            "A synchronisation is missing or work was left out: this is an error, not a record.",
        )
    if contender.failure:
        yield Caution("Failed", "warning", subject, contender.failure, "The others went on without it.")
    if contender.speeds and contender.proof.state != "certified":
        yield Caution(
            "NotCertified",
            "warning",
            subject,
            contender.proof.sentence,
            "Its numbers are shown but take part in no verdict. Run `steelyard certify` to see the first diverging tensor.",
        )
    for kind in sorted({warning["name"] for trial in contender.trials for warning in trial.warnings}):
        yield _of_worker(kind, subject)
    first, steady = contender.first_step_ns, contender.speeds.get(comparison.primary)
    if first and steady and first > SLOW_FIRST_STEPS * steady.location.value_ns:
        yield Caution(
            "SlowFirstStep",
            "note",
            subject,
            f"The first step took {first / 1e9:.1f} s, as long as {first / steady.location.value_ns:,.0f} later ones.",
            "It is compilation, tracing or allocation; it counts when jobs are short, so it has a column of its own.",
        )


def _of_worker(kind: str, subject: str) -> Caution:
    known = {
        "no-steady-state": (
            "The process did not reach a steady state before the warm-up's limit.",
            "Look at its step times on the page; more rounds make up for it.",
        ),
        "compiled-while-counted": (
            "Something was compiled or traced while steps were counted.",
            "The number contains compilation; report it to the project with the run's folder.",
        ),
    }
    sentence, advice = known.get(kind, (f"The worker warned: {kind}.", "See the trial's output.log."))
    return Caution(kind.title().replace("-", ""), "warning", subject, sentence, advice)


def _of_speed(comparison: Comparison, contender: Contender, source: str, speed: Speed) -> Iterator[Caution]:
    subject = f"{contender.title} on {comparison.group} ({source})"
    if speed.label and speed.label.moves_mean:
        yield Caution(
            "Unsteady",
            "warning",
            subject,
            f"Its counted steps are not level ({speed.label.label}): they shift the mean by {speed.label.shift:+.1%}.",
            "Look at the step times; a longer warm-up or a quieter machine may mend it.",
        )
    cached = contender.speeds.get("cached")
    if source == "pipeline" and cached and cached.location.value_ns / speed.location.value_ns < INPUT_BOUND:
        share = 1 - cached.location.value_ns / speed.location.value_ns
        yield Caution(
            "InputBound",
            "note",
            subject,
            f"{share:.0%} of a step is spent waiting for its input pipeline.",
            "Compare the cached rows for the framework alone, or give the loader workers (--loader-workers).",
        )
