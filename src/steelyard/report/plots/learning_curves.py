"""Plots of trainings: loss and test metric by epoch and by second, and the share that have reached a threshold."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from steelyard.analysis import thresholds, trainings
from steelyard.analysis.learning_curves import Learning
from steelyard.analysis.model import Comparison
from steelyard.analysis.trainings import Line
from steelyard.report import figures
from steelyard.report.figures import Figure, plain
from steelyard.report.plots import losses
from steelyard.report.styles import Style, Styles
from steelyard.results.learning import Course, Unit
from steelyard.statistics import metrics
from steelyard.statistics.curves import LEAST_TRAININGS, Spread, coverage, spread

HEIGHT = 320
UNITS: tuple[Unit, ...] = ("epochs", "seconds")
BAND_OPACITY = 0.16
LOSS = "The mean training loss of each epoch."
SCORE = "The {score} on the test split after each epoch."
BY_SECOND = " Over the time of training, without evaluations."
BAND = (
    " Lines are medians over trainings with different seeds. At each place, a band holds the median of all trainings there could "
    "be with a probability of {share:.0%} or more."
)
SAME = (
    " All contenders start from the same weights and train on the same batches, so curves by epoch should coincide until "
    "rounding parts them."
)
OTHERWISE = " Those of contenders that compute something else on purpose differ, and are in no verdict."
ARRIVED = (
    "The share of trainings whose {score} has reached {threshold}, over the time of training (Kaplan and Meier). A training that "
    "ends without it counts as long as it lasted. Bands are 95 % intervals, where there are several seeds, and include that a "
    "time is known only to the interval between two evaluations."
)


def figures_of(found: Learning, styles: Styles) -> list[Figure]:
    """Return the plots: the loss and the score by epoch and by second, and the share of trainings that reached each threshold."""
    first, score = found.comparison, found.score
    drawn = [_curves(first, found.lines, "", unit, styles) for unit in UNITS]
    if found.scored:
        drawn += [_curves(first, found.scored, score, unit, styles) for unit in UNITS]
        drawn += [_arrived(first.group, found.scored, score, threshold, styles) for threshold in first.thresholds]
    return drawn


def _curves(comparison: Comparison, lines: list[Line], score: str, unit: Unit, styles: Styles) -> Figure:
    """Return the curves of the loss, or of a score, by epoch or by second."""
    data: list[dict[str, Any]] = []
    for line in lines:
        values = over_seeds(line.trainings, lambda course: course.scores[score] if score else course.losses)
        across = over_seeds(
            line.trainings, lambda course: course.seconds if unit == "seconds" else course.epochs
        ).middle.tolist()
        scale = 100 if metrics.in_percent(score) else 1
        if values.low is not None and values.high is not None:
            data += _band(
                line, styles[line.variant], across, (values.low * scale).tolist(), (values.high * scale).tolist()
            )
        data.append(
            _line(
                line, styles[line.variant], across, (values.middle * scale).tolist(), unit, " %" if scale == 100 else ""
            )
        )
    what = score or "training loss"
    place = "second" if unit == "seconds" else "epoch"
    several = any(len(line.courses) > 1 for line in lines)
    apart = losses.APART.format(why=comparison.apart) if comparison.apart else ""
    same = SAME + apart + (OTHERWISE if any(line.otherwise for line in lines) else "")
    caption = (SCORE.format(score=score) if score else LOSS) + (BY_SECOND if unit == "seconds" else same)
    layout = {
        "xaxis": figures.axis("seconds of training" if unit == "seconds" else "epoch", nticks=6, rangemode="tozero"),
        "yaxis": figures.axis(what, nticks=6, ticksuffix=" %" if metrics.in_percent(score) else ""),
    }
    name = f"learning/{comparison.group}/{what}/{unit}".replace(" ", "-")
    title, frame = (
        f"{what[:1].upper()}{what[1:]} by {place}",
        figures.frame(HEIGHT, figures.LEGEND, hovermode="closest", **layout),
    )
    return Figure(
        name, title, f"{caption}{_bands(lines)} {trainings.basis(lines)}" if several else caption, data, frame
    )


def _bands(lines: Sequence[Line]) -> str:
    """Return what the bands of curves are; empty where no contender has enough trainings."""
    enough = [len(line.trainings) for line in lines if len(line.trainings) >= LEAST_TRAININGS]
    return BAND.format(share=min(map(coverage, enough))) if enough else ""


def over_seeds(known: Mapping[int, Sequence[Course]], read: Callable[[Course], Sequence[float]]) -> Spread:
    """Return the median of curves over seeds with its interval, from {seed: rounds}; a seed's curve is that of its rounds."""
    return spread([spread([read(course) for course in rounds]).middle for rounds in known.values()])


def _arrived(group: str, lines: list[Line], score: str, threshold: float, styles: Styles) -> Figure:
    """Return the share of trainings that have arrived, as steps from 0; a line ends with the last training."""
    data: list[dict[str, Any]] = []
    for line in lines:
        share = thresholds.share(line, [threshold], "seconds")
        end = max(course.seconds[-1] for course in line.courses)
        places = [0.0, *share.places, end]
        if share.runs > 1:
            low, high = ([0.0, *values, values[-1]] for values in (share.low, share.high))
            data += _band(
                line, styles[line.variant], places, [100 * each for each in low], [100 * each for each in high], "hv"
            )
        steps = [0.0, *(100 * each for each in share.shares), 100 * share.shares[-1]]
        data.append(_line(line, styles[line.variant], places, steps, "seconds", " %", "hv"))
    layout = {
        "xaxis": figures.axis("seconds of training", nticks=6, rangemode="tozero"),
        "yaxis": figures.axis("share of trainings", nticks=6, ticksuffix=" %", range=[-4, 104]),
    }
    text = thresholds.shown(score, threshold)
    caption = ARRIVED.format(score=score, threshold=text)
    frame = figures.frame(HEIGHT, figures.LEGEND, hovermode="closest", **layout)
    return Figure(f"arrived/{group}/{threshold:g}", f"Share that reached {text}", caption, data, frame)


def _line(
    line: Line, style: Style, across: list[float], values: list[float], unit: str, suffix: str, shape: str = "linear"
) -> dict[str, Any]:
    title = plain(line.title)
    where = "%{x:.4g} s" if unit == "seconds" else "epoch %{x:.4g}"
    return {
        "x": figures.rounded(across),
        "y": figures.rounded(values),
        "name": title,
        "legendgroup": line.title,
        "mode": "lines" if shape == "hv" else "lines+markers",
        "connectgaps": False,
        "line": {"color": style.colour, "width": 1.8, "dash": style.dash, "shape": shape},
        "marker": {"symbol": style.symbol, "size": 6, "color": style.colour},
        "hovertemplate": f"{title}<br>{where}: %{{y:.4g}}{suffix}<extra></extra>",
    }


def _band(
    line: Line, style: Style, across: list[float], low: list[float], high: list[float], shape: str = "linear"
) -> list[dict[str, Any]]:
    """Return the two edges of a band, the second filled down to the first."""
    edge = {
        "x": figures.rounded(across),
        "mode": "lines",
        "line": {"width": 0, "color": style.colour, "shape": shape},
        "showlegend": False,
        "legendgroup": line.title,
        "hoverinfo": "skip",
    }
    fill = {"fill": "tonexty", "fillcolor": _transparent(style.colour)}
    return [{**edge, "y": figures.rounded(low)}, {**edge, "y": figures.rounded(high), **fill}]


def _transparent(colour: str) -> str:
    """Return a colour, `#rrggbb`, as one that shows what is behind it."""
    red, green, blue = (int(colour[place : place + 2], 16) for place in (1, 3, 5))
    return f"rgba({red},{green},{blue},{BAND_OPACITY})"
