"""A node of a run, seen from the machine of the run."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from steelyard.cluster import engine

if TYPE_CHECKING:
    from steelyard.cluster.engine import Remote
    from steelyard.cluster.gangs import Gang
    from steelyard.cluster.messages import Order
    from steelyard.cluster.node_run import Ready
    from steelyard.measure.attempts import Attempt


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
    gang: Gang | None = None
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
