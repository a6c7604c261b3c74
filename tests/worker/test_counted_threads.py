"""Threads that compute are counted by their CPU time, for frameworks that cannot say how many they use."""

from __future__ import annotations

import sys
import threading
import time
from hashlib import sha256

import pytest

from steelyard_worker.threads import computing

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="/proc of Linux")
WORK = bytes(1_000_000)
# Seconds of CPU time of each thread that computes. What starting and waking threads takes, also on a slow machine, is far below a
# tenth of it.
COMPUTED = 0.3


def hashing(count: int) -> None:
    """Hash in so many threads at once, each for the same CPU time. The lock of Python is free meanwhile."""
    with_all = threading.Barrier(count + 1)

    def work() -> None:
        while time.thread_time() < COMPUTED:
            sha256(WORK)
        with_all.wait()  # a thread that has ended is not seen any more
        with_all.wait()

    threads = [threading.Thread(target=work) for _ in range(count)]
    for each in threads:
        each.start()
    with_all.wait()
    ends.append((with_all, threads))


ends: list[tuple[threading.Barrier, list[threading.Thread]]] = []


@pytest.mark.parametrize("count", [1, 3])
def test_the_threads_that_compute_are_counted_and_one_that_waits_is_not(count: int) -> None:
    waiting = threading.Event()
    idle = threading.Thread(target=waiting.wait)
    idle.start()
    try:
        assert computing(lambda: hashing(count)) == count
    finally:
        waiting.set()
        barrier, threads = ends.pop()
        barrier.wait()
        for each in (idle, *threads):
            each.join()


def test_work_that_only_waits_is_done_by_no_thread_for_long() -> None:
    assert computing(lambda: time.sleep(0.01)) <= 1
