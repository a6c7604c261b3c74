"""A node of a run, as the machine of the run sees it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from steelyard.cluster.engine import Remote
    from steelyard.cluster.gangs import Gang
    from steelyard.cluster.node_run import Ready
    from steelyard.measure.attempts import Attempt


@dataclass(eq=False)
class Held:
    """`ref`: of the question that it has not answered yet; `work`: the number of what it does now, 0 for nothing.

    `attempt`: that it runs by itself; `gang`: the nodes with which it runs one. `waits`: whose turn its machine has, while it
    waits for its own.
    """

    remote: Remote
    ref: Any = None
    taken: int = 0
    heard_s: float = 0.0
    asked_again_s: float = 0.0
    work: int = 0
    attempt: Attempt | None = None
    gang: Gang | None = None
    ready: Ready | None = None
    waits: str = ""

    @property
    def name(self) -> str:
        """The name of the node."""
        return self.remote.node.name
