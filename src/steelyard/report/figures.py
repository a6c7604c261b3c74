"""Common parts of all plots: a figure as plain data for plotly.js, and a layout for light, dark and print."""

import html
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

Series = np.ndarray[Any, np.dtype[np.float64]]

# Half-transparent grey is visible on white and on black; the style sheet sets the colour of text.
GRID = "rgba(128,128,128,0.28)"
BAND = "rgba(128,128,128,0.20)"
MUTED = "#8a8f98"
CLEAR = "rgba(0,0,0,0)"
DARK = "#22262b"
FONT = 'system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif'
HOVER_LABEL = {
    "bgcolor": DARK,
    "bordercolor": DARK,
    "font": {"family": FONT, "size": 12, "color": "#ffffff"},
    "align": "left",
}
LEGEND = {"orientation": "h", "y": 1.02, "yanchor": "bottom", "x": 0, "traceorder": "normal"}


@dataclass(frozen=True)
class Figure:
    """One plot. `caption` describes its content, also for readers who cannot see it."""

    name: str
    title: str
    caption: str
    data: list[dict[str, Any]]
    layout: dict[str, Any]
    wide: bool = False

    def as_dict(self) -> dict[str, Any]:
        """Return the data for plotly.js."""
        return {"name": self.name, "data": self.data, "layout": self.layout}


def frame(height: int, legend: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    """Return a layout, with a legend if one is given; `more` holds the axes and other properties."""
    return {
        "autosize": True,
        "height": height,
        "margin": {"l": 8, "r": 12, "t": 12, "b": 40},
        "showlegend": bool(legend),
        "paper_bgcolor": CLEAR,
        "plot_bgcolor": CLEAR,
        "font": {"family": FONT, "size": 12, "color": MUTED},
        "dragmode": "zoom",
        "hoverlabel": HOVER_LABEL,
        **({"legend": legend} if legend else {}),
        **more,
    }


def axis(title: str = "", **more: Any) -> dict[str, Any]:
    """Return an axis with a thin grid."""
    return {
        "title": {"text": plain(title), "font": {"size": 12}, "standoff": 6},
        "gridcolor": GRID,
        "zeroline": False,
        "linecolor": GRID,
        "tickcolor": GRID,
        "automargin": True,
        "fixedrange": False,
        **more,
    }


def annotation(text: str, **where: Any) -> dict[str, Any]:
    """Return a text inside a plot."""
    place = {"xanchor": "left", "yanchor": "bottom", "xref": "paper", "yref": "y", "align": "left"}
    return {"text": text, "showarrow": False, **place, **where}


def rows(height: int, across: dict[str, Any], texts: list[tuple[str, str]], top: float, shift: int) -> dict[str, Any]:
    """Return a layout of rows with (title, numbers) above each, which leaves narrow screens their width for the data.

    `top` is the upper end of the vertical axis in rows, `shift` the distance of a text from its row in pixels.
    """
    notes = [annotation(plain(title), x=0, y=y, yshift=shift, font={"size": 13}) for y, (title, _) in enumerate(texts)]
    notes += [annotation(plain(text), x=1, y=y, yshift=shift, xanchor="right") for y, (_, text) in enumerate(texts)]
    down = axis(range=[len(texts) - 0.6, top], visible=False, fixedrange=True)
    return frame(height, xaxis=across, yaxis=down, annotations=notes, hovermode="closest")


def bar_style(colour: str, hatch: str) -> dict[str, Any]:
    """Return the style of a bar: a colour, and a hatch that distinguishes it without colour."""
    pattern = {"shape": hatch, "fillmode": "overlay", "fgcolor": "#ffffff", "fgopacity": 0.8, "size": 6}
    return {"color": colour, "pattern": pattern}


def plain(text: str) -> str:
    """Return text escaped for plotly.js, which interprets some HTML."""
    return html.escape(text, quote=False)


def rounded(values: Iterable[float], digits: int = 5) -> list[float | None]:
    """Return numbers rounded to save space in the page; those that are not finite, also after rounding, become None."""
    found = (float(f"{value:.{digits}g}") for value in values)
    return [value if np.isfinite(value) else None for value in found]


def extremes(values: Series, bins: int) -> tuple[np.ndarray[Any, np.dtype[np.int64]], Series]:
    """Return (positions, values) of the smallest and the largest value of each bin, in order; keeps every spike."""
    if len(values) <= 2 * bins:
        return np.arange(len(values)), values
    edges = np.linspace(0, len(values), bins + 1).astype(np.int64)
    bounds = list(pairwise(edges))
    lowest = [start + int(values[start:stop].argmin()) for start, stop in bounds]
    highest = [start + int(values[start:stop].argmax()) for start, stop in bounds]
    places = np.unique(np.array(lowest + highest, dtype=np.int64))
    return places, values[places]
