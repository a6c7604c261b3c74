"""The nodes of a cluster as a place for rounds: prepare them, give them rounds, fetch the record, and survive their loss."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import Any

from steelyard.cluster import engine, home, shipping
from steelyard.cluster.agreement import disagreement, standard
from steelyard.cluster.engine import NodeLost, Remote
from steelyard.cluster.gangs import Gang
from steelyard.cluster.leased_node import Held
from steelyard.cluster.messages import Message, Order, Ready
from steelyard.cluster.nodes import Choice
from steelyard.cluster.shipping import names_of
from steelyard.errors import ResumableError, UserError
from steelyard.files import atomic, paths
from steelyard.measure.attempts import Attempt, Outcome
from steelyard.measure.session import Session
from steelyard.results import record


class ClusterPlace:
    """Gives rounds to nodes. Everything happens in the thread that calls `wait`; nothing is shared."""

    def __init__(self, session: Session, choice: Choice) -> None:
        self._session, self._screen = session, session.screen
        name, created = session.folder.name, record.read(session.folder).created
        self._nodes = {
            # With the name of the node, because nodes may share a cache.
            each.name: Held(Remote(each.member, atomic.key("run", name, created, each.name), name))
            for each in choice.nodes
        }
        self._ready: Ready | None = None
        self._ended: list[Outcome] = []
        self._gangs: list[Gang] = []
        self._found: dict[int, Any] = {}
        self._number = 0
        self._joined = False
        self._losses: list[str] = []

    def prepare(self) -> Ready:
        """Send missing files to every node, and let it make environments and certificates. Return those of the run.

        A node whose machine another run uses is not waited for; it joins later. UserError: no node can measure.
        """
        cargo = shipping.packed(self._session.plan, self._session.inputs)
        known = record.read(self._session.folder)
        codes = {name: cargo.codes[name] for name in cargo.frameworks}
        for held in list(self._nodes.values()):
            with self._lost_if_broken(held):
                self._begin(held, cargo)
                held.work = self._next_number()
                held.remote.call("prepare", held.work, known, cargo.inputs, codes)
                held.heard_s = time.monotonic()
                held.ask()
        while self._preparing():
            self._pump()
        ready = {name: held.ready for name, held in self._nodes.items() if held.ready}
        self._ready = standard(ready)
        for held in list(self._nodes.values()):
            if held.ready:
                self._check_agreement(held)
        return self._ready

    def idle(self) -> frozenset[str]:
        """Return the nodes that are prepared and idle."""
        return frozenset(name for name, held in self._nodes.items() if held.ready and not held.work and not held.gang)

    def has(self, node: str) -> bool:
        """Return whether a node is still part of this run."""
        return node in self._nodes

    def size(self) -> int:
        """Return the number of nodes of this run, including those that are still being prepared."""
        return len(self._nodes)

    def start(self, attempt: Attempt, node: str) -> None:
        """Begin an attempt on a node, with the other nodes that it needs, if there are enough."""
        held = self._nodes[node]
        home.reserve(self._session.folder, self._session.plan, attempt)
        others = sorted(self.idle() - {node})[: attempt.nodes - 1]
        if others and len(others) == attempt.nodes - 1:
            members = [held, *(self._nodes[each] for each in others)]
            self._gangs.append(Gang(attempt, members, self._do, self._screen.say))
        else:
            held.attempt = attempt
            self._do(held, "attempt", attempt)

    def wait(self) -> Outcome | None:
        """Return the next outcome, and None when a node has joined. UserError: no node is left."""
        self._joined = False
        while not self._ended and not self._joined:
            self._check_any_left()
            self._pump()
        return self._ended.pop(0) if self._ended else None

    def call(self, function: Callable[..., Any], *values: Any) -> Any:
        """Return the result of a function of steelyard on a node. UserError: the error that it raised, or no node is left."""
        return self.aside("call", function, *values)

    def aside(self, work: str, *values: Any) -> Any:
        """Let a node do work outside the rounds, and return its result."""
        while not self.idle():
            self._check_any_left()
            self._pump()
        held = self._nodes[min(self.idle())]
        self._do(held, work, *values)
        number = held.work
        while number not in self._found:
            if held.name not in self._nodes:
                return self.aside(work, *values)
            self._pump()
        found = self._found.pop(number)
        if isinstance(found, UserError):
            raise found
        return found

    def end(self, forget: bool) -> None:
        """End all agents. `forget`: the record is complete here, so the nodes need not keep their parts."""
        for held in self._nodes.values():
            if forget and held.ready and not held.work:
                with suppress(NodeLost):
                    held.remote.call("forget")
        engine.end([held.remote for held in self._nodes.values()])

    def _begin(self, held: Held, cargo: shipping.Cargo) -> None:
        """Fetch the files that the node kept from an earlier part of this run, and send it the missing ones."""
        held.remote.call("process")
        kept = home.of_node(self._session.folder, held.name, held.remote.call("holds"))
        home.complete(self._session.folder, kept, held.remote.fetch)
        label = f"files to {held.name}"
        shipping.send(cargo, held.remote.call, lambda done, total: self._screen.progress(label, done, total))

    def _preparing(self) -> bool:
        """Return whether a node is still being prepared that need not wait for another run, or none is ready yet."""
        self._check_any_left()
        busy = [held for held in self._nodes.values() if not held.ready and not held.waits]
        return bool(busy) or not any(held.ready for held in self._nodes.values())

    def _do(self, held: Held, work: str, *values: Any) -> None:
        """Order a piece of work; its end is a message. Nothing waits for the node here, because others may send messages."""
        held.work = self._next_number()
        held.order = Order(held.work, work, values)
        held.ask()

    def _next_number(self) -> int:
        self._number += 1
        return self._number

    def _pump(self) -> None:
        """Process arrived replies, after waiting for them for a moment."""
        now = time.monotonic()
        asked = {held.ref: held for held in self._nodes.values() if held.ref is not None}
        if not asked:
            time.sleep(engine.PAUSE_S)
        arrived = engine.ready(list(asked), engine.PAUSE_S) if asked else []
        for ref in arrived:
            with self._lost_if_broken(asked[ref]):
                self._take(asked[ref], ref)
        for gang in list(self._gangs):
            gang.advance()
            if outcome := gang.outcome():
                self._gangs.remove(gang)
                self._end(outcome)
        # A reply may have waited here while files were sent to other nodes, so only nodes without a reply were silent.
        for held in list(self._nodes.values()):
            if held.ref not in arrived and now - held.heard_s > engine.SILENT_S:
                self._lose(held, f"it gave no answer for {engine.SILENT_S:.0f} s")
            elif now > held.ask_s:
                held.ask()

    def _take(self, held: Held, ref: Any) -> None:
        held.ref = None
        try:
            reply = held.remote.take(ref)
        except TimeoutError:
            held.ask_s = time.monotonic() + engine.PAUSE_S
            return
        held.heard_s = time.monotonic()
        for piece in reply.pieces:
            home.write(self._session.folder, piece)
        held.taken = reply.number
        for message in reply.messages:
            self._heed(held, message)
        if held.name in self._nodes and held.ref is None:
            held.ask()

    def _heed(self, held: Held, message: Message) -> None:
        name, values = held.name, message.values
        if message.kind != "waits":
            held.waits = ""
        match message.kind:
            case "say":
                self._screen.say(f"{name}: {values[0]}")
            case "progress":
                label, done, total, note = values
                self._screen.progress(f"{name}: {label}", done, total, note)
            case "trial":
                number, case_id = values
                self._screen.trial(number, self._session.plan.by_id[case_id], name)
            case "waits":
                held.waits = values[1] or "another run"
                self._screen.say(f"{name}: {values[0]}" + (f" It is {values[1]}." if values[1] else ""))
            case "part" if held.gang:
                held.gang.begin_part(*values)
            case "parts end" if held.gang:
                held.gang.end_parts(*values)
            case "failed" if held.ready and not held.attempt and not held.gang:
                # Work outside of the rounds: the caller handles a missing result.
                self._finish(held, values[0], UserError(values[1]))
            case "failed":
                self._lose(held, values[1])
            case "done":
                number, found, kept = values
                home.complete(self._session.folder, kept, held.remote.fetch)
                self._finish(held, number, found)

    def _finish(self, held: Held, number: int, found: Any) -> None:
        held.work, held.order = 0, None
        if isinstance(found, Ready):
            held.ready, self._joined = found, True
            if self._ready:
                self._check_agreement(held)
        elif held.gang:
            held.gang.heed(held, found)
        elif isinstance(found, Outcome):
            held.attempt = None
            self._end(replace(found, node=held.name))
        else:
            self._found[number] = found

    def _end(self, outcome: Outcome) -> None:
        """Finish an attempt that has ended, with its transferred trials."""
        if not outcome.lost:
            measured = home.read(self._session.folder, self._session.plan, outcome.attempt)
            for trial in measured:
                self._session.store.add_trial(self._session.folder.name, trial)
                self._screen.finished(trial)
            outcome = replace(outcome, trials=measured)
        self._ended.append(outcome)

    def _check_agreement(self, held: Held) -> None:
        """Leave a node out that would not measure the same as the others."""
        assert self._ready is not None and held.ready is not None
        if reason := disagreement(self._ready, held.ready, self._session.plan):
            self._lose(held, reason)

    @contextmanager
    def _lost_if_broken(self, held: Held) -> Iterator[None]:
        """Give up a node that cannot be reached or cannot continue; the run continues on the others."""
        try:
            yield
        except (NodeLost, UserError) as error:
            self._lose(held, str(error))

    def _lose(self, held: Held, why: str) -> None:
        if self._nodes.pop(held.name, None) is None:
            return
        sentence = f"node {held.name} was given up: {why.rstrip('.')}"
        self._losses.append(f"N{sentence[1:]}.")
        self._screen.say(self._losses[-1])
        if held.gang:
            held.gang.lose(held, sentence)
        elif held.attempt:
            self._ended.append(Outcome(held.attempt, node=held.name, lost=sentence))
        engine.end([held.remote])

    def _check_any_left(self) -> None:
        if not self._nodes and not self._ended:
            why = " ".join(["No node of the run is left.", *dict.fromkeys(self._losses)])
            command = f"steelyard run --resume {paths.named(self._session.folder)} --on ..."
            raise ResumableError(f"{why} Finished results are stored. Continue with: {command}")

    @property
    def names(self) -> str:
        """The names of the nodes, for a sentence."""
        return names_of(self._nodes)


@contextmanager
def opened(session: Session, choice: Choice) -> Iterator[ClusterPlace]:
    """Start an agent on every node, and end all agents after the block, also after an error."""
    place = ClusterPlace(session, choice)
    whole = False
    try:
        yield place
        whole = True
    finally:
        place.end(forget=whole)
