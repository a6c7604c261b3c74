"""Two hosts on one machine with a link between them."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from steelyard.errors import UserError
from steelyard.host import links

root = pytest.mark.skipif(bool(links.obstacle()), reason="only root can make network namespaces, and only on Linux")
RECEIVE = """
import socket
listener = socket.create_server(("198.18.0.1", 5000))
print("ready", flush=True)
connection, _ = listener.accept()
while connection.recv(1 << 20):
    pass
connection.sendall(b".")
"""
SEND = """
import socket, sys, time
connection = socket.create_connection(("198.18.0.1", 5000))
began = time.monotonic()
connection.sendall(bytes(int(sys.argv[1])))
connection.shutdown(socket.SHUT_WR)
connection.recv(1)
print(time.monotonic() - began)
"""


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1gbit", links.Link(1e9)),
        ("2.5mbit+10ms", links.Link(2.5e6, "10ms")),
        ("64kbit+50us", links.Link(64e3, "50us")),
    ],
)
def test_a_link_is_a_bandwidth_and_perhaps_a_delay(text: str, expected: links.Link) -> None:
    assert links.read(text) == expected


@pytest.mark.parametrize("text", ["", "fast", "1gb", "1gbit+", "1gbit+5", "0mbit", "-1gbit", "1 gbit", "5ms"])
def test_what_is_no_link_is_refused(text: str) -> None:
    with pytest.raises(UserError, match="such as 1gbit or 100mbit"):
        links.read(text)


@root
@pytest.mark.parametrize(("link", "rate_bps"), [("20mbit", 20e6), ("100mbit", 100e6)])
def test_a_link_passes_as_much_as_it_says(link: str, rate_bps: float) -> None:
    """On a busy machine less may pass, but never more than the bucket beside the rate."""
    count = round(rate_bps / 8 / 2)  # half a second
    with links.hosts(link) as (first, second):
        inside = ("ip", "netns", "exec")
        receiver = subprocess.Popen([*inside, first, sys.executable, "-c", RECEIVE], stdout=subprocess.PIPE)
        with receiver:
            assert receiver.stdout is not None
            receiver.stdout.readline()
            command = [*inside, second, sys.executable, "-c", SEND, str(count)]
            taken = float(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    assert 0.45 < taken < 5


@root
def test_hosts_reach_nothing_else_and_are_gone_afterwards() -> None:
    with links.hosts("1gbit") as names:
        for name in names:
            routes = subprocess.run(["ip", "-n", name, "route"], capture_output=True, text=True, check=True).stdout
            assert [line.split()[0] for line in routes.splitlines()] == ["198.18.0.0/24"]
    assert not _namespaces(str(os.getpid()))
    assert not list(links.SETTINGS.glob(f"steelyard-{os.getpid()}-*"))


@root
def test_the_name_of_the_machine_is_the_address_of_each_host() -> None:
    ask = "import socket; print(socket.gethostbyname(socket.gethostname()))"
    with links.hosts("1gbit") as names:
        found = [
            subprocess.run(
                ["ip", "netns", "exec", name, sys.executable, "-c", ask], capture_output=True, text=True, check=True
            )
            for name in names
        ]
    assert [each.stdout.strip() for each in found] == list(links.ADDRESSES)


@root
def test_each_host_knows_the_others_by_the_names_of_their_namespaces() -> None:
    ask = "import socket, sys; print(*map(socket.gethostbyname, sys.argv[1:]))"
    with links.hosts("1gbit") as names:
        for name in names:
            command = ["ip", "netns", "exec", name, sys.executable, "-c", ask, *names]
            done = subprocess.run(command, capture_output=True, text=True, check=True)
            assert done.stdout.split() == list(links.ADDRESSES)


@root
def test_hosts_of_a_run_that_was_killed_are_removed_by_the_next() -> None:
    script = "import time\nfrom steelyard.host import links\nwith links.hosts('1gbit'):\n    print('made', flush=True)\n    time.sleep(60)"
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE) as killed:
        assert killed.stdout is not None
        killed.stdout.readline()
        assert len(_namespaces(str(killed.pid))) == 2
        killed.kill()
    time.sleep(0.1)
    with links.hosts("1gbit"):
        assert not _namespaces(str(killed.pid))


@root
def test_a_kernel_that_cannot_delay_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    run = subprocess.run

    def without(command: list[str], **options: object) -> object:
        failing = "netem" in command
        return run(["tc", "qdisc", "add", "dev", "none", "root", "netem"] if failing else command, **options)  # type: ignore[call-overload]

    monkeypatch.setattr(links.subprocess, "run", without)
    with pytest.raises(UserError, match="The kernel has no network emulator"), links.hosts("1gbit+1ms"):
        pass
    assert not _namespaces(str(os.getpid()))


def test_a_machine_without_namespaces_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(links.os, "geteuid", lambda: 1000)
    assert "only root may make" in links.obstacle()
    with links.assumed():
        assert not links.obstacle()
    assert links.obstacle()


def _namespaces(owner: str) -> list[str]:
    return [path.name for path in Path("/run/netns").glob(f"steelyard-{owner}-*")]
