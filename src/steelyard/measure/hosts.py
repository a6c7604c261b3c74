"""The hosts on which the ranks of one trial are: this machine, two namespaces of it, or several nodes of a cluster."""

import contextlib
import secrets
import socket
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Protocol

import psutil

from steelyard.errors import UserError
from steelyard.host import links
from steelyard_worker import job_kinds
from steelyard_worker.protocol import Job
from steelyard_worker.strategy import link_of, nodes_of, parts_of

LOOPBACK = "127.0.0.1"
# Ports for a framework's own rendezvous, beside one for each part and role.
SPARE_PORTS = 4
# A connection within a machine takes far less.
CONNECTS_S = 5.0


@dataclass(frozen=True)
class Meeting:
    """How the ranks of one trial find each other; all ranks need the same values.

    ports: free ports of the first host. addresses: of the hosts. key: a secret without which no rank may connect.
    """

    ports: tuple[int, ...]
    addresses: tuple[str, ...] = (LOOPBACK,)
    key: str = ""


@dataclass(frozen=True)
class Hosts:
    """The hosts, as seen from one of them. `namespaces`: of hosts that are on this machine; empty for other machines.

    `number`: of this host among nodes of a cluster. `interface`: the network interface between the hosts; empty on one host.
    """

    meeting: Meeting
    namespaces: tuple[str, ...] = ()
    number: int = 0
    interface: str = ""

    @property
    def count(self) -> int:
        """How many hosts there are."""
        return len(self.meeting.addresses)

    @property
    def are_nodes(self) -> bool:
        """Whether every host is a machine of its own."""
        return self.count > 1 and not self.namespaces

    def address(self, rank: int, ranks: int) -> str:
        """Return the address of a rank's host."""
        return self.meeting.addresses[rank * self.count // ranks]


class Partners(Protocol):
    """The other nodes of a cluster that take part in the trials of this one, which is the first of them."""

    @property
    def addresses(self) -> tuple[str, ...]:
        """The addresses of all nodes, of this one first."""

    def begin(self, job: Job, meeting: Meeting) -> None:
        """Start the ranks of a job that are on the other nodes."""

    def failure(self) -> tuple[str, str] | None:
        """Return (kind, message) if the ranks of another node have ended too early."""

    def end(self) -> None:
        """End the ranks on the other nodes, if they still run."""


@contextlib.contextmanager
def of(job: Job, partners: Partners | None) -> Iterator[Hosts]:
    """Make the hosts that a job's strategy names, for processes that are timed. UserError: this machine cannot have them."""
    timed = job_kinds.of(job.kind).timed
    strategy = job.case.strategy
    ports: tuple[int, ...] = ()
    if job.spread and job.spread.several_processes:
        _check_loopback()
    if job.spread:
        ports = _free_ports(parts_of(strategy) + len(job.spread.roles) + SPARE_PORTS)
    meeting = Meeting(ports, key=secrets.token_hex(16))
    link, nodes = link_of(strategy), nodes_of(strategy)
    if link and timed:
        with links.hosts(link) as namespaces:
            yield Hosts(replace(meeting, addresses=links.ADDRESSES), namespaces, interface=links.INTERFACE)
    elif nodes > 1 and timed:
        addresses = partners.addresses if partners else ()
        if len(addresses) < nodes:
            raise UserError(f"{strategy} needs {nodes} nodes, and {len(addresses) or 1} of this run can measure.")
        yield on_node(replace(meeting, addresses=addresses[:nodes]), 0)
    else:
        yield Hosts(meeting)


def on_node(meeting: Meeting, number: int) -> Hosts:
    """Return the hosts of a trial as a node of a cluster sees them. `number`: of the node among those of the trial."""
    return Hosts(meeting, number=number, interface=_interface(meeting.addresses[number]))


def _interface(address: str) -> str:
    """Return the network interface that has an address; empty if none has."""
    return next((name for name, each in psutil.net_if_addrs().items() if address in {one.address for one in each}), "")


def _check_loopback() -> None:
    """Check that processes of this machine reach each other. UserError: they do not, so that ranks would wait in vain."""
    try:
        with socket.create_server((LOOPBACK, 0)) as server, socket.create_connection(server.getsockname(), CONNECTS_S):
            pass
    except OSError as error:
        raise UserError(
            f"The ranks of a strategy find each other at {LOOPBACK}, which this machine does not reach "
            f"({error.strerror or error}). Start its loopback device: ip link set lo up"
        ) from None


def _free_ports(count: int) -> tuple[int, ...]:
    """Return ports of this machine that nothing listens on. Another program may still take one before it is used."""
    sockets = [socket.socket() for _ in range(count)]
    try:
        for each in sockets:
            each.bind(("", 0))
        return tuple(each.getsockname()[1] for each in sockets)
    finally:
        for each in sockets:
            each.close()
