"""How far the creation of environments has come: events for the screen, read from what uv prints."""

import re
from collections.abc import Callable
from dataclasses import dataclass

from steelyard.console import Screen


@dataclass(frozen=True)
class Progress:
    """One event of one environment. Bytes count downloads; a total of 0 means unknown.

    The stages, in order: waiting, checking, rebuilding, creating, downloading, installing, compiling, verifying, ready or failed.
    """

    name: str
    stage: str
    done_bytes: int = 0
    total_bytes: int = 0
    sentence: str = ""


Report = Callable[[Progress], None]


def quiet(_: Progress) -> None:
    """Ignore the event."""


def shown_on(screen: Screen, failures: bool = True) -> Report:
    """Return a `report` that shows events on a screen, failures only if requested; several threads may call it."""

    def report(event: Progress) -> None:
        if failures or event.stage != "failed":
            screen.progress(event.name, event.done_bytes, event.total_bytes, described(event))

    return report


def described(event: Progress) -> str:
    """Return the event in a few words: `downloading 63 of 131 MB`."""
    words = event.stage
    if event.stage == "downloading" and event.total_bytes:
        words += f" {event.done_bytes / 1e6:.0f} of {event.total_bytes / 1e6:.0f} MB"
    return f"{words}: {event.sentence}" if event.sentence else words


class Downloads:
    """Counts downloaded bytes from the lines that uv prints; `report(stage, done, total)` receives them."""

    LINE = re.compile(r"^\s*(Downloading|Downloaded) (\S+)(?: \(([\d.]+) ?([kKMG])i?B\))?")
    POWERS = "KMG"

    def __init__(self, report: Callable[[str, int, int], None]) -> None:
        self._report = report
        self._bytes: dict[str, int] = {}
        self._done: set[str] = set()

    def listen(self, line: str) -> None:
        if line.startswith("Prepared"):
            self._report("installing", 0, 0)
        elif found := self.LINE.match(line):
            verb, name, number, unit = found.groups()
            if number:
                self._bytes[name] = int(float(number) * 1024 ** (1 + self.POWERS.index(unit.upper())))
            elif verb == "Downloaded":
                self._done.add(name)
            done = sum(self._bytes.get(each, 0) for each in self._done)
            self._report("downloading", done, sum(self._bytes.values()))
