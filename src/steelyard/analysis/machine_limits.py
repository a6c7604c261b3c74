"""How close each contender comes to the limits of the machine: cores, arithmetic, the bandwidth of memory, and energy."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from steelyard.results import utilisation
from steelyard.statistics.roofline import ARITHMETIC, CACHE, MEMORY, Limits
from steelyard.statistics.sentences import in_text, listed, percent
from steelyard.wording.notation import prefixed, significant
from steelyard.wording.task_words import capitalised, fill

if TYPE_CHECKING:
    from collections.abc import Iterator

    from steelyard.analysis.model import Comparison, Contender, Speed

INPUTS = ("pipeline", "cached")
"""The inputs whose steps are compared with the machine's limits, after the one that decides."""
HEADLINES = {
    ARITHMETIC: "Of the machine's two limits, arithmetic is the lower one for this network",
    MEMORY: "Of the machine's two limits, the bandwidth of memory is the lower one for this network",
    CACHE: "Of the machine's two limits, arithmetic is the only one that this network cannot avoid",
}
REST = "Most of the time goes elsewhere: `steelyard explain` shows where."
HALF = 0.5
"""Below this share of its limit, a contender spends most of its time on something else."""
ALL_OF_IT = 1.005
"""Above this share of a limit, a contender is said to exceed it."""
NO_METER = "Energy: this machine has no meter that can be read."


@dataclass(frozen=True)
class Point:
    """A contender beside its limits: the arithmetic that it does, in FLOP/s."""

    contender: Contender
    limits: Limits
    flops: float


@dataclass(frozen=True)
class MachineLimits:
    """How much of the machine the processes of a comparison used on one input.

    `speeds`: (contender, its speed) pairs, best first. `headline` and `limits` are empty unless both limits of the machine are
    known and equal for all contenders. `points`: the contenders whose limits are known.
    """

    source: str
    speeds: list[tuple[Contender, Speed]]
    headline: str
    sentences: list[str]
    limits: Limits | None
    points: list[Point]


def machine_limits(comparison: Comparison) -> MachineLimits | None:
    """Return how much of the machine the processes of a comparison used; None where nothing was measured.

    None also where the ranked quantity has one value per process, because this is about the time of steps.
    """
    if comparison.quantity.per_process:
        return None
    sources = (source for source in (comparison.primary, *INPUTS) if _speeds(comparison, source))
    source = next(sources, "")
    speeds = _speeds(comparison, source)
    if not speeds:
        return None
    points = list(_points(comparison, speeds))
    known = {point.limits for point in points}
    limits = known.pop() if len(known) == 1 else None
    work = [_work(limits, comparison)] if limits else []
    return MachineLimits(
        source,
        speeds,
        _headline(speeds, limits) if limits else "",
        [*work, *_above(speeds, limits), *_meters(speeds)],
        limits,
        points,
    )


def as_dict(comparison: Comparison) -> dict[str, Any] | None:
    """Return the needs of a step, the machine's limits per second, and the limit that bounds the network; None if unknown."""
    known = machine_limits(comparison)
    if not (known and known.limits):
        return None
    limits = known.limits
    return {
        "headline": known.headline,
        "sentences": known.sentences,
        **asdict(limits),
        "intensity": limits.intensity,
        "roof_flops": limits.roof_flops,
        "bound": limits.bound,
    }


def _speeds(comparison: Comparison, source: str) -> list[tuple[Contender, Speed]]:
    return [(each, each.speeds[source]) for each in comparison.contenders if source in each.speeds]


def _points(comparison: Comparison, speeds: list[tuple[Contender, Speed]]) -> Iterator[Point]:
    for contender, speed in speeds:
        if limits := _limits(comparison, speed):
            yield Point(contender, limits, limits.flops / (speed.location.value_ns / 1e9))


def _limits(comparison: Comparison, speed: Speed) -> Limits | None:
    if not (comparison.peak_flops and comparison.bandwidth and speed.flops > 0 and speed.least_bytes):
        return None
    return Limits(
        speed.flops,
        speed.least_bytes,
        speed.held_bytes,
        comparison.peak_flops,
        comparison.bandwidth,
        comparison.cache_bytes,
    )


def _headline(speeds: list[tuple[Contender, Speed]], limits: Limits) -> str:
    """Return which limit bounds the network, and which contender comes closest to it."""
    of_memory = limits.bound == MEMORY
    shares = [
        (contender, (speed.share_of_bandwidth if of_memory else speed.share_of_peak) or 0.0)
        for contender, speed in speeds
        if contender.proof.state == "certified" and not contender.above_peak
    ]
    if not shares:
        return f"{HEADLINES[limits.bound]}."
    closest, share = max(shares, key=lambda pair: pair[1])
    part = f"at least {percent(share)} of it" if of_memory else f"{percent(share)} of the matrix product"
    rest = "" if share > HALF else f" {REST}"
    return f"{HEADLINES[limits.bound]}: {in_text(closest.title)} comes closest, with {part}.{rest}"


def _work(limits: Limits, comparison: Comparison) -> str:
    """Return the arithmetic and the bytes of a step, and which limit of the machine they reach first."""
    step, threads = fill("{a_step}", comparison.task), comparison.threads
    with_threads = f"{threads} {'thread' if threads == 1 else 'threads'}"
    return (
        f"{capitalised(step)} computes {prefixed(limits.flops)}FLOP and must move at least "
        f"{prefixed(limits.least_bytes)}B between memory and processor: at most {significant(limits.intensity)} operations per "
        f"byte. With {with_threads} this machine reached {prefixed(limits.peak_flops)}FLOP/s in a matrix product and "
        f"{prefixed(limits.bandwidth)}B/s from memory, so the memory is the lower limit below {significant(limits.bend)} "
        f"operations per byte. {_meaning(limits, step)}"
    )


def _meaning(limits: Limits, step: str) -> str:
    """Return what follows from the limit that is reached first. `step`: the words for one step."""
    if limits.bound == ARITHMETIC:
        times = significant(limits.intensity / limits.bend, 2)
        cached = "" if limits.held_bytes > limits.cache_bytes else ", unless its data stays in the last-level caches"
        return f"A framework that moves more than {times} times as much is limited by the memory all the same{cached}."
    if limits.bound == CACHE:
        return (
            f"But the data of {step}, at least {prefixed(limits.held_bytes)}B, may stay in the last-level caches of "
            f"{prefixed(limits.cache_bytes)}B. Then the memory is no limit, and shares of its bandwidth may exceed 100 %."
        )
    return (
        f"So at most {prefixed(limits.roof_flops)}FLOP/s are possible with data from memory, "
        f"{percent(limits.roof_flops / limits.peak_flops)} of the matrix product."
    )


def _above(speeds: list[tuple[Contender, Speed]], limits: Limits | None) -> list[str]:
    """Return the explanation of shares above 100 %; empty if there are none."""
    reasons = {
        "share_of_peak": "of the matrix product: libraries may be faster than NumPy's, and convolutions may multiply less often",
        "share_of_bandwidth": "of the bandwidth: data that was used shortly before comes from the caches",
        "share_of_cores": "of the cores: there are threads beside those that compute, such as threads of the input pipeline",
    }
    if limits and limits.bound == CACHE:
        del reasons["share_of_bandwidth"]  # the sentence on the caches says so
    above = {
        reason: [contender.title for contender, speed in speeds if (getattr(speed, name) or 0.0) > ALL_OF_IT]
        for name, reason in reasons.items()
    }
    return [f"More than 100 % {reason} ({listed(titles)})." for reason, titles in above.items() if titles]


def _meters(speeds: list[tuple[Contender, Speed]]) -> list[str]:
    """Return a note on the energy meters and what they include, or why there is no energy; empty without a record of meters."""
    trials = [trial for contender, _ in speeds for trial in contender.trials]
    read = [names for trial in trials if (names := utilisation.meters(trial)) is not None]
    meters = sorted(set().union(*read))
    if not meters:
        return [NO_METER] if read else []
    if not any(speed.joules for contender, _ in speeds for speed in contender.speeds.values()):
        return [f"Energy: the counted time of a process is too short for the meter of this machine ({listed(meters)})."]
    what = "that of everything that runs there, idle power included, not of the process alone"
    return [f"Energy is counted by {listed(meters)}: {what}."]
