"""The order of contenders within a round, and of their turns: random but balanced, so that no contender is always the first."""

from collections.abc import Iterable, Mapping
from random import Random


def round_order(contenders: Iterable[str], round_number: int, seed: int) -> tuple[str, ...]:
    """Return the order of one round (rounds count from 1); the same arguments always give the same order.

    Two contenders: AB or BA, each once in every two rounds. More: rows of a Williams design. Over one cycle (k rounds
    for even k, 2k for odd k) it puts every contender in every position equally often, and directly after every other
    contender equally often. Labels and rows are shuffled for every cycle. When a contender is dropped, the remaining
    ones get a new design.
    """
    keys = sorted(set(contenders))
    if len(keys) < 2:
        return tuple(keys)
    squares = williams_squares(len(keys))
    cycle, row = divmod(round_number - 1, len(squares) * len(keys))
    random = Random(f"{seed}|{cycle}|{'|'.join(keys)}")
    random.shuffle(keys)
    rows: list[list[int]] = []
    for square in squares:
        # Each square is shuffled separately, so that no position repeats within the first k rounds of a cycle.
        rows += random.sample(square, len(square))
    return tuple(keys[index] for index in rows[row])


def turn_order(blocks: Mapping[str, int], random: Random) -> list[str]:
    """Return the order in which contenders compute their blocks. The blocks of a contender are spread evenly over the whole time.

    Block i of n is placed at random in the i-th of n equal parts of the time. So contenders with different numbers of blocks meet
    the same machine, and no contender always follows the same other one.
    """
    places = [
        ((number + random.random()) / count, name) for name, count in sorted(blocks.items()) for number in range(count)
    ]
    return [name for _, name in sorted(places)]


def williams_squares(size: int) -> list[list[list[int]]]:
    """Return one Latin square balanced for first-order carry-over; for odd sizes two, the second mirrored.

    Source: Williams 1949, "Experimental designs balanced for the estimation of residual effects of treatments".
    """
    zigzag = [0]
    for step in range(1, size):
        zigzag.append((zigzag[-1] + (step if step % 2 else -step)) % size)
    square = [[(label + shift) % size for label in zigzag] for shift in range(size)]
    if size % 2 == 0:
        return [square]
    return [square, [row[::-1] for row in square]]
