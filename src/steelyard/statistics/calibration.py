"""A/A calibration: a framework against itself, round by round, gives the noise floor of a machine."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isfinite, sqrt
from statistics import stdev

from steelyard.errors import UserError


@dataclass(frozen=True)
class NoiseFloor:
    """How much ln(m_A / m_B) scatters from round to round when A and B are the same framework."""

    s_d0: float
    """Standard deviation of a round's log ratio (0.008 is 0.8 %)."""
    degrees_of_freedom: int
    """What the sd is worth as a prior: one less than the rounds it was measured in."""
    rounds: int
    """Rounds measured; 0 for an assumed floor."""

    @property
    def measured(self) -> bool:
        """False while nobody has calibrated this machine."""
        return self.rounds > 0

    @property
    def process_sd(self) -> float:
        """Relative sd of one process's location: a ratio carries the noise of two."""
        return self.s_d0 / sqrt(2)

    def to_dict(self) -> dict[str, float | int]:
        """Return plain numbers for a JSON file."""
        return {"s_d0": self.s_d0, "degrees_of_freedom": self.degrees_of_freedom, "rounds": self.rounds}

    @classmethod
    def from_dict(cls, stored: Mapping[str, object]) -> "NoiseFloor":
        """Read back what `to_dict` gave. Raises UserError when that is not what it holds."""
        match stored:
            case {"s_d0": float() | int() as s_d0, "degrees_of_freedom": int(freedom), "rounds": int(rounds)}:
                if isfinite(s_d0) and s_d0 >= 0 and freedom >= 1 and rounds >= 0:
                    return cls(float(s_d0), freedom, rounds)
        raise UserError(
            f"The stored noise floor of this machine cannot be read ({dict(stored)!r}): delete it and calibrate again."
        )


UNCALIBRATED = NoiseFloor(s_d0=0.014, degrees_of_freedom=2, rounds=0)
"""Assumed until a machine is calibrated: 1.4 %, worth two degrees of freedom.

1.4 % is the most noise at which "equal within 2 %" can be claimed at all (2 % / 1.4), hence pessimistic on a
quiet machine: the price is a round or two, not a wrong call (simulated A/A misses over ten looks: 0.4 % at
0.8 % noise, 3 % at 1.5 %). Worth only two degrees of freedom, so that a loud machine soon overrules it (8 %
misses at 3 to 6 % noise, where no prior at all gives 6 % and a prior of eight degrees 13 %).
"""


def calibrate(log_ratios: Sequence[float]) -> NoiseFloor:
    """Return the noise floor from the log ratios of A/A rounds (nine are recommended: eight degrees of
    freedom).

    Raises ValueError for fewer than two rounds or a value that is not finite. The mean is taken out, so an
    order effect inside the rounds does not count as noise.
    """
    rounds = len(log_ratios)
    if rounds < 2 or not all(isfinite(value) for value in log_ratios):
        raise ValueError("A noise floor needs at least two A/A rounds with finite log ratios.")
    return NoiseFloor(stdev(log_ratios), rounds - 1, rounds)
