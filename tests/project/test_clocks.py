"""Calendar time may jump, so nothing is measured with it: the few places that read it are listed with their reason."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from steelyard.catalog import frameworks

SOURCES = Path(frameworks.__file__).resolve().parents[2]
READERS = {
    "time.time",
    "time.time_ns",
    "time.ctime",
    "time.localtime",
    "time.gmtime",
    "datetime.now",
    "datetime.utcnow",
    "datetime.today",
    "date.today",
}
# An entry that is no longer needed fails the test.
PLACES = {
    "steelyard/cache.py": "ages of files, whose times are of the calendar",
    "steelyard/certificates/conclusion.py": "the date of a certificate",
    "steelyard/cli/commands/port.py": "the name of a record's folder",
    "steelyard/ports/check.py": "the date of a check",
    "steelyard/ports/requirements.py": "when an environment of requirements was made",
    "steelyard/environments/provisioning.py": "ages of files, whose times are of the calendar",
    "steelyard/environments/verification.py": "the date of a check",
    "steelyard/host/holders.py": "since when a command has the machine, which people read",
    "steelyard/results/record.py": "the date of a run",
    "steelyard/results/run_folders.py": "the name of a run",
    "steelyard_worker/frameworks/mindspore/profiling.py": "MindSpore's trace has calendar times, and its start is needed",
    "steelyard_worker/frameworks/mxnet/profiling.py": "MXNet's trace has calendar times, and its span is needed",
}


def readers(source: str) -> list[str]:
    """Return what reads the calendar in a module: as an attribute, or imported by name."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Attribute):
            owner = node.value
            found.append(f"{owner.attr if isinstance(owner, ast.Attribute) else getattr(owner, 'id', '')}.{node.attr}")
        elif isinstance(node, ast.ImportFrom) and node.module == "time":
            found += [f"time.{alias.name}" for alias in node.names]
    return [name for name in found if name in READERS]


def test_only_the_listed_places_read_calendar_time() -> None:
    found = {
        path.relative_to(SOURCES).as_posix()
        for path in SOURCES.rglob("*.py")
        if readers(path.read_text(encoding="utf-8"))
    }
    assert found == PLACES.keys()


@pytest.mark.parametrize(
    "planted",
    [
        "import time\ntime.time()",
        "import datetime\ndatetime.datetime.now()",
        "from time import time_ns",
        "clock = time.time",
    ],
)
def test_the_usual_ways_to_read_it_are_found(planted: str) -> None:
    assert readers(planted)


def test_clocks_that_cannot_jump_are_allowed() -> None:
    assert not readers("import time\ntime.monotonic(), time.perf_counter_ns(), time.process_time_ns(), time.sleep(1)")
