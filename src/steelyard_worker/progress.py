"""An event after each computation of a certificate.

A step of a large network in float64 takes minutes. Without an event for as long as a run allows, the process counts as
hanging and is stopped.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    from steelyard_worker.protocol import EventWriter

COMPUTING = ("gradients", "step", "synchronise", "outputs", "inner")


def reported(build: Callable[..., Any], events: EventWriter) -> Callable[..., Any]:
    """Return `build`, whose trainers and predictors write a phase after each of the computations `COMPUTING`."""
    return lambda *arguments: _Reporting(build(*arguments), events)


class _Reporting:
    """A wrapper around a trainer or predictor, with all of its attributes."""

    def __init__(self, own: Any, events: EventWriter) -> None:
        self._own, self._events = own, events

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._own, name)
        if name not in COMPUTING:
            return found

        def computed(*arguments: Any) -> Any:
            began = time.monotonic_ns()
            result = found(*arguments)
            self._events.write("phase", name=name, elapsed_ns=time.monotonic_ns() - began)
            return result

        return computed
