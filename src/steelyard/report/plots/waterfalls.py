"""The plot of the time that every class of operations adds or saves between two contenders."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from steelyard.profiles import waterfall
from steelyard.report import figures
from steelyard.report.figures import Figure
from steelyard.wording import notation
from steelyard.wording.task_words import fill

if TYPE_CHECKING:
    from steelyard.analysis.model import Comparison
    from steelyard.analysis.where_time_goes import Profiled

CHANGE = (
    "From the {step} of the one to that of the other: what each class of operations adds (to the right) or saves. "
    "The changes add up to the difference of the two profiled {steps}."
)
ROW_PIXELS = 30


def figure(comparison: Comparison, a: Profiled, b: Profiled) -> Figure:
    """Return the waterfall: a total, one bar for every class, which begins where the previous bar ended, and the other total."""
    first, second = a.contender, b.contender
    falls = waterfall.waterfall(a.profile.breakdown.classes, b.profile.breakdown.classes)
    start, end = sum(each.first_ns for each in falls), sum(each.second_ns for each in falls)
    scale, unit = notation.time_unit(max(start, end))
    shown = [each for each in falls if abs(each.change_ns) > 1e-3 * max(start, end)]
    texts = [
        (first.title, notation.duration(start)),
        *((each.kind, notation.change(each.change_ns)) for each in shown),
        (second.title, notation.duration(end)),
    ]
    bases, lengths, at = [0.0], [start], start
    for each in shown:
        bases.append(min(at, at + each.change_ns))
        lengths.append(abs(each.change_ns))
        at += each.change_ns
    bases.append(0.0)
    lengths.append(end)
    colours = ["#636784", *("#c17013" if each.change_ns > 0 else "#6892d1" for each in shown), "#636784"]
    bar: dict[str, Any] = {
        "type": "bar",
        "orientation": "h",
        "base": figures.rounded(each / scale for each in bases),
        "x": figures.rounded(each / scale for each in lengths),
        "y": list(range(len(bases))),
        "width": 0.4,
        "marker": {"color": colours},
        "hoverinfo": "skip",
    }
    layout = figures.rows(
        ROW_PIXELS * len(texts) + 84, figures.axis(unit, nticks=6, rangemode="tozero"), texts, -0.9, 7
    )
    title = f"From {first.title} to {second.title}"
    name = f"waterfall/{comparison.group}/{first.variant}/{second.variant}"
    return Figure(name, title, fill(CHANGE, comparison.task), [bar], layout)
