"""Plot of how many updates of other ranks the gradients of asynchronous trainings had missed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from steelyard.analysis.rank_exchange import staleness
from steelyard.report import figures
from steelyard.report.figures import Figure
from steelyard.wording.notation import significant

if TYPE_CHECKING:
    from steelyard.analysis.model import Comparison, Contender
    from steelyard.report.styles import Style, Styles
    from steelyard.results.communication import Stale

CAPTION = (
    "How many updates of other ranks were applied to the weights between the moment when a rank got them and the moment when "
    "its gradients, computed from them, were applied. Ranks that wait for each other miss none. Counted after the rounds, in a "
    "training of its own."
)
MOST = 20
"""Up to this number of missed updates, every number has a tick."""


def figure(comparison: Comparison, styles: Styles) -> Figure | None:
    """Return the plot; None where no staleness was counted."""
    known = [(each, found) for each in comparison.contenders if (found := staleness(each))]
    if not known:
        return None
    data = [_line(contender, found, styles[contender.variant]) for contender, found in known]
    across = figures.axis("missed updates", dtick=1 if all(len(found.missed) <= MOST for _, found in known) else None)
    down = figures.axis("gradients", ticksuffix=" %", rangemode="tozero", nticks=6)
    layout = figures.frame(300, figures.LEGEND, hovermode="closest", xaxis=across, yaxis=down)
    return Figure(f"staleness/{comparison.group}", "Updates that gradients have missed", CAPTION, data, layout)


def _line(contender: Contender, found: Stale, style: Style) -> dict[str, Any]:
    title = figures.plain(f"{contender.title} (mean {significant(found.mean)})")
    shares = [100 * each / found.updates for each in found.missed]
    return {
        "x": list(range(len(shares))),
        "y": figures.rounded(shares),
        "mode": "lines+markers",
        "name": title,
        "line": {"color": style.colour, "width": 1.5, "dash": style.dash},
        "marker": {"color": style.colour, "symbol": style.symbol, "size": 9},
        "hovertemplate": f"{title}<br>%{{x}} missed: %{{y:.3g}} %<extra></extra>",
    }
