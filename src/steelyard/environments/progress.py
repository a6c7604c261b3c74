"""How far the making of environments has come: events from the makers, bars or plain lines for a person."""

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, TextIO

if TYPE_CHECKING:
    from rich.console import Console

# Stages come in this order: waiting, checking, rebuilding, creating, downloading, installing, verifying.
ENDS = ("ready", "failed")


@dataclass(frozen=True)
class Progress:
    """One event about one environment. Bytes count what is downloaded; a total of 0 means unknown."""

    name: str
    stage: str
    done_bytes: int = 0
    total_bytes: int = 0
    sentence: str = ""


Report = Callable[[Progress], None]


def quiet(_: Progress) -> None:
    """Tells nobody."""


class Screen(Protocol):
    """Where a run is shown, as far as it matters here."""

    def progress(self, label: str, done: float, total: float, note: str = "") -> None: ...


@contextmanager
def watch_progress(screen: Screen) -> Iterator[Report]:
    """A `report` that passes each change on to a screen, one caller at a time, but failures."""
    lock = threading.Lock()
    last: dict[str, Progress] = {}

    def report(event: Progress) -> None:
        with lock:
            if last.get(event.name) == event or event.stage == "failed":
                return
            last[event.name] = event
            screen.progress(event.name, event.done_bytes, event.total_bytes, described(event))

    yield report


def drawing(stream: TextIO | None = None) -> "Bars | Lines":
    """Bars on a terminal, plain lines elsewhere (a log, a pipe): a context manager with `report`.

    `report` may be called from several threads.
    """
    stream = sys.stderr if stream is None else stream
    from rich.console import Console

    console = Console(file=stream)
    return Bars(console) if console.is_terminal else Lines(stream)


class Lines:
    """One line per stage and environment, with seconds since the beginning."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._began_s = time.monotonic()
        self._last: dict[str, tuple[str, str]] = {}
        self._lock = threading.Lock()

    def report(self, event: Progress) -> None:
        said = (event.stage, event.sentence)
        with self._lock:
            if self._last.get(event.name) == said:
                return
            self._last[event.name] = said
            seconds = time.monotonic() - self._began_s
            self._stream.write(f"[{seconds:5.1f} s] {event.name}: {described(event)}\n")
            self._stream.flush()

    def __enter__(self) -> "Lines":
        return self

    def __exit__(self, *ended: object) -> None:
        self._stream.flush()


class Bars:
    """One bar per environment, with stage, downloaded size and time."""

    def __init__(self, console: "Console") -> None:
        from rich.progress import BarColumn, TextColumn, TimeElapsedColumn
        from rich.progress import Progress as Rows

        self._rows = Rows(
            TextColumn("{task.fields[label]}", markup=False),
            BarColumn(bar_width=24),
            TextColumn("{task.fields[stage]}", markup=False),
            TimeElapsedColumn(),
            console=console,
        )
        self._tasks: dict[str, int] = {}
        self._lock = threading.Lock()

    def report(self, event: Progress) -> None:
        from rich.progress import TaskID

        with self._lock:
            if event.name not in self._tasks:
                self._tasks[event.name] = self._rows.add_task("", total=None, label=event.name, stage="")
            ended = event.stage in ENDS
            total = 1 if ended else event.total_bytes or None
            self._rows.update(
                TaskID(self._tasks[event.name]),
                total=total,
                completed=1 if ended else event.done_bytes,
                stage=described(event),
            )
            if ended:
                self._rows.stop_task(TaskID(self._tasks[event.name]))

    def __enter__(self) -> "Bars":
        self._rows.start()
        return self

    def __exit__(self, *ended: object) -> None:
        self._rows.stop()


def described(event: Progress) -> str:
    """The event in a few words: `downloading 63 of 131 MB`."""
    words = event.stage
    if event.stage == "downloading" and event.total_bytes:
        words += f" {event.done_bytes / 1e6:.0f} of {event.total_bytes / 1e6:.0f} MB"
    elif event.stage == "ready" and event.total_bytes:
        words += f" ({event.total_bytes / 1e6:.0f} MB)"
    return f"{words}: {event.sentence}" if event.sentence else words
