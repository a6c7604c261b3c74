"""Everything beside the steps: rounds against each other, starting up, memory, and what the machine did meanwhile."""

from __future__ import annotations

from statistics import fmean
from typing import TYPE_CHECKING, Any

from steelyard import store
from steelyard.report import figures, words
from steelyard.report.figures import Figure, plain

if TYPE_CHECKING:
    from steelyard.report.model import Comparison, Contender, View
    from steelyard.report.styles import Style

BAR_PIXELS = 44
PHASES = (("import", "import", "#636784", ""), ("build", "build the network", "#a3907a", "/"), ("first-step", "first step", "#c17013", ""))
USES = (("own_cores", "this run", "#6892d1", ""), ("foreign_cores", "other programs", "#c13a3a", "/"), ("steal", "taken by the host", "#636784", "."))


def rounds(comparison: Comparison, source: str, styles: dict[str, Style]) -> Figure | None:
    """Return each process's distance from its contender's mean; None before there are two rounds."""
    located = [(c, {store.round_of(t)[0]: v for t in c.trials if (v := t.location_ns(source))}) for c in comparison.contenders]
    repeated = [(contender, values) for contender, values in located if len(values) > 1]
    if not repeated:
        return None
    data = []
    for contender, values in repeated:
        style, mean, title = styles[contender.cell.arm], fmean(values.values()), plain(contender.title)
        open_ = "" if contender.proof.state == "certified" else "-open"
        data.append({
            "x": list(values), "y": figures.rounded(100 * (value / mean - 1) for value in values.values()), "name": title,
            "mode": "lines+markers", "line": {"color": style.colour, "width": 1.5, "dash": style.dash},
            "marker": {"symbol": style.symbol + open_, "size": 8, "color": style.colour}, "text": [words.duration(value) for value in values.values()],
            "hovertemplate": f"{title}, round %{{x}}<br>%{{text}} a step (%{{y:+.2f}} %)<extra></extra>",
        })  # fmt: skip
    reach = max(1.0, *(abs(float(y)) for trace in data for y in trace["y"])) * 1.15
    layout = figures.frame(
        320, showlegend=True, legend={"orientation": "h", "y": 1.02, "yanchor": "bottom", "x": 0}, hovermode="closest",
        xaxis=figures.axis("round", dtick=1), yaxis=figures.axis("", ticksuffix=" %", range=[-reach, reach], nticks=6),
    )  # fmt: skip
    if source != next(iter(comparison.rankings)):
        says = "The same for the resident batch."
    else:
        says = "Each round is a fresh process. Its mean step, as a distance from the mean of all its contender's rounds: the scatter is what the intervals are made of, and what moves all contenders at once is the machine."
    return Figure(f"rounds/{comparison.group}/{source}", f"Round by round, {words.SHORT_INPUTS[source]}", says, data, layout)


def start(comparison: Comparison, styles: dict[str, Style]) -> Figure | None:  # noqa: ARG001
    """Return what a process takes before its second step."""
    started = [contender for contender in comparison.contenders if contender.trials and any(contender.phases_ns.values())]
    if not started:
        return None
    data = []
    for key, said, colour, pattern in PHASES:
        spent = [contender.phases_ns.get(key, 0.0) for contender in started]
        data.append({
            "type": "bar", "orientation": "h", "x": figures.rounded(value / 1e9 for value in spent), "y": list(range(len(started))), "name": said, "width": 0.36,
            "marker": {"color": colour, "pattern": {"shape": pattern, "fillmode": "overlay", "fgcolor": "#ffffff", "fgopacity": 0.8, "size": 6}}, "text": [words.duration(v) if v else "0 s" for v in spent], "textposition": "none",
            "hovertemplate": f"{said}: %{{text}}<extra></extra>",
        })  # fmt: skip
    totals = [words.duration(sum(contender.phases_ns.values())) for contender in started]
    layout = _bars(started, totals, figures.axis("seconds", nticks=6, rangemode="tozero"))
    layout |= {"barmode": "stack", "showlegend": True, "legend": {"orientation": "h", "y": 1.0, "yanchor": "bottom", "x": 0, "traceorder": "normal"}}
    says = "What every process pays before its second step, the median over rounds: importing the framework, building the network and its optimizer, and the first step with compilation or tracing."
    return Figure(f"start/{comparison.group}", "Starting up", says, data, layout)


def memory(comparison: Comparison, styles: dict[str, Style]) -> Figure | None:
    """Return the peak memory of each contender."""
    known = [(contender, contender.peak_device_bytes or contender.peak_resident_bytes) for contender in comparison.contenders]
    sized = [(contender, size) for contender, size in known if size]
    if not sized:
        return None
    data = [{
        "type": "bar", "orientation": "h", "x": figures.rounded(size / 2**20 for _, size in sized), "y": list(range(len(sized))), "width": 0.36,
        "marker": {"color": [styles[contender.cell.arm].colour for contender, _ in sized]}, "hovertemplate": "%{x:,.0f} MiB<extra></extra>",
    }]  # fmt: skip
    layout = _bars([contender for contender, _ in sized], [words.memory(contender) for contender, _ in sized], figures.axis("MiB", nticks=6))
    says = "The most memory a process held, on the device where the framework counts it, else in all, the interpreter and the framework's libraries included."
    return Figure(f"memory/{comparison.group}", "Peak memory", says, data, layout)


def machine(view: View) -> Figure | None:
    """Return how busy the machine was in each round, and with whose work."""
    lines = [line for line in view.disturbances if line["quietness"].get("seconds", 0) > 0]
    if not lines:
        return None
    cores = view.record.host.get("cores_logical") or 0
    places = [[plain(line["group"]) for line in lines], [_place(line) for line in lines]]
    data: list[dict[str, Any]] = []
    for key, said, colour, pattern in USES:
        used = [cores * line["quietness"].get("steal_share", 0.0) if key == "steal" else line["quietness"].get(key, 0.0) for line in lines]
        data.append({
            "type": "bar", "x": places, "y": figures.rounded(used, 3), "name": said, "hovertemplate": f"%{{y:.2f}} cores, {said}<extra></extra>",
            "marker": {"color": colour, "pattern": {"shape": pattern, "fillmode": "overlay", "fgcolor": "#ffffff", "fgopacity": 0.8, "size": 6}},
        })  # fmt: skip
    layout = figures.frame(
        300, barmode="stack", showlegend=True, legend={"orientation": "h", "y": 1.02, "yanchor": "bottom", "x": 0}, bargap=0.35,
        xaxis=figures.axis("", type="multicategory", showgrid=False, tickfont={"size": 11}), yaxis=figures.axis("cores in use", nticks=6, range=[0, max(cores, 1) * 1.08]),
        shapes=[{"type": "line", "xref": "paper", "x0": 0, "x1": 1, "y0": cores, "y1": cores, "line": {"width": 1, "dash": "dot", "color": figures.QUIET}}],
    )  # fmt: skip
    says = f"Processors in use during each round, of {cores}. Work of other programs, and time that the host of a virtual machine took away, disturb a round; a round marked with a cross was measured again."
    return Figure("machine", "Utilisation of the machine", says, data, layout, wide=True)


def _place(line: dict[str, Any]) -> str:
    attempt = f".{line['attempt']}" if line.get("attempt") else ""
    return f"{line['round']}{attempt}{'' if line['kept'] else ' ×'}"


def _bars(contenders: list[Contender], texts: list[str], across: dict[str, Any]) -> dict[str, Any]:
    """Return a frame with a name and a figure above each bar, so that narrow screens keep their width for the bars."""
    notes = [figures.note(plain(c.title), x=0, y=row, yshift=7, font={"size": 13}) for row, c in enumerate(contenders)]
    notes += [figures.note(plain(text), x=1, y=row, yshift=7, xanchor="right") for row, text in enumerate(texts)]
    down = figures.axis(range=[len(contenders) - 0.6, -0.9], visible=False, fixedrange=True)
    return figures.frame(BAR_PIXELS * len(contenders) + 84, xaxis=across, yaxis=down, annotations=notes, hovermode="closest")
