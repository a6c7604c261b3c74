"""A node of a run, seen from the machine of the run."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from steelyard.cluster import engine

if TYPE_CHECKING:
    from steelyard.cluster.engine import Remote
    from steelyard.cluster.messages import Order, Ready
    from steelyard.measure.attempts import Attempt


class Together(Protocol):
    """The nodes that run one attempt together, as the messages of one of them reach it: see `gangs.Gang`."""

    def heed(self, held: Held, found: Any) -> None:
        """Process the result of a member's work."""

    def begin_part(self, number: int, order: Any, meeting: Any) -> None:
        """Start the ranks of one of the other nodes, at the leader's request."""

    def end_parts(self, key: str) -> None:
        """End the ranks of a trial on all nodes but the leader."""

    def lose(self, held: Held, sentence: str) -> None:
        """Continue without a lost node until the others have ended."""


@dataclass(eq=False)
class Held:
    """`ref`: of the unanswered question, if any; `ask_s`: when the node is asked again, on the monotonic clock.

    `taken`: the number of its last reply. `work`: the number of its present work, 0 for none; `order`: that work in full,
    unless it was begun in another way. `attempt`: the one that it runs alone; `gang`: the nodes with which it runs one. `waits`:
    the run that has the node's machine while this run waits for it.
    """

    remote: Remote
    ref: Any = None
    taken: int = 0
    heard_s: float = 0.0
    ask_s: float = 0.0
    work: int = 0
    order: Order | None = None
    attempt: Attempt | None = None
    gang: Together | None = None
    ready: Ready | None = None
    waits: str = ""

    @property
    def name(self) -> str:
        """The name of the node."""
        return self.remote.node.name

    def ask(self) -> None:
        """Ask for news. The answer to an earlier question is ignored, because this question gets the same."""
        self.ref = self.remote.ask("changes", self.taken, self.order)
        self.ask_s = time.monotonic() + engine.ANSWER_S
