"""A trainer that drives the training itself is given a whole block, not one step after the other."""

from __future__ import annotations

import itertools
from typing import Any

from steelyard_worker.timing import time_block


class Driven:
    """Does steps of 10 ns on a scripted clock; its synchronisation takes 3 ns."""

    def __init__(self) -> None:
        self.now, self.asked = 0, list[tuple[Any, int]]()

    def run(self, feed: Any, steps: int, stamp: Any) -> list[str]:
        self.asked.append((feed, steps))
        for _ in range(steps):
            self.now += 10
            stamp()
        return [f"loss {self.now}"] * steps

    def step(self, batch: Any) -> None:
        raise AssertionError

    def synchronise(self) -> None:
        self.now += 3


def test_a_block_is_one_call_with_a_stamp_after_each_step_between_two_synchronisations() -> None:
    driven, feed = Driven(), itertools.repeat("batch")
    block = time_block(driven, feed, 4, lambda: driven.now)
    assert driven.asked == [(feed, 4)]
    assert (block.start_ns, block.elapsed_ns) == (3, 43)
    assert list(block.stamps_ns) == [13, 23, 33, 43]
    assert block.handles == ["loss 43"] * 4
