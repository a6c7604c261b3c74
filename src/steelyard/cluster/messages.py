"""The reports of an agent, in order, and what they carry.

A reply is kept until the next question acknowledges it, so none is lost or doubled.
"""

import time
from dataclasses import dataclass, field
from threading import Condition, Lock
from typing import Any, NamedTuple

from steelyard.cluster.files import Piece

# The shortest time between answers while there is news, and the longest without, in seconds.
SHORTEST_S = 1.0
LONGEST_S = 10.0


class Order(NamedTuple):
    """A piece of work for an agent: a method of `NodeRun`. `number`: identifies the work and its result."""

    number: int
    work: str
    values: tuple[Any, ...] = ()


@dataclass(frozen=True)
class Message:
    """A note of an agent. `kind`: say, progress, trial, waits, part, parts end, done or failed; `values`: its arguments."""

    kind: str
    values: tuple[Any, ...] = ()


@dataclass(frozen=True)
class Ready:
    """The preparations of a node. `facts`: of its environments, as in run.json; `unavailable`: why others are missing."""

    certificates: dict[str, dict[str, Any]]
    facts: dict[str, dict[str, Any]] = field(default_factory=dict)
    unavailable: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Hold:
    """Whether a node's machine is reserved for this run. `holder`: otherwise the run that has it."""

    granted: bool
    holder: str = ""


@dataclass(frozen=True)
class PartEnded:
    """The end of a node's ranks. `error`: (kind, message) if they ended too early; other fields as in `Outcome`."""

    error: tuple[str, str] | None = None
    reasons: tuple[str, ...] = ()
    severity: float = 0.0


@dataclass(frozen=True)
class Reply:
    """A reply of an agent: first pieces of files, then messages, which may refer to these files."""

    number: int
    pieces: tuple[Piece, ...] = ()
    messages: tuple[Message, ...] = ()


@dataclass
class Outgoing:
    """The messages of an agent that were not sent yet. Different threads add and remove them."""

    _waiting: list[Message] = field(default_factory=list)
    _changed: Condition = field(default_factory=Condition)
    _last: Reply = field(default_factory=lambda: Reply(0))
    _replying: Lock = field(default_factory=Lock)

    def add(self, kind: str, *values: Any) -> None:
        """Add a message."""
        with self._changed:
            self._waiting.append(Message(kind, values))
            self._changed.notify_all()

    def reply(self, taken: int, grown: Any, shortest_s: float = SHORTEST_S, longest_s: float = LONGEST_S) -> Reply:
        """Return the next reply; waits for news, but not for long.

        `taken`: the number of the last reply that arrived; an earlier number gets the last reply again. `grown()` returns the
        pieces of files that have grown, and whether these are all.
        """
        with self._replying:  # a question that was thought lost may arrive when it has been repeated
            if taken >= self._last.number:
                self._last = self._next(grown, shortest_s, longest_s)
            return self._last

    def _next(self, grown: Any, shortest_s: float, longest_s: float) -> Reply:
        began_s = time.monotonic()
        while True:
            with self._changed:
                waiting = list(self._waiting)
            pieces, whole = grown()
            # Messages may refer to files, so they wait until these are complete.
            messages = waiting if whole else []
            if pieces or messages or time.monotonic() - began_s > longest_s:
                break
            with self._changed:
                if len(self._waiting) == len(waiting):
                    self._changed.wait(shortest_s)
        with self._changed:
            del self._waiting[: len(messages)]
        time.sleep(max(0.0, shortest_s - (time.monotonic() - began_s)) if whole and not messages else 0.0)
        return Reply(self._last.number + 1, tuple(pieces), tuple(messages))
