"""Apply a function to many items on all processors, with a bounded number of items in memory."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from typing import Any, TypeVar

from steelyard.host import usable_cores

Item = TypeVar("Item")
Result = TypeVar("Result")

PENDING_PER_WORKER = 4


def threaded_map(function: Callable[[Item], Result], items: Iterable[Item]) -> Iterator[Result]:
    """Yield `function(item)` in order, computed by threads: for libraries that release the interpreter lock."""
    with ThreadPoolExecutor(usable_cores()) as pool:
        yield from bounded_map(pool, function, items)


def bounded_map(pool: Executor, function: Callable[[Item], Result], items: Iterable[Item]) -> Iterator[Result]:
    """Yield `function(item)` in the order of the items, with at most `PENDING_PER_WORKER` tasks per processor pending.

    `Executor.map` would submit all items at once and hold every finished result in memory. If the caller stops early, or a task
    fails, the pending tasks are cancelled. An exception of a task is raised in its place of the order.
    """
    most = PENDING_PER_WORKER * usable_cores()
    pending: deque[Future[Any]] = deque()
    try:
        for item in items:
            pending.append(pool.submit(function, item))
            if len(pending) > most:
                yield pending.popleft().result()
        while pending:
            yield pending.popleft().result()
    finally:
        for task in pending:
            task.cancel()
