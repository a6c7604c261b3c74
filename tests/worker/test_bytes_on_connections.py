"""The bytes that the connections of a process have carried: real sockets of the loopback interface, counted by the kernel."""

from __future__ import annotations

import socket
import sys
from contextlib import ExitStack
from typing import TYPE_CHECKING

import pytest

from steelyard_worker import traffic
from steelyard_worker.traffic import Traffic

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux counts the bytes of a connection")

SIZE = 100_000


def connected(stack: ExitStack) -> tuple[socket.socket, socket.socket]:
    """Return both ends of a connection over TCP."""
    listener = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
    first = stack.enter_context(socket.create_connection(listener.getsockname()))
    second, _ = listener.accept()
    return first, stack.enter_context(second)


@pytest.fixture
def ends() -> Iterator[tuple[socket.socket, socket.socket]]:
    with ExitStack() as stack:
        yield connected(stack)


def send(sender: socket.socket, receiver: socket.socket, size: int = SIZE) -> None:
    """Send bytes, and wait until all have arrived."""
    sender.sendall(bytes(size))
    while size:
        size -= len(receiver.recv(size))


def others(kept: socket.socket) -> list[int]:
    """Return the file descriptors of all other sockets of this process."""
    found = [int(path.name) for path in traffic.DESCRIPTORS.iterdir()]
    return [each for each in found if each != kept.fileno()]


def test_each_end_counts_what_it_sends_and_receives(ends: tuple[socket.socket, socket.socket]) -> None:
    first, second = ends
    before = {end: traffic.read(others(end)) for end in ends}
    send(first, second)
    send(second, first, 10)
    assert traffic.since(before[first], traffic.read(others(first))) == Traffic(SIZE, 10)
    assert traffic.since(before[second], traffic.read(others(second))) == Traffic(10, SIZE)


def test_what_was_sent_before_does_not_count_but_a_new_connection_does(
    ends: tuple[socket.socket, socket.socket],
) -> None:
    send(*ends)
    before = traffic.read()
    with ExitStack() as stack:
        send(*connected(stack), size=70)
        found = traffic.since(before, traffic.read())
    assert found == Traffic(70, 70)


def test_what_is_no_connection_over_tcp_is_not_counted() -> None:
    before = traffic.read()
    one, other = socket.socketpair()
    with one, other:
        send(one, other)
        assert traffic.since(before, traffic.read()) == Traffic(0, 0)
        assert one.fileno() >= 0, "reading must not close what belongs to others"
        send(one, other)


def test_a_kernel_without_the_counters_is_told_from_silence(
    ends: tuple[socket.socket, socket.socket], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(traffic, "LONGEST", 160)  # as much as kernels before 4.19 return
    assert traffic.read() is None
    assert traffic.since(None, {}) is None
    monkeypatch.setattr(sys, "platform", "darwin")
    assert traffic.read() is None
