"""Noise of simulated processes: logarithms of their times, arrays of (families, contenders, rounds)."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import partial
from math import sqrt
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from steelyard.errors import UserError
from steelyard.statistics.orders import round_order

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Noise = Callable[[np.random.Generator, tuple[int, int]], Floats]

CONTENDERS = (2, 3, 5, 12)
ROUNDS = 12
RECORDED = Path(__file__).with_name("recorded_noise.json")
"""Milliseconds per step of identical contenders in twelve rounds, on several machines in several states.

`benchmarks.record_noise` adds to it.
"""
DRIFT = 0.15
"""Change of the machine's speed within ten seconds, the time of one process."""
ORDERS = 300
"""Different seeds of the order of contenders."""


def normal(random: np.random.Generator, shape: tuple[int, int], scatter: float) -> Floats:
    """Return noise for which the log ratio of two processes has standard deviation `scatter`."""
    return random.normal(0.0, scatter / sqrt(2), size=(*shape, ROUNDS))


def one_noisier(random: np.random.Generator, shape: tuple[int, int], times: float) -> Floats:
    """Return noise of 5 % per process, for the first contender `times` as much."""
    values = random.normal(0.0, 0.05, size=(*shape, ROUNDS))
    values[:, 0] *= times
    return values


def two_states(random: np.random.Generator, shape: tuple[int, int]) -> Floats:
    """Return noise of processes of which every other one, by chance, is slower by 10 % for its whole life."""
    return 0.1 * random.integers(0, 2, size=(*shape, ROUNDS)) + normal(random, shape, 0.008)


def heavy_tails(random: np.random.Generator, shape: tuple[int, int]) -> Floats:
    """Return noise of Student's t with 3 degrees of freedom."""
    return 0.05 * random.standard_t(3, size=(*shape, ROUNDS))


def wave(random: np.random.Generator, shape: tuple[int, int]) -> Floats:
    """Return a wave with a period of 40 s to 400 s that changes by 15 % in ten seconds where it is steepest."""
    period, phase = random.uniform(4, 40, size=(shape[0], 1, 1)), random.uniform(0, 2 * np.pi, size=(shape[0], 1, 1))
    turns = 2 * np.pi * _starts(random, shape) / period
    return DRIFT * period / (2 * np.pi) * np.sin(turns + phase) + normal(random, shape, 0.008)


def wandering(random: np.random.Generator, shape: tuple[int, int]) -> Floats:
    """Return a speed that changes by 15 % (standard deviation) in ten seconds and returns to its mean within half a minute."""
    families, contenders = shape
    kept = np.exp(-1 / 3)
    path = np.empty((families, contenders * ROUNDS))
    path[:, 0] = random.normal(size=families)
    for step in range(1, path.shape[1]):
        path[:, step] = kept * path[:, step - 1] + sqrt(1 - kept**2) * random.normal(size=families)
    path *= DRIFT / sqrt(2 * (1 - kept))
    starts = _starts(random, shape)
    drift = np.take_along_axis(path, starts.reshape(families, -1), axis=1).reshape(starts.shape)
    return drift + normal(random, shape, 0.008)


def slower_in_each_round(random: np.random.Generator, shape: tuple[int, int]) -> Floats:
    """Return a machine that slows down by 15 % in ten seconds during each round and recovers between rounds."""
    return DRIFT * (_starts(random, shape) % shape[1]) + normal(random, shape, 0.008)


def slopes(random: np.random.Generator, shape: tuple[int, int]) -> Floats:
    """Return a machine that slows down or speeds up in each round, by 15 % in ten seconds (standard deviation)."""
    slope = random.normal(0.0, DRIFT, size=(shape[0], 1, ROUNDS))
    return slope * (_starts(random, shape) % shape[1]) + normal(random, shape, 0.008)


def permuted(random: np.random.Generator, shape: tuple[int, int], rounds: Floats) -> Floats:
    """Return recorded rounds in random order, with the labels of the identical contenders of each round permuted.

    `rounds`: logarithms, shape (rounds, contenders); families may have fewer contenders, drawn anew for each round.
    """
    orders = random.permuted(np.tile(np.arange(len(rounds)), (shape[0], 1)), axis=1)[:, :ROUNDS]
    return np.swapaxes(random.permuted(rounds[orders], axis=2)[:, :, : shape[1]], 1, 2)


@dataclass(frozen=True)
class Recording:
    """Recorded noise. `name`: the machine and its state; `rounds`: logarithms of times, shape (rounds, contenders)."""

    name: str
    rounds: Floats


def recordings(path: Path) -> list[Recording]:
    """Read recorded noise: a JSON list of {machine, state, rounds}, each with at least twelve rounds of identical contenders."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        given = [(f"{each['machine']}, {each['state']}", np.array(each["rounds"], np.float64)) for each in found]
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise UserError(
            f"The recorded noise {path} cannot be read ({error}). It is made by: python -m benchmarks.record_noise"
        ) from error
    for name, times in given:
        if times.ndim != 2 or times.shape[0] < ROUNDS or times.shape[1] < 2 or not (times > 0).all():
            raise UserError(
                f"The recording '{name}' in {path} must have at least {ROUNDS} rounds, each a list of the times of the same two "
                "or more contenders."
            )
    return [Recording(name, np.asarray(np.log(times))) for name, times in given]


def conditions(recordings: list[Recording]) -> list[tuple[str, Noise, tuple[int, ...]]]:
    """Return kinds of noise other than a normal distribution that is the same for all, and for how many contenders."""
    return [
        ("one contender 3 times as noisy", partial(one_noisier, times=3.0), CONTENDERS),
        ("heavy tails", heavy_tails, CONTENDERS),
        ("processes of two states", two_states, CONTENDERS),
        ("drift: wave", wave, CONTENDERS),
        ("drift: wandering", wandering, CONTENDERS),
        ("drift: slower during each round", slower_in_each_round, CONTENDERS),
        ("drift: another slope in each round", slopes, CONTENDERS),
        *(
            (
                f"recorded, labels permuted: {each.name}; ratios scatter by {percent(ratio_scatter(each.rounds))}",
                partial(permuted, rounds=each.rounds),
                numbers_of(each),
            )
            for each in recordings
        ),
    ]


def numbers_of(recording: Recording) -> tuple[int, ...]:
    """Return for how many contenders a recording has noise."""
    return tuple(range(2, recording.rounds.shape[1] + 1))


def percent(scatter: float) -> str:
    """Return a scatter in percent."""
    return f"{100 * scatter:.2g} %"


def ratio_scatter(values: Floats) -> float:
    """Return the standard deviation of the log ratio of two processes; axis 1 is that of the contenders."""
    inside = values - values.mean(axis=1, keepdims=True)
    contenders = inside.shape[1]
    return sqrt(2 * float((inside**2).mean()) * contenders / (contenders - 1))


def scaled(values: Floats, scatter: float) -> Floats:
    """Return noise of the same distribution, but with this standard deviation of the log ratio of two processes.

    Axis 1 is that of the contenders; what they have in common is taken out.
    """
    return np.asarray(scatter / ratio_scatter(values) * (values - values.mean(axis=1, keepdims=True)))


def _starts(random: np.random.Generator, shape: tuple[int, int]) -> NDArray[np.int64]:
    """Return which process each is, counted over the whole run, in the order in which a measurement runs them."""
    families, contenders = shape
    names = [f"{number:02d}" for number in range(contenders)]
    starts = np.empty((min(ORDERS, families), contenders, ROUNDS), dtype=np.int64)
    for seed, run in enumerate(starts):
        for number in range(ROUNDS):
            for place, name in enumerate(round_order(names, number + 1, seed)):
                run[int(name), number] = number * contenders + place
    return starts[random.integers(0, len(starts), families)]
