"""A clock for tests of measurements that look at the time."""


class Seconds:
    """A clock that advances by a second at each look."""

    def __init__(self) -> None:
        self.now = 0.0

    def perf_counter(self) -> float:
        self.now += 1
        return self.now
