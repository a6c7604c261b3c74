"""The bounded parallel map: results in order, few pending tasks, cancellation."""

from concurrent.futures import ThreadPoolExecutor
from threading import Event

import pytest

from steelyard.host import usable_cores
from steelyard.inputs.data import parallel


def test_only_a_bounded_number_of_items_is_taken_in_advance():
    taken = []
    with ThreadPoolExecutor(2) as pool:
        results = parallel.bounded_map(pool, abs, (taken.append(number) or number for number in range(10_000)))
        assert [next(results) for _ in range(5)] == [0, 1, 2, 3, 4]
        assert len(taken) <= 5 + parallel.PENDING_PER_WORKER * usable_cores()
        results.close()


def test_all_results_come_in_the_order_of_the_items():
    with ThreadPoolExecutor(3) as pool:
        assert list(parallel.bounded_map(pool, lambda number: number * 2, range(100))) == list(range(0, 200, 2))


def test_a_failed_task_cancels_the_pending_ones():
    started, go_on = [], Event()

    def work(number: int) -> int:
        started.append(number)
        if number == 0:
            raise ValueError("stop")
        assert go_on.wait(30)
        return number

    with ThreadPoolExecutor(1) as pool:
        with pytest.raises(ValueError, match="stop"):
            list(parallel.bounded_map(pool, work, range(1000)))
        go_on.set()
    assert len(started) <= 2  # the failed one, and the one that the only thread began before the others were cancelled
