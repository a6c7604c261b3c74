"""Intervals of time: their union, and the time of an operation without the operations inside it."""

from typing import Any

import numpy as np

Times = np.ndarray[Any, np.dtype[np.int64]]


def own_times(start_ns: Times, duration_ns: Times) -> Times:
    """Return the time of every operation of one thread, without the operations inside it.

    They are in order of their starts, the longer one first where they start together. Times of one thread add up to what its
    operations cover together, even where one begins shortly before the one before it has ended, as in TensorFlow's executor:
    that time belongs to the later one.
    """
    own, open_, ends = duration_ns.copy(), list[int](), (start_ns + duration_ns).tolist()
    for place, start in enumerate(start_ns.tolist()):
        open_, at, end = [each for each in open_ if ends[each] > start], start, ends[place]
        for outer in reversed(open_):  # a moment belongs to the operation that began last
            if at < min(end, ends[outer]):
                own[outer] -= min(end, ends[outer]) - at
                at = ends[outer]
        open_.append(place)
    return own


def union(start_ns: Times, end_ns: Times) -> tuple[Times, Times]:
    """Return the disjoint intervals, in order, that cover exactly what these cover."""
    if not len(start_ns):
        return start_ns, end_ns
    order = np.argsort(start_ns, kind="stable")
    starts, ends = start_ns[order], np.maximum.accumulate(end_ns[order])
    new = np.concatenate(([True], starts[1:] > ends[:-1]))
    return starts[new], ends[np.concatenate((new[1:], [True]))]


def length(start_ns: Times, end_ns: Times) -> int:
    """Return the time that intervals cover together."""
    starts, ends = union(start_ns, end_ns)
    return int((ends - starts).sum())


def uncovered(start_ns: Times, end_ns: Times, other_start_ns: Times, other_end_ns: Times) -> int:
    """Return the time that the first intervals cover and the others do not."""
    both = length(np.concatenate((start_ns, other_start_ns)), np.concatenate((end_ns, other_end_ns)))
    return both - length(other_start_ns, other_end_ns)
