"""How close each contender comes to the limits of the machine: cores, arithmetic, the bandwidth of memory, and energy."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from steelyard.report import figures
from steelyard.report.figures import Figure
from steelyard.report.formatting import NO_VALUE, SHORT_INPUTS, share_text
from steelyard.report.model import Comparison, Contender, Speed
from steelyard.report.notation import significant
from steelyard.report.styles import Style
from steelyard.report.words import said
from steelyard.results import utilisation
from steelyard.statistics.roofline import ARITHMETIC, CACHE, MEMORY, Limits
from steelyard.statistics.sentences import in_text, listed, percent

FIGURE = (
    "Speed over the operations for each byte that {a_step} must move at least, both on logarithmic scales. The line is the limit "
    "of this machine: its fastest matrix product, and to the left of the bend the bandwidth of its memory."
)
CACHED = " Data that stays in the processor's caches is not bound by the sloping part."
HEADLINES = {
    ARITHMETIC: "Of the machine's two limits, arithmetic is the lower one for this network",
    MEMORY: "Of the machine's two limits, the bandwidth of memory is the lower one for this network",
    CACHE: "Of the machine's two limits, arithmetic is the only one that this network cannot avoid",
}
REST = "Most of the time goes elsewhere: `steelyard explain` shows where."
HALF = 0.5
"""Below this share of its limit, a contender spends most of its time on something else."""
NO_METER = "Energy: this machine has no meter that can be read."
MARGIN = 8.0
"""The horizontal axis goes beyond its outermost points by this factor."""

Cell = Callable[[Speed], str]


def _busy_cores(speed: Speed) -> str:
    share = f" ({share_text(speed.share_of_cores)})" if speed.share_of_cores else ""
    return NO_VALUE if speed.busy_cores is None else f"{speed.busy_cores:.2f}{share}"


def _energy(speed: Speed) -> str:
    joules = sum(speed.joules.values())
    return f"{significant(joules)} J ({significant(joules / speed.location.value_ns * 1e9)} W)" if joules else NO_VALUE


def _text(share: float | None) -> str:
    return NO_VALUE if share is None else share_text(share)


COLUMNS: tuple[tuple[str, Cell, str], ...] = (
    (
        "busy cores", _busy_cores,
        "CPU time over elapsed time, and its share of the cores that a process is given. Waiting in a loop counts as busy.",
    ),
    ("share of peak", lambda x: _text(x.share_of_peak), "arithmetic of {a_step} as a share of the fastest matrix product."),
    (
        "share of bandwidth",
        lambda x: NO_VALUE if x.share_of_bandwidth is None else f"at least {percent(x.share_of_bandwidth)}",
        "what {a_step} must move between memory and processor as a share of the bandwidth; most frameworks move more.",
    ),
    ("GPU use", lambda x: _text(x.gpu_share), "share of the time in which a kernel ran, by the counter of the driver."),
    ("energy", _energy, "of {a_step} by the meters of the machine, which count all programs, and the mean power."),
)  # fmt: skip


@dataclass(frozen=True)
class Ceiling:
    """The section. `headline` and `limits` are empty unless both limits are known and equal for all contenders."""

    headline: str
    sentences: list[str]
    caption: str
    headings: list[str]
    rows: list[list[str]]
    helps: list[tuple[str, str]]
    limits: Limits | None
    figure: Figure | None


def section(comparison: Comparison, styles: dict[str, Style]) -> Ceiling | None:
    """Return the section on how much of the machine a group's processes used; None where nothing was measured.

    None also where the ranked quantity has one value per process, because the section is about the time of steps.
    """
    if comparison.quantity.per_process:
        return None
    source = next((name for name in (comparison.primary, "pipeline", "cached") if _measured(comparison, name)), "")
    measured = _measured(comparison, source)
    if not measured:
        return None
    speeds = [each.speeds[source] for each in measured]
    found = {limits for speed in speeds if (limits := _limits(comparison, speed))}
    limits = found.pop() if len(found) == 1 else None
    cells = {heading: [cell(speed) for speed in speeds] for heading, cell, _ in COLUMNS}
    shown = [each for each in COLUMNS if set(cells[each[0]]) != {NO_VALUE}]
    return Ceiling(
        headline=_headline(measured, source, limits) if limits else "",
        sentences=[*(_work(limits, comparison) if limits else []), *_above(measured, source, limits), *_meters(measured)],
        caption=f"Of the counted {said('{steps}', comparison.task)} on the {SHORT_INPUTS[source]}, the mean over processes.",
        headings=["contender", *(heading for heading, _, _ in shown)],
        rows=[[each.name, *(cell(speed) for _, cell, _ in shown)] for each, speed in zip(measured, speeds, strict=True)],
        helps=[(heading, said(text, comparison.task)) for heading, _, text in shown], limits=limits,
        figure=_figure(comparison, measured, source, styles),
    )  # fmt: skip


def _measured(comparison: Comparison, source: str) -> list[Contender]:
    return [each for each in comparison.contenders if source in each.speeds]


def _limits(comparison: Comparison, speed: Speed) -> Limits | None:
    if not (comparison.peak_flops and comparison.bandwidth and speed.flops > 0 and speed.least_bytes):
        return None
    return Limits(
        speed.flops, speed.least_bytes, speed.held_bytes, comparison.peak_flops, comparison.bandwidth, comparison.cache_bytes
    )  # fmt: skip


def _headline(measured: list[Contender], source: str, limits: Limits) -> str:
    """Return which limit bounds the network, and which contender comes closest to it."""
    valid = [each for each in measured if each.proof.state == "certified" and not each.above_peak]
    of_memory = limits.bound == MEMORY
    first = HEADLINES[limits.bound]

    def share(contender: Contender) -> float:
        speed = contender.speeds[source]
        return (speed.share_of_bandwidth if of_memory else speed.share_of_peak) or 0.0

    if not valid:
        return f"{first}."
    closest = max(valid, key=share)
    part = (
        f"at least {percent(share(closest))} of it" if of_memory else f"{percent(share(closest))} of the matrix product"
    )
    rest = "" if share(closest) > HALF else f" {REST}"
    return f"{first}: {in_text(closest.title)} comes closest, with {part}.{rest}"


def _work(limits: Limits, comparison: Comparison) -> list[str]:
    """Return the arithmetic and the bytes of a step, and which limit of the machine they reach first."""
    step, threads = said("{a_step}", comparison.task), comparison.threads
    with_threads = f"{threads} {'thread' if threads == 1 else 'threads'}"
    needs = (
        f"{step[:1].upper()}{step[1:]} computes {_scaled(limits.flops)}FLOP and must move at least "
        f"{_scaled(limits.least_bytes)}B between memory and processor: at most {significant(limits.intensity)} operations per "
        f"byte. With {with_threads} this machine reached {_scaled(limits.peak_flops)}FLOP/s in a matrix product and "
        f"{_scaled(limits.bandwidth)}B/s from memory, so the memory is the lower limit below {significant(limits.bend)} "
        "operations per byte."
    )
    if limits.bound == ARITHMETIC:
        times = significant(limits.intensity / limits.bend, 2)
        cached = "" if limits.held_bytes > limits.cache_bytes else ", unless its data stays in the last-level caches"
        means = f"A framework that moves more than {times} times as much is limited by the memory all the same{cached}."
    elif limits.bound == CACHE:
        means = (
            f"But the data of {step}, at least {_scaled(limits.held_bytes)}B, may stay in the last-level caches of "
            f"{_scaled(limits.cache_bytes)}B. Then the memory is no limit, and shares of its bandwidth may exceed 100 %."
        )
    else:
        means = (
            f"So at most {_scaled(limits.roof_flops)}FLOP/s are possible with data from memory, "
            f"{percent(limits.roof_flops / limits.peak_flops)} of the matrix product."
        )
    return [f"{needs} {means}"]


def _above(measured: list[Contender], source: str, limits: Limits | None) -> list[str]:
    """Return the explanation of shares above 100 %; empty if there are none."""
    speeds = {each.title: each.speeds[source] for each in measured}
    reasons = {
        "share_of_peak": "of the matrix product: libraries may be faster than NumPy's, and convolutions may multiply less often",
        "share_of_bandwidth": "of the bandwidth: data that was used shortly before comes from the caches",
        "share_of_cores": "of the cores: there are threads beside those that compute, such as threads of the input pipeline",
    }
    if limits and limits.bound == CACHE:
        del reasons["share_of_bandwidth"]  # already said
    found = []
    for name, reason in reasons.items():
        if above := [title for title, speed in speeds.items() if (getattr(speed, name) or 0.0) > 1.005]:
            found.append(f"More than 100 % {reason} ({listed(above)}).")
    return found


def _meters(measured: list[Contender]) -> list[str]:
    """Return a note on the energy meters and what they include, or why there is no energy; empty without a record of meters."""
    read = [found for each in measured for trial in each.trials if (found := utilisation.meters(trial)) is not None]
    meters = sorted(set().union(*read))
    if not meters:
        return [NO_METER] if read else []
    if not any(speed.joules for each in measured for speed in each.speeds.values()):
        return [f"Energy: the counted time of a process is too short for the meter of this machine ({listed(meters)})."]
    what = "that of everything that runs there, idle power included, not of the process alone"
    return [f"Energy is counted by {listed(meters)}: {what}."]


def _figure(
    comparison: Comparison, measured: list[Contender], source: str, styles: dict[str, Style]
) -> Figure | None:  # fmt: skip
    """Return the roofline: the limit as a line, and a point for each contender."""
    known = [
        (each, limits, limits.flops / (each.speeds[source].location.value_ns / 1e9))
        for each in measured
        if (limits := _limits(comparison, each.speeds[source]))
    ]
    if not known:
        return None
    one = known[0][1]
    places = [one.bend, *(limits.intensity for _, limits, _ in known)]
    low, high = min(places) / MARGIN, max(places) * MARGIN
    roof = [(x, min(one.peak_flops, x * one.bandwidth)) for x in (low, one.bend, high)]
    data: list[dict[str, Any]] = [
        {
            "x": figures.rounded(x for x, _ in roof), "y": figures.rounded(y / 1e9 for _, y in roof), "mode": "lines",
            "name": "limit of this machine", "line": {"color": figures.MUTED, "width": 2}, "hoverinfo": "skip",
        }
    ]  # fmt: skip
    data += [_point(each, limits, flops, styles[each.variant]) for each, limits, flops in known]
    speeds = [flops / 1e9 for _, _, flops in known]
    bottom, top = min([*speeds, roof[0][1] / 1e9]) / 2, max([*speeds, one.peak_flops / 1e9]) * 2
    layout = figures.frame(
        380, figures.LEGEND, hovermode="closest", xaxis=_axis("operations per byte, at most", low, high, ""),
        yaxis=_axis("", bottom, top, " GFLOP/s"),
    )  # fmt: skip
    in_cache = any(limits.held_bytes <= limits.cache_bytes for _, limits, _ in known)
    caption = said(FIGURE, comparison.task) + (CACHED if in_cache else "")
    return Figure(f"roofline/{comparison.group}", "Speed and the limits of this machine", caption, data, layout)


def _point(contender: Contender, limits: Limits, flops: float, style: Style) -> dict[str, Any]:
    title = figures.plain(contender.title)
    share = percent(flops / limits.roof_flops)
    return {
        "x": figures.rounded([limits.intensity]), "y": figures.rounded([flops / 1e9]), "mode": "markers", "name": title,
        "marker": {"color": style.colour, "symbol": style.symbol_of(contender), "size": 11},
        "hovertemplate": f"{title}<br>{_scaled(flops)}FLOP/s, {share} of the limit<extra></extra>",
    }  # fmt: skip


def _axis(title: str, low: float, high: float, unit: str) -> dict[str, Any]:
    """Return a logarithmic axis with a tick at each power of ten."""
    ticks = [10.0**power for power in range(math.ceil(math.log10(low)), math.floor(math.log10(high)) + 1)]
    texts = [f"{tick:,.10g}{unit}" for tick in ticks]
    limits = [math.log10(low), math.log10(high)]
    return figures.axis(title, type="log", range=limits, tickvals=ticks, ticktext=texts)


def _scaled(value: float) -> str:
    """Return a number with three digits and the prefix of its unit: `12.3 G`."""
    for scale, prefix in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= 0.9995 * scale:
            return f"{significant(value / scale)} {prefix}"
    return f"{significant(value)} "
