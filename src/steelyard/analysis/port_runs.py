"""Runs that time the two models of a port: what is said otherwise of them, because their models are the user's own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from steelyard_worker.port.side_functions import OWN

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from steelyard_worker.case import Case

ORIGIN = "the arrays of port.toml"
INPUT = "{Task} on one cached batch, the arrays of port.toml"


def is_one(cases: Iterable[Case]) -> bool:
    """Return whether cases are the sides of a port."""
    return any(case.settings.mode == OWN for case in cases)


def parameters(cases: Iterable[Case], certificates: Mapping[str, Mapping[str, Any]]) -> int:
    """Return how many parameters a port's models train, which its check counted; 0: they were not checked."""
    return max((certificates.get(case.id, {}).get("parameters", 0) for case in cases), default=0)
