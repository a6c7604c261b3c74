"""Running statistics of batch norm: how much of the new value is taken, and which variance."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from steelyard.ports.causes import Family, Place, Settings

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from steelyard.ports.given_inputs import Array

SHARES = (0.1, 0.01, 0.9, 0.99, 0.001, 0.003)
DIGITS = 6


def _of_batch(place: Place, channels: str, subtracted: int) -> Array | None:
    """Return the batch's mean or variance of every channel."""
    x, old = place.inputs["input"], place.inputs["old"]
    axis = 1 if channels == "second" else x.ndim - 1
    if x.ndim <= axis or x.shape[axis] != old.size:
        return None
    others = tuple(each for each in range(x.ndim) if each != axis)
    found: Array = x.var(others, ddof=subtracted) if place.inputs["is variance"] else x.mean(others)
    return found


def _updated(place: Place, settings: Settings) -> Array | None:
    batch = _of_batch(place, settings["channels"], settings["subtracted"])
    old = place.inputs["old"]
    return None if batch is None else (1 - settings["share"]) * old + settings["share"] * batch


def _fitted(place: Place) -> Iterator[float]:
    """Yield the share that fits each side best, for every form of the statistic."""
    old = place.inputs["old"]
    for subtracted in (0, 1):
        for channels in ("second", "last"):
            batch = _of_batch(place, channels, subtracted)
            for new in (place.left, place.right) if batch is not None else ():
                change = batch - old
                norm = float(change @ change)
                if norm:
                    yield round(float((new - old) @ change) / norm, DIGITS)


def _values(place: Place) -> Mapping[str, Sequence[Any]]:
    subtracted = (0, 1) if place.inputs["is variance"] else (0,)
    return {"share": [*SHARES, *_fitted(place)], "subtracted": subtracted, "channels": ("second", "last")}


def _words(name: str, value: Any) -> str:
    if name == "share":
        return f"{value:g} of the batch's value taken"
    if name == "subtracted":
        return "the variance over n - 1" if value else "the variance over n"
    return f"channels {value}"


FAMILY = Family("running statistics", _updated, _values, _words)
