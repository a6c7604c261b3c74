"""How many bytes the TCP connections of this process have carried, as Linux counts them (tcp(7), TCP_INFO).

Whatever framework opened a connection, its counters can be read from this process. They are read between blocks, never inside a
timed one. What is exchanged through shared memory or Unix sockets is not seen.
"""

from __future__ import annotations

import socket
import struct
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection

# Of each connection, by its socket's name in the kernel: bytes sent and bytes received since it was opened.
Counters = dict[str, tuple[int, int]]
DESCRIPTORS = Path("/proc/self/fd")
# Places in struct tcp_info (linux/tcp.h): tcpi_bytes_received, since Linux 4.1, and tcpi_bytes_sent and tcpi_bytes_retrans, since
# 4.19.
RECEIVED_AT, SENT_AT = 128, 200
RECEIVED, SENT_AND_AGAIN = struct.Struct("=Q"), struct.Struct("=QQ")
LONGEST = 256


@dataclass(frozen=True)
class Traffic:
    """Bytes of TCP payload that a process sent and received; what TCP sent again because it seemed lost counts once."""

    sent: int
    received: int


def read(without: Collection[int] = ()) -> Counters | None:
    """Return the counters of all connections but those with these file descriptors; None: the system has no such counters."""
    if sys.platform != "linux":
        return None
    found: Counters = {}
    for path in DESCRIPTORS.iterdir():
        if int(path.name) not in without and (place := _socket(path)):
            counters = _counters(int(path.name))
            if counters is None:
                return None
            if counters:
                found[place] = counters
    return found


def since(before: Counters | None, after: Counters | None) -> Traffic | None:
    """Return what was carried between two readings; of a connection that was closed in between, nothing is known."""
    if before is None or after is None:
        return None
    carried = [(now, before.get(place, (0, 0))) for place, now in after.items()]
    return Traffic(sum(now[0] - then[0] for now, then in carried), sum(now[1] - then[1] for now, then in carried))


def _socket(path: Path) -> str:
    """Return the name of the socket that a file descriptor stands for; empty if it stands for something else."""
    try:
        place = str(path.readlink())
    except OSError:  # closed in the meantime, as that of the listing itself
        return ""
    return place if place.startswith("socket:") else ""


def _counters(descriptor: int) -> tuple[int, int] | tuple[()] | None:
    """Return what a connection has sent and received; empty: it is none over TCP; None: the kernel does not count that."""
    try:
        opened = socket.socket(fileno=descriptor)
    except OSError:
        return ()
    try:
        if opened.family not in (socket.AF_INET, socket.AF_INET6) or opened.type != socket.SOCK_STREAM:
            return ()
        info = opened.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, LONGEST)
    except OSError:
        return ()
    finally:
        opened.detach()  # it belongs to whoever opened it
    if len(info) < SENT_AT + SENT_AND_AGAIN.size:
        return None
    sent, again = SENT_AND_AGAIN.unpack_from(info, SENT_AT)
    (received,) = RECEIVED.unpack_from(info, RECEIVED_AT)
    return sent - again, received
