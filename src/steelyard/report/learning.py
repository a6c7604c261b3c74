"""Learning curves: loss and test metric by epoch and by second, and the share of trainings that have reached a threshold."""

import operator
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from steelyard.report import figures, losses
from steelyard.report.figures import Figure, plain
from steelyard.report.model import Comparison
from steelyard.report.notation import duration
from steelyard.report.scaling import OTHER
from steelyard.report.styles import Style
from steelyard.results import learning
from steelyard.results.learning import Course, Unit
from steelyard.statistics import metrics, survival
from steelyard.statistics.curves import spread
from steelyard.statistics.sentences import MOST_NAMED, some_others
from steelyard.statistics.survival import Share

HEIGHT = 320
UNITS: tuple[Unit, ...] = ("epochs", "seconds")
BAND_OPACITY = 0.16
LOSS = "The mean training loss of each epoch."
SCORE = "The {score} on the test split after each epoch."
BY_SECOND = " Over the time of training, without evaluations."
BAND = " Lines are means over processes; bands reach from the lowest to the highest of them."
SAME = (
    " All contenders start from the same weights and train on the same batches, so curves by epoch should coincide until "
    "rounding parts them."
)
OTHERWISE = " Those of contenders that compute something else on purpose differ, and are in no verdict."
ARRIVED = (
    "The share of trainings whose {score} has reached {threshold}, over the time of training (Kaplan and Meier). A training that "
    "ends without it counts as long as it lasted. Bands are 95 % intervals, where there is more than one training."
)


@dataclass(frozen=True)
class Line:
    """The trainings of one contender: rounds or seeds. `name`: its title as it stands in a sentence.

    `otherwise`: that it computes something else on purpose, or makes a mistake on purpose; empty where it does neither.
    """

    title: str
    style: Style
    courses: list[Course]
    name: str
    otherwise: str = ""


@dataclass(frozen=True)
class Arrivals:
    """One row of the table of thresholds: for each threshold when half of a contender's trainings arrived, and how many did.

    Where there are several thresholds, the last cell has the mean of these times.
    """

    title: str
    style: Style
    cells: list[str]


@dataclass(frozen=True)
class Learning:
    """What the page shows of trainings: headings and rows of the table of thresholds, empty without any, and the plots.

    `seeds`: those of the trainings, in order. `sentence`: when half of each contender's trainings had reached the hardest
    threshold; `otherwise`: the same of those with another algorithm, if the first sentence is about others. Both empty without.
    """

    headings: list[str]
    rows: list[Arrivals]
    figures: list[Figure]
    seeds: tuple[int, ...]
    sentence: str = ""
    otherwise: str = ""


def of_all_seeds(comparison: Comparison, among: Sequence[Comparison]) -> list[Comparison]:
    """Return the comparisons that differ from one in their seed alone, itself included; none unless it is their first."""
    found = same_but_seed(comparison, among)
    return found if found[0] is comparison else []


def same_but_seed(comparison: Comparison, among: Sequence[Comparison]) -> list[Comparison]:
    """Return the comparisons that differ from one in their seed alone, itself included."""
    cases = _without_seed(comparison)
    return [each for each in among if _without_seed(each) == cases]


def _without_seed(comparison: Comparison) -> frozenset[str]:
    return frozenset(repr(replace(each.case, seed=0, inputs="")) for each in comparison.contenders)


def section(comparisons: Sequence[Comparison], styles: dict[str, Style]) -> Learning | None:
    """Return the learning curves of comparisons that differ in their seed alone: one, several, or none.

    The trainings of a contender, its rounds and seeds, are drawn together. None unless one was trained for at least two epochs.
    """
    if not comparisons:
        return None
    first, by_variant = comparisons[0], dict[str, Line]()
    seeds = tuple(each.contenders[0].case.seed for each in comparisons if each.contenders)
    for contender in (contender for comparison in comparisons for contender in comparison.contenders):
        new = Line(contender.curve, styles[contender.variant], [], contender.in_text, contender.proof.on_purpose)
        line = by_variant.setdefault(contender.variant, new)
        line.courses.extend(learning.courses(contender.trials))
    lines = [
        line for line in by_variant.values() if min((len(course.epochs) for course in line.courses), default=0) > 1
    ]
    if not lines:
        return None
    drawn = [_curves(first, lines, "", unit) for unit in UNITS]
    score = next((course.score for line in lines for course in line.courses if course.score), "")
    scored = [line for line in lines if score and all(course.score == score for course in line.courses)]
    if not scored:
        return Learning([], [], drawn, seeds)
    drawn += [_curves(first, scored, score, unit) for unit in UNITS]
    shares = [_shares(line, first.thresholds, "seconds") for line in scored]
    drawn += [
        _arrived(first.group, scored, score, threshold, [each[place] for each in shares])
        for place, threshold in enumerate(first.thresholds)
    ]
    headings = [f"{score} {shown(score, threshold)}" for threshold in first.thresholds]
    rows = [Arrivals(line.title, line.style, _cells(line, first.thresholds)) for line in scored]
    sentence, otherwise = answer(scored, first.thresholds, score) if headings else ("", "")
    return Learning(
        headings + ["mean time"] * (len(headings) > 1), rows if headings else [], drawn, seeds, sentence, otherwise,
    )  # fmt: skip


def answer(lines: list[Line], thresholds: Sequence[float], score: str) -> tuple[str, str]:
    """Return such as `Training until accuracy 90 %: A 1.76 s, B 2.14 s, C never (medians of 2 trainings each).`

    It is about the hardest threshold that a training has reached; that none has reached a harder one is said. Other algorithms
    have a sentence of their own, the second; mistakes that are made on purpose have none.
    """
    same, other = ([line for line in lines if line.otherwise == label] for label in ("", OTHER))
    among = same + other
    if not among:
        return "", ""
    ordered = by_difficulty(score, thresholds)
    reached = [each for each in ordered if any(_shares(line, [each], "seconds")[0].arrived for line in among)]
    if not reached:
        return f"No training reached {score} {shown(score, ordered[0])}.", ""
    hardest = reached[-1]
    harder = ordered[ordered.index(hardest) + 1 :]
    none = f" None reached {shown(score, harder[0])}." if harder else ""
    if not same:
        return f"With another algorithm, until {score} {shown(score, hardest)}: {_times(other, hardest)}.{none}", ""
    otherwise = f"With another algorithm: {_times(other, hardest)}." if other else ""
    return f"Training until {score} {shown(score, hardest)}: {_times(same, hardest)}.{none}", otherwise


def by_difficulty(score: str, thresholds: Sequence[float]) -> list[float]:
    """Return thresholds of a score from the easiest to the hardest: of a perplexity, the lowest is the hardest."""
    return sorted(thresholds, reverse=not metrics.more_is_better(score))


def _times(lines: list[Line], threshold: float) -> str:
    """Return the time until each reached a threshold, the first ones by name."""
    shares = [(line.name, _shares(line, [threshold], "seconds")[0]) for line in lines]
    arrived = sorted(
        ((each.median, name) for name, each in shares if each.median is not None), key=operator.itemgetter(0)
    )
    parts = [f"{name} {duration(median * 1e9)}" for median, name in arrived[:MOST_NAMED]]
    if rest := arrived[MOST_NAMED:]:
        last = duration(rest[-1][0] * 1e9)
        parts.append(f"{rest[0][1]} {last}" if len(rest) == 1 else f"{len(rest)} others up to {last}")
    late = [(name, each.arrived) for name, each in shares if each.median is None]
    some, none = ([name for name, number in late if bool(number) is arrived] for arrived in (True, False))
    if some:
        parts.append(f"{_all(some, parts)} in fewer than half of {'its' if len(some) == 1 else 'their'} trainings")
    parts += [f"{_all(none, parts)} never"] if none else []
    runs = {each.runs for _, each in shares}
    several = f" (medians of {runs.pop()} trainings each)" if len(runs) == 1 and runs != {1} else ""
    return f"{', '.join(parts)}{several}"


def _all(names: list[str], before: list[str]) -> str:
    """Return names as a list, or how many they are; `before`: what the sentence has said of others."""
    return some_others(names) if before or len(names) <= MOST_NAMED else f"{len(names)} contenders"


def shown(score: str, value: float) -> str:
    """Return a value of a score as text."""
    return f"{value * 100:.4g} %" if metrics.in_percent(score) else f"{value:.4g}"


def _shares(line: Line, thresholds: Sequence[float], unit: Unit) -> list[Share]:
    arrivals = ([course.reaches(threshold, unit) for course in line.courses] for threshold in thresholds)
    return [survival.share_arrived(each) for each in arrivals]


def _cells(line: Line, thresholds: Sequence[float]) -> list[str]:
    epochs, seconds = (_shares(line, thresholds, unit) for unit in UNITS)
    found = [_cell(time, epoch) for time, epoch in zip(seconds, epochs, strict=True)]
    mean = survival.mean_over_thresholds(seconds)
    return found + ([duration(mean * 1e9) if mean is not None else "-"] if len(thresholds) > 1 else [])


def _cell(time: Share, epoch: Share) -> str:
    """Return such as `3.00 s, epoch 2 (2 of 2)`."""
    if time.median is None or epoch.median is None:
        return f"{time.arrived} of {time.runs}" if time.arrived else f"never (0 of {time.runs})"
    return f"{duration(time.median * 1e9)}, epoch {epoch.median:g} ({time.arrived} of {time.runs})"


def _curves(comparison: Comparison, lines: list[Line], score: str, unit: Unit) -> Figure:
    """Return the curves of the loss, or of a score, by epoch or by second."""
    data: list[dict[str, Any]] = []
    for line in lines:
        values = spread([course.scores[score] if score else course.losses for course in line.courses])
        across = spread([course.seconds if unit == "seconds" else course.epochs for course in line.courses]).mean
        scale = 100 if metrics.in_percent(score) else 1
        data += _band(line, across.tolist(), (values.low * scale).tolist(), (values.high * scale).tolist(), values.runs)
        data.append(_line(line, across.tolist(), (values.mean * scale).tolist(), unit, " %" if scale == 100 else ""))
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
    return Figure(name, title, caption + (BAND if several else ""), data, frame)


def _arrived(group: str, lines: list[Line], score: str, threshold: float, shares: list[Share]) -> Figure:
    """Return the share of trainings that have arrived, as steps from 0; a line ends with the last training."""
    data: list[dict[str, Any]] = []
    for line, share in zip(lines, shares, strict=True):
        end = max(course.seconds[-1] for course in line.courses)
        places = [0.0, *share.places, end]
        if share.runs > 1:
            low, high = ([0.0, *values, values[-1]] for values in (share.low, share.high))
            data += _band(line, places, [100 * each for each in low], [100 * each for each in high], share.runs, "hv")
        steps = [0.0, *(100 * each for each in share.shares), 100 * share.shares[-1]]
        data.append(_line(line, places, steps, "seconds", " %", "hv"))
    layout = {
        "xaxis": figures.axis("seconds of training", nticks=6, rangemode="tozero"),
        "yaxis": figures.axis("share of trainings", nticks=6, ticksuffix=" %", range=[-4, 104]),
    }
    text = shown(score, threshold)
    caption = ARRIVED.format(score=score, threshold=text)
    frame = figures.frame(HEIGHT, figures.LEGEND, hovermode="closest", **layout)
    return Figure(f"arrived/{group}/{threshold:g}", f"Share that reached {text}", caption, data, frame)


def _line(
    line: Line, across: list[float], values: list[float], unit: str, suffix: str, shape: str = "linear"
) -> dict[str, Any]:  # fmt: skip
    title = plain(line.title)
    where = "%{x:.4g} s" if unit == "seconds" else "epoch %{x:.4g}"
    return {
        "x": figures.rounded(across), "y": figures.rounded(values), "name": title, "legendgroup": line.title,
        "mode": "lines" if shape == "hv" else "lines+markers", "connectgaps": False,
        "line": {"color": line.style.colour, "width": 1.8, "dash": line.style.dash, "shape": shape},
        "marker": {"symbol": line.style.symbol, "size": 6, "color": line.style.colour},
        "hovertemplate": f"{title}<br>{where}: %{{y:.4g}}{suffix}<extra></extra>",
    }  # fmt: skip


def _band(
    line: Line, across: list[float], low: list[float], high: list[float], runs: int, shape: str = "linear"
) -> list[dict[str, Any]]:  # fmt: skip
    """Return the two edges of a band, the second filled down to the first; nothing for a single run."""
    if runs < 2:
        return []
    edge = {
        "x": figures.rounded(across), "mode": "lines", "line": {"width": 0, "color": line.style.colour, "shape": shape},
        "showlegend": False, "legendgroup": line.title, "hoverinfo": "skip",
    }  # fmt: skip
    fill = {"fill": "tonexty", "fillcolor": _transparent(line.style.colour)}
    return [{**edge, "y": figures.rounded(low)}, {**edge, "y": figures.rounded(high), **fill}]


def _transparent(colour: str) -> str:
    """Return a colour, `#rrggbb`, as one that shows what is behind it."""
    red, green, blue = (int(colour[place : place + 2], 16) for place in (1, 3, 5))
    return f"rgba({red},{green},{blue},{BAND_OPACITY})"
