"""The knob `dropout`: whether the networks that are built have it. Its masks come from the framework's own generator."""

from __future__ import annotations

from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

ON, OFF = "on", "off"
# Every framework draws its masks from this seed, so that a process can be repeated; no two frameworks draw the same.
SEED = 1

_value: ContextVar[str] = ContextVar("dropout", default=OFF)


@contextmanager
def built_as(value: str) -> Iterator[None]:
    """Build every network within with dropout ("on") or without ("off")."""
    token = _value.set(value)
    try:
        yield
    finally:
        _value.reset(token)


def after_convolution(stage: int, number: int, count: int) -> float:
    """Return the rate of dropout after a convolution of VGG with `conv_dropout`; 0: there is none.

    stage, number: from 1; count: convolutions of the stage. Before a pool there is none, in the first stage it is 0.3 and later
    0.4, as usual since Liu and Deng 2015, doi 10.1109/ACPR.2015.7486599. Certificates compare networks without dropout, so that
    all frameworks take the rates from here.
    """
    if number == count:
        return 0.0
    return 0.3 if stage == 1 else 0.4


# The rate after the last pool of such a network, and after dense layers.
OF_FEATURES = 0.5


def is_on() -> bool:
    """Return whether a network that is built now has dropout."""
    return _value.get() == ON
