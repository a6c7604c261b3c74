"""Loss curves over each other: the same weights and the same batches should give the same curve."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from steelyard.report import figures, words
from steelyard.report.figures import Figure, extremes

if TYPE_CHECKING:
    from steelyard.report.figures import Series
    from steelyard.report.model import Comparison, Contender
    from steelyard.report.styles import Style

BINS = 1000
"""Two points are drawn of each."""
CURVES = (
    "The loss of every training step. All contenders start from the same weights and see the same batches in the same "
    "order, so the curves should lie on each other."
)
DISTANCES = (
    " Below: how far each is from {first}'s. Rounding begins near one part in ten million, and training lets it grow."
)
PARTED = (
    " They may part after the first step, because the frameworks' own update rules differ. {rules} "
    "With --optimizer-implementation reference "
    "all follow one rule."
)


def figure(comparison: Comparison, styles: dict[str, Style]) -> Figure | None:
    """Return the loss curves over each other, and below them how far each is from the first one's."""
    trained = [contender for contender in comparison.contenders if len(contender.losses) > 1]
    if not trained:
        return None
    data = []
    first = np.asarray(trained[0].losses)
    for contender in trained:
        own = np.asarray(contender.losses)
        data.append(_curve(contender, own, styles, "y"))
        if contender is not trained[0]:
            common = min(len(own), len(first))
            distance = np.abs(own[:common] - first[:common])
            data.append(_curve(contender, np.where(distance > 0, distance, np.nan), styles, "y2", legend=False))
    alone = len(trained) == 1
    layout: dict[str, Any] = {
        "xaxis": figures.axis("training step", nticks=6, anchor="y" if alone else "y2"),
        "yaxis": figures.axis("loss", nticks=5, domain=[0, 1] if alone else [0.42, 1]),
    }
    if not alone:
        scale = {"type": "log", "range": _decades(data), "nticks": 4, "tickformat": ".0e"}
        layout["yaxis2"] = figures.axis("difference", domain=[0, 0.32], **scale)
    frame = figures.frame(360, showlegend=True, legend=figures.LEGEND, hovermode="closest", **layout)
    says = CURVES + _parted(trained) + ("" if alone else DISTANCES.format(first=trained[0].title))
    return Figure(f"losses/{comparison.group}", "Losses", says, data, frame)


def _parted(trained: list[Contender]) -> str:
    """Say whose certified update rule differs from the canonical formula, where not all of them do alike."""
    titles: dict[str, list[str]] = {}
    for contender in (contender for contender in trained if "declared" in contender.proof.details):
        titles.setdefault(contender.proof.details["declared"], []).append(contender.title)
    rules = " ".join(f"{words.listed(names)}, {rule[0].lower()}{rule[1:]}" for rule, names in titles.items() if rule)
    return PARTED.format(rules=rules) if len(titles) > 1 else ""


def _decades(data: list[dict[str, Any]]) -> list[int]:
    """Return the powers of ten around all differences, at least three apart: whole decades are read at a glance."""
    seen = [y for trace in data if trace["yaxis"] == "y2" for y in trace["y"] if y]
    low = math.floor(math.log10(min(seen))) if seen else -8
    return [low, max(low + 3, math.ceil(math.log10(max(seen)))) if seen else -5]


def _curve(
    contender: Contender, values: Series, styles: dict[str, Style], down: str, legend: bool = True
) -> dict[str, Any]:
    style = styles[contender.variant]
    places, kept = extremes(np.nan_to_num(values, nan=0.0), BINS)
    shown = np.where(kept == 0, np.nan, kept) if down == "y2" else kept
    title = figures.plain(contender.title)
    return {
        "x": (places + 1).tolist(),
        "y": figures.rounded(shown),
        "yaxis": down,
        "mode": "lines",
        "name": title,
        "legendgroup": contender.variant,
        "showlegend": legend,
        "line": {"color": style.colour, "width": 1.5, "dash": style.dash},
        "hovertemplate": f"{title}<br>step %{{x}}: %{{y:.6g}}<extra></extra>",
    }
