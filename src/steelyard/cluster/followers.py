"""The other nodes of an attempt, seen from the node that leads it. All messages pass through the machine of the run."""

from threading import Lock

from steelyard.cluster.messages import Outgoing
from steelyard.measure.hosts import Meeting
from steelyard.measure.part import Order
from steelyard_worker.protocol import Job
from steelyard_worker.strategy import nodes_of


class Followers:
    """The other nodes of an attempt. The agent calls `ended` while another thread runs the attempt."""

    def __init__(self, outgoing: Outgoing, addresses: tuple[str, ...]) -> None:
        """`addresses`: of all nodes of the attempt, of the one that leads first."""
        self._outgoing, self._addresses = outgoing, addresses
        self._lock = Lock()
        self._running = ""
        self._failed: tuple[str, str] | None = None

    @property
    def addresses(self) -> tuple[str, ...]:
        """The addresses of all nodes, of this one first."""
        return self._addresses

    def begin(self, job: Job, meeting: Meeting) -> None:
        """Start the ranks of a job that are on the other nodes."""
        with self._lock:
            self._running, self._failed = meeting.key, None
        order = Order(job.case.id, job.round, job.attempt, job.schedule)
        for number in range(1, nodes_of(job.case.strategy)):
            self._outgoing.add("part", number, order, meeting)

    def failure(self) -> tuple[str, str] | None:
        """Return (kind, message) if the ranks of another node have ended too early."""
        with self._lock:
            return self._failed

    def ended(self, kind: str, message: str) -> None:
        """Note that a node's ranks have ended too early; the first such node is the cause."""
        with self._lock:
            if self._running and not self._failed:
                self._failed = kind, message

    def end(self) -> None:
        """End the ranks on the other nodes, if they still run."""
        with self._lock:
            key, self._running = self._running, ""
        self._outgoing.add("parts end", key)
