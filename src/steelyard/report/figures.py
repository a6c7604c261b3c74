"""What every plot shares: a figure as plain data for plotly.js, and the frame that suits light, dark and paper."""

from __future__ import annotations

import html
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable

    Series = np.ndarray[Any, np.dtype[np.float64]]

# Half-transparent grey reads on white and on black; the colour of text is the style sheet's.
GRID = "rgba(128,128,128,0.28)"
BAND = "rgba(128,128,128,0.20)"
QUIET = "#8a8f98"
CLEAR = "rgba(0,0,0,0)"
FONT = 'system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif'
LEGEND = {"orientation": "h", "y": 1.02, "yanchor": "bottom", "x": 0, "traceorder": "normal"}


@dataclass(frozen=True)
class Figure:
    """One plot. `says` is its content in a sentence, for those who cannot see it and those who wonder what to see."""

    name: str
    title: str
    says: str
    data: list[dict[str, Any]]
    layout: dict[str, Any]
    wide: bool = False

    def as_dict(self) -> dict[str, Any]:
        """Return what plotly.js draws."""
        return {"name": self.name, "data": self.data, "layout": self.layout}


def frame(height: int, **more: Any) -> dict[str, Any]:
    """Return a layout without a legend; axes are given by `more`."""
    return {
        "autosize": True,
        "height": height,
        "margin": {"l": 8, "r": 12, "t": 12, "b": 40},
        "showlegend": False,
        "paper_bgcolor": CLEAR,
        "plot_bgcolor": CLEAR,
        "font": {"family": FONT, "size": 12, "color": QUIET},
        "dragmode": "zoom",
        "hoverlabel": {
            "bgcolor": "#22262b",
            "bordercolor": "#22262b",
            "font": {"family": FONT, "size": 12, "color": "#ffffff"},
            "align": "left",
        },
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


def note(text: str, **where: Any) -> dict[str, Any]:
    """Return a piece of text on a plot."""
    return {
        "text": text,
        "showarrow": False,
        "xanchor": "left",
        "yanchor": "bottom",
        "xref": "paper",
        "yref": "y",
        "align": "left",
        **where,
    }


def hatched(colour: str, hatch: str) -> dict[str, Any]:
    """Return the look of a bar: a colour, and a hatch that tells it from its neighbours without colour."""
    return {
        "color": colour,
        "pattern": {"shape": hatch, "fillmode": "overlay", "fgcolor": "#ffffff", "fgopacity": 0.8, "size": 6},
    }


def plain(text: str) -> str:
    """Return text that a plot shows as it is: plotly.js reads a little HTML."""
    return html.escape(text, quote=False)


def rounded(values: Iterable[float], digits: int = 5) -> list[float | None]:
    """Return numbers short enough for a page; what is not finite becomes nothing."""
    return [float(f"{value:.{digits}g}") if np.isfinite(value) else None for value in values]


def extremes(values: Series, bins: int) -> tuple[np.ndarray[Any, np.dtype[np.int64]], Series]:
    """Return (positions, values) of the smallest and largest of each bin in order: shorter, with every spike kept."""
    if len(values) <= 2 * bins:
        return np.arange(len(values)), values
    edges = np.linspace(0, len(values), bins + 1).astype(np.int64)
    pairs = [
        (start + int(values[start:stop].argmin()), start + int(values[start:stop].argmax()))
        for start, stop in pairwise(edges)
    ]
    places = np.unique(np.array(pairs, dtype=np.int64).ravel())
    return places, values[places]
