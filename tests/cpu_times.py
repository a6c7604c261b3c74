"""Which tests compute longest: a plugin of pytest (`make times`) that sums the CPU time of all processes that a test starts.

CPU time says what a test costs on a machine that others use, too, where elapsed time says how busy they are.
"""

from __future__ import annotations

from collections import Counter
from contextlib import suppress
from typing import TYPE_CHECKING

import psutil
import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

SHOWN = 30
seconds: Counter[str] = Counter()


def used() -> float:
    """Return the CPU seconds of this process and of all that it has started, of those that have ended and those that run."""
    here = psutil.Process()
    total = 0.0
    for process in (here, *here.children(recursive=True)):
        with suppress(psutil.Error):  # it has ended meanwhile, so its time is that of its parent
            total += sum(process.cpu_times()[:4])
    return total


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """Note what a test takes, with the fixtures that it is the first or the last to use."""
    before = used()
    try:
        return (yield)
    finally:
        seconds[item.nodeid] += max(used() - before, 0.0)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """List the rooms, files and tests that computed longest."""
    files, rooms = Counter[str](), Counter[str]()
    for test, used_s in seconds.items():
        file = test.partition("::")[0]
        files[file] += used_s
        rooms[file.rpartition("/")[0]] += used_s
    for title, found in (("rooms", rooms), ("files", files), ("tests", seconds)):
        terminalreporter.section(f"CPU seconds of {title}")
        for name, used_s in found.most_common(SHOWN):
            terminalreporter.line(f"{used_s:8.1f}  {name}")
