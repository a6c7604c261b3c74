"""Nodes that run one attempt together for a strategy over several nodes: before it begins, all of them are reserved, or none.

The first node leads: it runs the attempt, and asks the others for their ranks whenever a trial needs them. Nodes do not know
each other; their messages pass through here.
"""

from __future__ import annotations

import enum
import random
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Protocol

from steelyard.cluster.messages import Hold, PartEnded
from steelyard.cluster.shipping import names_of
from steelyard.measure.attempts import Outcome

if TYPE_CHECKING:
    from collections.abc import Callable

    from steelyard.cluster.leased_node import Held
    from steelyard.measure.attempts import Attempt

# How long nodes are left to others before all are tried again; random, so that two runs do not keep colliding.
AGAIN_S = (2.0, 6.0)


class Do(Protocol):
    """Lets a node begin a piece of work."""

    def __call__(self, held: Held, work: str, *values: Any) -> None: ...


class _State(enum.Enum):
    HOLDING = enum.auto()
    WAITING = enum.auto()
    RUNNING = enum.auto()
    RELEASING = enum.auto()
    OVER = enum.auto()


class Gang:
    """The nodes of one attempt. `advance` is called repeatedly; no method waits."""

    def __init__(self, attempt: Attempt, members: list[Held], do: Do, say: Callable[[str], None]) -> None:
        """`members`: the first leads. They must have nothing to do."""
        self.attempt, self._members, self._do, self._say = attempt, list(members), do, say
        self._leader, self._names = members[0], [each.name for each in members]
        self._addresses = tuple(each.remote.node.address for each in members)
        self._answers: dict[str, Hold] = {}
        self._parts: list[PartEnded] = []
        self._outcome: Outcome | None = None
        self._lost = ""
        self._again_s = 0.0
        self._said = False
        self._state = _State.HOLDING
        for each in members:
            each.gang = self
        self._hold()

    def outcome(self) -> Outcome | None:
        """Return the outcome of the attempt when all nodes are free again, and None before."""
        if self._state is not _State.OVER:
            return None
        found = self._outcome or Outcome(self.attempt, node=self._leader.name)
        reasons = tuple(dict.fromkeys([*found.reasons, *(reason for part in self._parts for reason in part.reasons)]))
        severity = max([found.severity, *(part.severity for part in self._parts)])
        return replace(
            found,
            node=self._leader.name,
            reasons=reasons,
            severity=severity,
            lost=self._lost or found.lost,
            beside=tuple(self._names[1:]),
        )

    def heed(self, held: Held, found: Any) -> None:
        """Process the result of a member's work."""
        if isinstance(found, Hold):
            self._answers[held.name] = found
        elif isinstance(found, Outcome):
            self._outcome = found
        elif isinstance(found, PartEnded):
            self._parts.append(found)
            if found.error:
                kind, message = found.error
                self._tell_leader(kind, f"{message.rstrip('.')} (node {held.name}).")

    def begin_part(self, number: int, order: Any, meeting: Any) -> None:
        """Start the ranks of one of the other nodes, at the leader's request."""
        name = self._names[number]
        for each in self._members:
            if each.name == name:
                self._do(each, "part", order, meeting, number)
        if name not in [each.name for each in self._members]:
            self._tell_leader("killed", f"{self._lost}.")

    def end_parts(self, key: str) -> None:
        """End the ranks of a trial on all nodes but the leader. `key`: of its meeting; empty: of any trial."""
        for each in self._members:
            if each is not self._leader:
                each.remote.ask("end_part", key)

    def lose(self, held: Held, sentence: str) -> None:
        """Continue without a lost node until the others have ended."""
        held.gang = None
        self._lost = self._lost or sentence
        self._members = [each for each in self._members if each is not held]
        if held is self._leader:
            self.end_parts("")
        else:
            self._tell_leader("killed", f"{sentence}.")

    def advance(self) -> None:
        """Take the next step, if every node has finished its present work."""
        if any(each.work for each in self._members):
            return
        match self._state:
            case _State.HOLDING if self._lost or not all(answer.granted for answer in self._answers.values()):
                self._give_back()
            case _State.HOLDING:
                self._state = _State.RUNNING
                self._do(self._leader, "attempt", self.attempt, self._addresses)
            case _State.WAITING if self._lost:
                self._state = _State.RELEASING
            case _State.WAITING if time.monotonic() > self._again_s:
                self._hold()
            case _State.RUNNING:
                self._release(self._members, _State.RELEASING)
            case _State.RELEASING:
                self._state = _State.OVER
                for each in self._members:
                    each.gang = None

    def _hold(self) -> None:
        self._state, self._answers = _State.HOLDING, {}
        for each in list(self._members):
            self._do(each, "hold")

    def _give_back(self) -> None:
        """Release all nodes, because one of them is not available now."""
        taken = {name: answer.holder for name, answer in self._answers.items() if not answer.granted}
        if taken and not self._said:
            self._said = True
            whose = ", ".join(f"{name} ({holder})" for name, holder in taken.items())
            together = names_of(self._names)
            self._say(f"Round {self.attempt.round} needs {together} at the same time and waits for {whose}.")
        self._again_s = time.monotonic() + random.uniform(*AGAIN_S)
        granted = [each for each in self._members if each.name in self._answers and each.name not in taken]
        self._release(granted, _State.RELEASING if self._lost else _State.WAITING)

    def _release(self, members: list[Held], state: _State) -> None:
        self._state = state
        for each in list(members):
            self._do(each, "release")

    def _tell_leader(self, kind: str, message: str) -> None:
        if self._leader in self._members:
            self._leader.remote.ask("partner_ended", kind, message)
