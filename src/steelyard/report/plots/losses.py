"""Loss curves of all contenders in one plot: equal weights and batches should give equal curves."""

import math
from typing import Any

import numpy as np

from steelyard.analysis.model import Comparison, Contender
from steelyard.report import figures
from steelyard.report.figures import Figure, Series, extremes
from steelyard.report.styles import Style, Styles
from steelyard.statistics import sentences

BINS = 1000
"""Two points per bin are plotted."""
CURVES = (
    "The loss of every training step. All contenders start from the same weights and train on the same batches in the "
    "same order, so the curves should coincide."
)
DISTANCES = (
    " Below: the absolute difference from {first}. Rounding differences start near one part in ten million and grow "
    "during training."
)
APART = " Here they part from the first step on. {why}"
DIFFERENT_RULES = (
    " They may diverge after the first step, because the frameworks' own update rules differ. {rules} "
    "With --optimizer-implementation reference all contenders use the same rule."
)


def figure(comparison: Comparison, styles: Styles) -> Figure | None:
    """Return the loss curves, and below them their differences from the first curve."""
    trained = [contender for contender in comparison.contenders if len(contender.losses) > 1]
    if not trained:
        return None
    data = []
    first = np.asarray(trained[0].losses)
    for contender in trained:
        own, style = np.asarray(contender.losses), styles[contender.variant]
        data.append(_curve(contender, style, *extremes(np.nan_to_num(own, nan=0.0), BINS), "y"))
        if contender is not trained[0]:
            common = min(len(own), len(first))
            distance = np.abs(own[:common] - first[:common])
            places, thinned = extremes(np.nan_to_num(distance, nan=0.0), BINS)
            data.append(_curve(contender, style, places, np.where(thinned == 0, np.nan, thinned), "y2"))
    alone = len(trained) == 1
    layout = {
        "xaxis": figures.axis("training step", nticks=6, anchor="y" if alone else "y2"),
        "yaxis": figures.axis("loss", nticks=5, domain=[0, 1] if alone else [0.42, 1]),
    }
    if not alone:
        scale = {"type": "log", "range": _decades(data), "nticks": 4, "tickformat": ".0e"}
        layout["yaxis2"] = figures.axis("difference", domain=[0, 0.32], **scale)
    frame = figures.frame(360, figures.LEGEND, hovermode="closest", **layout)
    apart = APART.format(why=comparison.apart) if comparison.apart else ""
    caption = CURVES + apart + _different_rules(trained) + ("" if alone else DISTANCES.format(first=trained[0].title))
    return Figure(f"losses/{comparison.group}", "Losses", caption, data, frame)


def _different_rules(trained: list[Contender]) -> str:
    """Return a note if the certified update rules of contenders differ; empty if they are equal or unknown."""
    titles: dict[str, list[str]] = {}
    for contender in trained:
        if "declared" in contender.proof.details:
            titles.setdefault(contender.proof.details["declared"], []).append(contender.title)
    rules = [f"{sentences.listed(names)}, {rule[0].lower()}{rule[1:]}" for rule, names in titles.items() if rule]
    return DIFFERENT_RULES.format(rules=" ".join(rules)) if len(titles) > 1 else ""


def _decades(data: list[dict[str, Any]]) -> list[int]:
    """Return the powers of ten around all differences, at least three apart."""
    seen = [math.log10(y) for trace in data if trace["yaxis"] == "y2" for y in trace["y"] if y]
    low = math.floor(min(seen, default=-8))
    return [low, max(low + 3, math.ceil(max(seen, default=-5)))]


def _curve(contender: Contender, style: Style, steps: Any, values: Series, down: str) -> dict[str, Any]:
    title = figures.plain(contender.curve)
    return {
        "x": (steps + 1).tolist(),
        "y": figures.rounded(values),
        "yaxis": down,
        "mode": "lines",
        "name": title,
        "legendgroup": contender.variant,
        "showlegend": down == "y",
        "line": {"color": style.colour, "width": 1.5, "dash": style.dash},
        "hovertemplate": f"{title}<br>step %{{x}}: %{{y:.6g}}<extra></extra>",
    }
