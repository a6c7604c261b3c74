"""A/A calibration: comparing a framework with itself, round by round, gives the noise floor of a machine."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from statistics import stdev

from steelyard.errors import UserError


@dataclass(frozen=True)
class NoiseFloor:
    """How much ln(m_A / m_B) varies from round to round when A and B are the same framework."""

    s_d0: float
    """Standard deviation of a round's log ratio (0.008 is 0.8 %)."""
    degrees_of_freedom: int
    """One less than the number of rounds it was measured in."""
    rounds: int
    """Rounds measured; 0 for an assumed floor."""

    @property
    def measured(self) -> bool:
        """False if this machine has not been calibrated."""
        return self.rounds > 0

    def to_dict(self) -> dict[str, float | int]:
        """Return plain numbers for a JSON file."""
        return {"s_d0": self.s_d0, "degrees_of_freedom": self.degrees_of_freedom, "rounds": self.rounds}

    @classmethod
    def from_dict(cls, stored: Mapping[str, object]) -> "NoiseFloor":
        """Read the result of `to_dict`. Raises UserError if a field is missing or out of range."""
        match stored:
            case {"s_d0": float() | int() as s_d0, "degrees_of_freedom": int(freedom), "rounds": int(rounds)}:
                if isfinite(s_d0) and s_d0 >= 0 and freedom >= 1 and rounds >= 0:
                    return cls(float(s_d0), freedom, rounds)
        raise UserError(
            f"The stored noise floor of this machine cannot be read ({dict(stored)!r}): delete it and calibrate again."
        )


UNCALIBRATED = NoiseFloor(s_d0=0.014, degrees_of_freedom=2, rounds=0)
"""Stands for the noise floor of a machine until it is calibrated. No verdict depends on it."""


def calibrate(log_ratios: Sequence[float]) -> NoiseFloor:
    """Return the noise floor from the log ratios of A/A rounds (recommended: nine, for eight degrees of freedom).

    Raises ValueError for fewer than two rounds or a value that is not finite. The mean is subtracted, so an
    order effect inside the rounds does not count as noise.
    """
    rounds = len(log_ratios)
    if rounds < 2 or not all(isfinite(value) for value in log_ratios):
        raise ValueError("A noise floor needs at least two A/A rounds with finite log ratios.")
    return NoiseFloor(stdev(log_ratios), rounds - 1, rounds)
