"""Where rounds are run: an interface, and this machine as the one place that needs nothing else."""

from typing import Protocol

from steelyard.measure import attempts
from steelyard.measure.attempts import Attempt, Outcome
from steelyard.measure.session import Session


class Place(Protocol):
    """Runs attempts at rounds, each completely on one of its nodes, or on several if a strategy needs them.

    The empty text is the name of this machine as a node.
    """

    def idle(self) -> frozenset[str]:
        """Return the nodes that can take an attempt now."""

    def size(self) -> int:
        """Return how many nodes it has, idle or not."""

    def has(self, node: str) -> bool:
        """Return whether a node of this name belongs to the place, idle or not."""

    def start(self, attempt: Attempt, node: str) -> None:
        """Begin an attempt on an idle node, and on the further nodes that it needs if enough are idle."""

    def wait(self) -> Outcome | None:
        """Wait until an attempt ends, or a node has become idle (None). UserError: no node is left."""


class Here:
    """The machine of the run itself. An attempt runs to its end in `start`, so there is never more than one."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._ended: list[Outcome] = []

    def idle(self) -> frozenset[str]:
        """Return this machine, unless an outcome has not been taken yet."""
        return frozenset() if self._ended else frozenset({""})

    def size(self) -> int:
        """Return 1."""
        return 1

    def has(self, node: str) -> bool:
        """Return whether it is this machine."""
        return not node

    def start(self, attempt: Attempt, node: str) -> None:  # noqa: ARG002 - there is only this machine
        """Run the attempt."""
        self._ended.append(attempts.run(self._session, attempt))

    def wait(self) -> Outcome:
        """Return the outcome of the attempt that was started."""
        return self._ended.pop()
