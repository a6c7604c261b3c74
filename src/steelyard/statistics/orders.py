"""Who runs when inside a round: random but balanced, so that no framework owns the cool machine."""

from collections.abc import Iterable
from random import Random


def round_order(frameworks: Iterable[str], round_number: int, seed: int) -> tuple[str, ...]:
    """Return the order of one round (rounds count from 1); the same arguments always give the same order.

    Two frameworks: AB or BA, each once in every two rounds. More: rows of a Williams design, which over one
    cycle (k rounds for even k, 2k for odd k) puts each in each position equally often and each behind each
    other equally often. Labels and rows are drawn anew for every cycle. When a framework is dropped, those
    left get a design of their own.
    """
    keys = sorted(set(frameworks))
    if len(keys) < 2:
        return tuple(keys)
    squares = williams_squares(len(keys))
    cycle, row = divmod(round_number - 1, len(squares) * len(keys))
    draw = Random(f"{seed}|{cycle}|{'|'.join(keys)}")
    draw.shuffle(keys)
    rows: list[list[int]] = []
    for square in squares:
        # Shuffled square by square: no position repeats within the first k rounds of a cycle.
        rows += draw.sample(square, len(square))
    return tuple(keys[index] for index in rows[row])


def williams_squares(size: int) -> list[list[list[int]]]:
    """Return one Latin square balanced for first-order carry-over, or for odd sizes two (the second
    mirrored).

    Source: Williams 1949, "Experimental designs balanced for the estimation of residual effects of
    treatments".
    """
    zigzag = [0]
    for step in range(1, size):
        zigzag.append((zigzag[-1] + (step if step % 2 else -step)) % size)
    square = [[(label + shift) % size for label in zigzag] for shift in range(size)]
    if size % 2 == 0:
        return [square]
    return [square, [row[::-1] for row in square]]
