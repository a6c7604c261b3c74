"""Plot of the step time of a training on two hosts over the bandwidth of their link."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from steelyard.analysis import no_exchange
from steelyard.report import figures, styles
from steelyard.report.figures import Figure
from steelyard.report.plots import forest
from steelyard.wording.notation import duration
from steelyard_worker.strategy import bits_per_second, link_of, without_hosts

if TYPE_CHECKING:
    from steelyard.analysis.model import Comparison, Contender
    from steelyard.report.styles import Style

CAPTION = (
    "Mean time of a step by the bandwidth of the link between two hosts; both axes are logarithmic. The dashed line of the same "
    "colour is the same strategy on one host, where ranks exchange through memory."
)
FEWEST = 2
"""The least number of different links for a line."""


def figure(comparison: Comparison) -> Figure | None:
    """Return the plot; None where no strategy was measured over several links."""
    lines = {key: found for key, found in _by_strategy(comparison).items() if len(found) >= FEWEST}
    if not lines:
        return None
    local = {_key(each): each for each in _measured(comparison) if "@" not in each.case.strategy}
    data: list[dict[str, Any]] = []
    for place, (key, found) in enumerate(lines.items()):
        style = styles.style(place)  # the style belongs to a line, which has several contenders
        data.append(_line(comparison, found, style))
        if key in local:
            data.append(_on_one_host(comparison, local[key], style))
    rates = [_megabits(each) for found in lines.values() for each in found]
    times = [value for trace in data for value in trace["y"]]
    ticks = [10**power for power in range(math.floor(math.log10(min(rates))), math.ceil(math.log10(max(rates))) + 1)]
    across = figures.axis(
        "bandwidth of the link",
        type="log",
        tickvals=ticks,
        ticktext=[_rate(tick) for tick in ticks],
        range=[math.log10(min(rates) / 1.5), math.log10(max(rates) * 1.5)],
    )
    down = forest.axis_between(0.8 * min(times), 1.25 * max(times), "time per step", "ns")
    layout = figures.frame(340, figures.LEGEND, hovermode="closest", xaxis=across, yaxis=down)
    return Figure(f"link speed/{comparison.group}", "Step time by the link between two hosts", CAPTION, data, layout)


def _measured(comparison: Comparison) -> list[Contender]:
    return [
        each for each in comparison.contenders if comparison.primary in each.speeds and not no_exchange.is_one(each)
    ]


def _by_strategy(comparison: Comparison) -> dict[tuple[str, ...], list[Contender]]:
    """Return the contenders on two hosts, grouped by all settings except the link, the slowest link first."""
    found: dict[tuple[str, ...], list[Contender]] = {}
    for each in sorted((each for each in _measured(comparison) if link_of(each.case.strategy)), key=_megabits):
        found.setdefault(_key(each), []).append(each)
    return found


def _key(contender: Contender) -> tuple[str, ...]:
    case = contender.case
    return case.environment, case.settings.mode, str(sorted(case.settings.knobs.items())), without_hosts(case.strategy)


def _megabits(contender: Contender) -> float:
    return bits_per_second(link_of(contender.case.strategy)) / 1e6


def _rate(megabits: float) -> str:
    return f"{megabits / 1000:g} Gbit/s" if megabits >= 1000 else f"{megabits:g} Mbit/s"


def _step_ns(comparison: Comparison, contender: Contender) -> float:
    return contender.speeds[comparison.primary].location.value_ns


def _line(comparison: Comparison, found: list[Contender], style: Style) -> dict[str, Any]:
    times = [_step_ns(comparison, each) for each in found]
    title = figures.plain(found[0].title.replace(f"@{link_of(found[0].case.strategy)}", ""))
    return {
        "x": [_megabits(each) for each in found],
        "y": [each / 1e9 for each in times],
        "mode": "lines+markers",
        "name": title,
        "line": {"color": style.colour, "width": 1.5},
        "marker": {"color": style.colour, "symbol": style.symbol, "size": 9},
        "text": [f"{link_of(each.case.strategy)}: {duration(time)}" for each, time in zip(found, times, strict=True)],
        "hovertemplate": f"{title}<br>%{{text}}<extra></extra>",
    }


def _on_one_host(comparison: Comparison, contender: Contender, style: Style) -> dict[str, Any]:
    time, title = _step_ns(comparison, contender), figures.plain(contender.title)
    rates = [_megabits(each) for found in _by_strategy(comparison).values() for each in found]
    return {
        "x": [min(rates) / 1.5, max(rates) * 1.5],
        "y": [time / 1e9] * 2,
        "mode": "lines",
        "name": f"{title} on one host",
        "line": {"color": style.colour, "width": 1.2, "dash": "dash"},
        "showlegend": False,
        "hovertemplate": f"{title}, one host: {figures.plain(duration(time))}<extra></extra>",
    }
