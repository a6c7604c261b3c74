"""The plots of the page for a paper: drawn by matplotlib from the data of the figures, as wide as a column."""

from __future__ import annotations

import html
import io
import math
import re
from typing import TYPE_CHECKING, Any

from steelyard.exports import extras
from steelyard.files import atomic
from steelyard.report.sections import figures_of

if TYPE_CHECKING:
    from pathlib import Path

    from steelyard.analysis.model import View
    from steelyard.report.figures import Figure

WIDTH_MM = 85.0
MM_PER_INCH = 25.4
PIXELS = 440
"""The width in pixels of a page's plot that becomes a column: then texts of the page have this size of letters."""
POINTS = WIDTH_MM / MM_PER_INCH * 72 / PIXELS
"""Points for a pixel of the page."""
FONT_SIZE = 7
MOST_LABELS, LETTERS = 20, 46
"""Labels of a heat map's axis, and letters of a legend in one line."""
MOST_TICKS = 6
LINE, MARK = 0.45, 0.45
"""How much thinner lines and smaller marks are than on the page."""
SYMBOLS = {
    "circle": "o",
    "square": "s",
    "diamond": "D",
    "triangle-up": "^",
    "triangle-down": "v",
    "cross": "P",
    "star": "*",
    "x": "x",
    "line-ns": "|",
    "line-ew": "_",
}
DASHES = {"solid": "-", "dash": "--", "dot": ":", "dashdot": "-.", "longdash": (0, (8, 3))}
METADATA = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}
RGBA = re.compile(r"rgba?\(([^)]*)\)")
TAG = re.compile(r"<[^>]*>")


def write(view: View, folder: Path, kind: str) -> list[Path]:
    """Write each figure to a file of a kind, "svg" or "pdf", and its caption to `captions.txt`. UserError: no matplotlib."""
    drawn = figures_of(view)
    names = [
        f"{place:02d}-{re.sub(r'[^A-Za-z0-9]+', '-', each.name).strip('-')}" for place, each in enumerate(drawn, 1)
    ]
    written = [
        atomic.write_bytes(folder / f"{name}.{kind}", content(figure, kind))
        for name, figure in zip(names, drawn, strict=True)
    ]
    captions = [f"{name}: {figure.title}. {figure.caption}" for name, figure in zip(names, drawn, strict=True)]
    return [*written, atomic.write_text(folder / "captions.txt", "\n".join(captions) + "\n")]


def content(figure: Figure, kind: str) -> bytes:
    """Return a figure as the bytes of a file. The same figure gives the same bytes."""
    matplotlib = extras.needed("matplotlib", "matplotlib", "plots", f"The format {kind}")
    drawing = extras.needed("matplotlib.figure", "matplotlib", "plots", f"The format {kind}")
    settings = {
        "font.size": FONT_SIZE,
        "svg.fonttype": "none",
        "pdf.fonttype": 42,
        "svg.hashsalt": figure.name,
        "text.parse_math": False,
    }
    file = io.BytesIO()
    with matplotlib.rc_context(settings):
        made = drawing.Figure(figsize=_size(figure), layout="constrained")
        for number, key in enumerate(_panels(figure)):
            _Panel(made, figure, key, number).draw()
        made.savefig(file, format=kind, metadata=METADATA.get(kind))
    return file.getvalue()


def _size(figure: Figure) -> tuple[float, float]:
    """Return width and height in inches."""
    width = WIDTH_MM / MM_PER_INCH
    height = float(figure.layout.get("height", 300)) / PIXELS * width
    return width, max(height, 0.35 * width)


def _panels(figure: Figure) -> list[str]:
    """Return the vertical axes of a figure from above: "y", "y2", ..."""
    return list(dict.fromkeys(str(trace.get("yaxis", "y")) for trace in figure.data)) or ["y"]


class _Panel:
    """The part of a figure that has one vertical axis."""

    def __init__(self, made: Any, figure: Figure, key: str, number: int) -> None:
        self.layout, self.key = figure.layout, key
        self.axes = made.add_subplot(len(_panels(figure)), 1, number + 1)
        self.traces = [trace for trace in figure.data if str(trace.get("yaxis", "y")) == key]
        self.across: dict[str, Any] = self.layout.get(
            str((self.traces or [{}])[0].get("xaxis", "x")).replace("x", "xaxis"), {}
        )
        self.down: dict[str, Any] = self.layout.get(key.replace("y", "yaxis"), {})
        self.base: dict[Any, float] = {}

    def draw(self) -> None:
        """Draw all traces, axes, shapes and notes."""
        for trace in self.traces:
            kind = trace.get("type", "scatter")
            {"bar": self._bars, "heatmap": self._cells}.get(kind, self._line)(trace)
        self._axis("x", self.across)
        self._axis("y", self.down)
        self._shapes()
        self._notes()
        if self.layout.get("showlegend") and any(labels := self.axes.get_legend_handles_labels()[1]):
            columns = len(labels) if sum(map(len, labels)) + 5 * len(labels) < LETTERS else 2
            self.axes.legend(
                loc="lower left",
                bbox_to_anchor=(0, 1),
                ncols=columns,
                frameon=False,
                borderaxespad=0.2,
                handlelength=1.6,
            )
        self.axes.spines[["top", "right"]].set_visible(False)

    def _line(self, trace: dict[str, Any]) -> None:
        mode, line, marker = str(trace.get("mode", "lines")), trace.get("line") or {}, trace.get("marker") or {}
        colour = _colour(line.get("color") or _one(marker.get("color")) or "#444444")
        x, y = _numbers(trace.get("x")), _numbers(trace.get("y"))
        if trace.get("fill") == "toself":
            self.axes.fill(x, y, color=_colour(trace.get("fillcolor", line.get("color", "#444444"))), linewidth=0)
            return
        symbol = str(_one(marker.get("symbol")) or "circle")
        drawn_line, drawn_marks = "lines" in mode, "markers" in mode
        self.axes.plot(
            x,
            y,
            color=colour,
            label=_label(trace),
            linestyle=DASHES.get(str(line.get("dash", "solid")), "-") if drawn_line else "none",
            linewidth=LINE * float(line.get("width", 2)),
            drawstyle="steps-post" if line.get("shape") == "hv" else "default",
            marker=SYMBOLS.get(symbol.removesuffix("-open"), "o") if drawn_marks else "none",
            markersize=MARK * float(_one(marker.get("size")) or 6),
            markeredgewidth=0.7,
            markerfacecolor="none" if symbol.endswith("-open") else colour,
        )
        if "text" in mode:
            for place, text in enumerate(_list(trace.get("text"))[: len(x)]):
                self.axes.annotate(plain(text), (x[place], y[place]), textcoords="offset points", xytext=(2, 2))

    def _bars(self, trace: dict[str, Any]) -> None:
        lies = trace.get("orientation") == "h"
        lengths = _numbers(trace.get("x" if lies else "y"))
        places = _places(trace.get("y" if lies else "x"))
        starts = _numbers(trace.get("base")) if isinstance(trace.get("base"), list) else self._starts(places, lengths)
        marker = trace.get("marker") or {}
        colours = [_colour(each) for each in _list(marker.get("color"))] or ["#444444"]
        draw = self.axes.barh if lies else self.axes.bar
        side = {"left": starts} if lies else {"bottom": starts}
        size = {"height" if lies else "width": _one(trace.get("width")) or 0.8}
        draw(places, lengths, color=colours if len(colours) > 1 else colours[0], label=_label(trace), **side, **size)

    def _starts(self, places: list[Any], lengths: list[float]) -> list[float]:
        """Return where each bar begins: stacked bars on the one before."""
        if self.layout.get("barmode") not in ("stack", "relative"):
            return [0.0] * len(lengths)
        starts = [self.base.get(place, 0.0) for place in places]
        self.base |= {place: start + length for place, start, length in zip(places, starts, lengths, strict=True)}
        return starts

    def _cells(self, trace: dict[str, Any]) -> None:
        rows = [_numbers(row) for row in trace.get("z", [])]
        scale = trace.get("colorscale")
        colours = [_colour(colour) for _, colour in scale] if isinstance(scale, list) else ["#ffffff", "#1f4e9c"]
        from matplotlib import ticker
        from matplotlib.colors import LinearSegmentedColormap

        shades = LinearSegmentedColormap.from_list("page", colours)
        self.axes.imshow(
            rows, cmap=shades, vmin=trace.get("zmin"), vmax=trace.get("zmax"), aspect="auto", origin="lower"
        )
        for name, labels in (("x", trace.get("x")), ("y", trace.get("y"))):
            texts = [plain(str(each)) for each in _list(labels)]
            if 0 < len(texts) <= MOST_LABELS:
                getattr(self.axes, f"set_{name}ticks")(range(len(texts)), texts)
            elif not texts:
                getattr(self.axes, f"{name}axis").set_major_locator(ticker.MaxNLocator(integer=True))
        for row, texts in enumerate(trace.get("text") or []):
            for column, text in enumerate(texts):
                self.axes.text(column, row, plain(str(text)), ha="center", va="center", fontsize=FONT_SIZE - 2)

    def _axis(self, name: str, axis: dict[str, Any]) -> None:
        set_ = {what: getattr(self.axes, f"set_{name}{what}") for what in ("label", "scale", "lim", "ticks")}
        heading = axis.get("title") or {}
        set_["label"](plain(str(heading.get("text", "") if isinstance(heading, dict) else heading)))
        logarithmic = axis.get("type") == "log"
        if logarithmic:
            set_["scale"]("log")
        ends = axis.get("range")
        if isinstance(ends, list) and all(isinstance(end, int | float) for end in ends):
            set_["lim"](*(10**end for end in ends) if logarithmic else ends)
        elif axis.get("autorange") == "reversed" and name == "y":
            self.axes.invert_yaxis()
        if axis.get("tickvals"):
            texts = [plain(str(text)) for text in axis.get("ticktext") or axis["tickvals"]]
            set_["ticks"](axis["tickvals"], texts)
            getattr(self.axes, f"{name}axis").set_minor_locator(_ticker().NullLocator())
        elif not self._has_names(name):
            self._numbers_on(name, axis)
        if axis.get("visible") is False:
            getattr(self.axes, f"{name}axis").set_visible(False)

    def _numbers_on(self, name: str, axis: dict[str, Any]) -> None:
        """Write the numbers of an axis with their unit, and few enough for the width of a column."""
        drawn = getattr(self.axes, f"{name}axis")
        if axis.get("type") != "log" and not any(trace.get("type") == "heatmap" for trace in self.traces):
            drawn.set_major_locator(_ticker().MaxNLocator(MOST_TICKS))
        if written := _format(axis):
            drawn.set_major_formatter(written)

    def _has_names(self, name: str) -> bool:
        """Report whether names stand on an axis, and no numbers."""
        return any(isinstance(each, str | list) for trace in self.traces for each in _list(trace.get(name)))

    def _shapes(self) -> None:
        for shape in self.layout.get("shapes", []):
            if not _belongs(shape.get("yref", "y"), self.key):
                continue
            line = shape.get("line") or {}
            style = {
                "color": _colour(line.get("color", "#888888")),
                "linewidth": LINE * float(line.get("width", 1)),
                "linestyle": DASHES.get(str(line.get("dash", "solid")), "-"),
            }
            ends = [shape.get(name) for name in ("x0", "x1", "y0", "y1")]
            if not all(isinstance(end, int | float) and math.isfinite(end) for end in ends):
                continue
            x0, x1, y0, y1 = ends
            if shape.get("type") == "rect":
                whole = str(shape.get("yref", "y")).endswith("paper") or str(shape.get("yref", "y")).endswith("domain")
                draw = self.axes.axvspan if whole else self.axes.axhspan
                draw(
                    *((x0, x1) if whole else (y0, y1)),
                    color=_colour(shape.get("fillcolor", "#cccccc")),
                    linewidth=0,
                    zorder=0,
                )
            elif x0 == x1:
                self.axes.axvline(x0, zorder=0, **style)
            elif y0 == y1:
                self.axes.axhline(y0, zorder=0, **style)
            else:
                self.axes.plot([x0, x1], [y0, y1], zorder=0, **style)

    def _notes(self) -> None:
        """Write the texts of the layout. Places on "paper" are shares of the panel; other places are those of the data."""
        for note in self.layout.get("annotations", []):
            if not _belongs(note.get("yref", "paper"), self.key) or not isinstance(note.get("y"), int | float):
                continue
            if not isinstance(note.get("x"), int | float):
                continue
            where = (self._frame(note, "x"), self._frame(note, "y"))
            shift = (POINTS * note.get("xshift", 0), POINTS * note.get("yshift", 0))
            side, level = _side(note.get("xanchor")), _level(note.get("yanchor"))
            self.axes.annotate(
                plain(str(note.get("text", ""))),
                (note["x"], note["y"]),
                xycoords=where,
                textcoords="offset points",
                xytext=shift,
                ha=side,
                va=level,
                annotation_clip=False,
            )

    @staticmethod
    def _frame(note: dict[str, Any], name: str) -> str:
        where = str(note.get(f"{name}ref", "paper"))
        return "axes fraction" if where.endswith(("paper", "domain")) else "data"


def _belongs(reference: Any, key: str) -> bool:
    """Report whether something that refers to an axis is in the panel of another: those of the whole paper are in the first."""
    text = str(reference).removesuffix(" domain")
    return text == key or (text == "paper" and key == "y")


def plain(text: str) -> str:
    """Return a text of plotly without its tags; line breaks stay."""
    return html.unescape(TAG.sub("", re.sub(r"<br\s*/?>", "\n", text)))


def _label(trace: dict[str, Any]) -> str:
    """Return the text of a trace in the legend; matplotlib leaves out those that begin with an underscore."""
    name = plain(str(trace.get("name") or ""))
    return f"\u200b{name}" if name.startswith("_") else name if name and trace.get("showlegend", True) else "_"


def _places(values: Any) -> list[Any]:
    """Return where bars stand: numbers or names; of two lists, a group and a name for each, both in one text."""
    found = _list(values)
    if found and all(isinstance(each, list) for each in found):
        found = [", ".join(map(str, pair)) for pair in zip(*found, strict=True)]
    return [plain(each) if isinstance(each, str) else each for each in found]


def _numbers(values: Any) -> list[float]:
    return [float(each) if isinstance(each, int | float) else math.nan for each in _list(values)]


def _list(values: Any) -> list[Any]:
    return list(values) if isinstance(values, list | tuple) else [] if values is None else [values]


def _one(value: Any) -> Any:
    return value[0] if isinstance(value, list | tuple) and value else value


def _side(anchor: Any) -> str:
    return {"left": "left", "right": "right"}.get(str(anchor), "center")


def _level(anchor: Any) -> str:
    return {"top": "top", "bottom": "bottom"}.get(str(anchor), "center")


def _ticker() -> Any:
    from matplotlib import ticker

    return ticker


def _format(axis: dict[str, Any]) -> Any:
    """Return how numbers on an axis are written, as far as the page says it; None: as usual."""
    suffix, form = plain(str(axis.get("ticksuffix", ""))), str(axis.get("tickformat", ""))
    if form.endswith("s") and suffix:  # with a prefix of the unit, such as 10 ms
        return _ticker().EngFormatter(unit=suffix.strip())
    if form.endswith("%"):
        return _ticker().PercentFormatter(1.0)
    if suffix or axis.get("type") == "log":
        return _ticker().FuncFormatter(lambda value, _: f"{value:,g}{suffix}")
    return None


def _colour(text: Any) -> Any:
    """Return a colour for matplotlib: "#rrggbb", or four numbers from "rgba(...)"."""
    found = RGBA.fullmatch(str(text).strip())
    if not found:
        return str(text)
    parts = [float(part) for part in found[1].split(",")]
    return (*(part / 255 for part in parts[:3]), *(parts[3:] or [1.0]))
