"""Two hosts on one machine: network namespaces that are connected by a link of a given bandwidth and delay.

Linux alone has namespaces, and only root may make them. Traffic stays inside: the link has two ends and no way out. Rates are
shaped by the token bucket of the kernel (tc-tbf(8)), delays by its network emulator (tc-netem(8)), at both ends.
"""

import contextlib
import os
import re
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path

from steelyard.errors import UserError
from steelyard_worker.strategy import bits_per_second

PREFIX = "steelyard"
# For tests of devices that are connected to each other (RFC 2544): no real network has these addresses.
ADDRESSES = ("198.18.0.1", "198.18.0.2")
INTERFACE = "host0"
NAMESPACES = Path("/run/netns")
# Where `ip netns` looks for files that processes in a namespace see in place of those in /etc (ip-netns(8)).
SETTINGS = Path("/etc/netns")
DELAY = re.compile(r"(\d+(?:\.\d+)?)(us|ms)")
# A bucket holds the data of this time, and at least some packets. Data in a larger bucket would pass without shaping.
BUCKET_S, SMALLEST_BUCKET = 0.001, 2**15


@dataclass(frozen=True)
class Link:
    """A link between two hosts: bits per second in each direction, and the delay of each direction as it is typed, or empty."""

    rate_bps: float
    delay: str = ""


def read(text: str) -> Link:
    """Read a link such as `1gbit` or `100mbit+5ms`. UserError: the text is no link."""
    _, plus, delay = text.partition("+")
    rate = bits_per_second(text)
    if not rate or (plus and not DELAY.fullmatch(delay)):
        raise UserError(
            f"A link must be a bandwidth, and a delay if you want one, such as 1gbit or 100mbit+5ms, not '{text}'."
        )
    return Link(rate, delay)


_assumed: ContextVar[bool] = ContextVar("assumed", default=False)


@contextlib.contextmanager
def assumed() -> Iterator[None]:
    """During the block, plan as if this machine could have two hosts: a study must not depend on the user's rights."""
    token = _assumed.set(True)
    try:
        yield
    finally:
        _assumed.reset(token)


def obstacle() -> str:
    """Return why this machine cannot have two hosts; empty if it can."""
    if _assumed.get():
        return ""
    if sys.platform != "linux":
        return "Hosts with a link between them are network namespaces, which only Linux has."
    if os.geteuid() != 0:
        return "Hosts with a link between them are network namespaces, which only root may make."
    missing = [name for name in ("ip", "tc") if not shutil.which(name)]
    if missing:
        return f"The program {missing[0]} is missing. Install the package iproute2."
    try:  # in a container, root may lack the right to
        probe = f"{PREFIX}-{os.getpid()}-probe"
        _do("ip", "netns", "add", probe)
        _do("ip", "netns", "delete", probe)
    except UserError as error:
        return str(error)
    return ""


@contextlib.contextmanager
def hosts(text: str) -> Iterator[tuple[str, str]]:
    """Make two hosts and the link between them; yield the names of their namespaces, and remove them at the end.

    UserError: the kernel refuses.
    """
    link = read(text)
    _remove_left_over()
    names = tuple(f"{PREFIX}-{os.getpid()}-{number}" for number in range(2))
    ends = tuple(f"sy{os.getpid() % 10**7}{letter}" for letter in "ab")
    try:
        for name in names:
            _do("ip", "netns", "add", name)
        _do("ip", "link", "add", ends[0], "type", "veth", "peer", "name", ends[1])
        for name, end, address in zip(names, ends, ADDRESSES, strict=True):
            _write_hosts(name, address, names)
            _do("ip", "link", "set", end, "netns", name)
            _do("ip", "-n", name, "link", "set", end, "name", INTERFACE)
            _do("ip", "-n", name, "address", "add", f"{address}/24", "dev", INTERFACE)
            for interface in ("lo", INTERFACE):
                _do("ip", "-n", name, "link", "set", "dev", interface, "up")
            _shape(name, link)
        yield names[0], names[1]
    finally:
        with contextlib.suppress(UserError):
            _do("ip", "link", "delete", ends[0])
        for name in names:
            _delete(name)


def _write_hosts(name: str, address: str, names: tuple[str, ...]) -> None:
    """Give the machine's name this address inside a namespace: `ip netns exec` shows processes this file as /etc/hosts.

    Some programs listen at the address of their machine's name. `names`: of all namespaces, which are the names of the hosts.
    """
    others = "".join(f"{each} {other}\n" for each, other in zip(ADDRESSES, names, strict=True))
    folder = SETTINGS / name
    try:
        folder.mkdir(parents=True)
        folder.joinpath("hosts").write_text(
            f"127.0.0.1 localhost\n{address} {socket.gethostname()}\n{others}", encoding="utf-8"
        )
    except OSError as error:
        raise UserError(
            f"The link between two hosts cannot be made: {folder} cannot be written ({error.strerror})."
        ) from None


def _delete(name: str) -> None:
    with contextlib.suppress(UserError):
        _do("ip", "netns", "delete", name)
    shutil.rmtree(SETTINGS / name, ignore_errors=True)


def _shape(name: str, link: Link) -> None:
    bucket = str(max(SMALLEST_BUCKET, round(link.rate_bps * BUCKET_S / 8)))
    rate = ("tbf", "rate", f"{link.rate_bps:.0f}bit", "burst", bucket, "latency", "200ms")
    place: tuple[str, ...] = ("root",)
    if link.delay:
        _do(
            "tc",
            "-n",
            name,
            "qdisc",
            "add",
            "dev",
            INTERFACE,
            "root",
            "handle",
            "1:",
            "netem",
            "delay",
            link.delay,
            "limit",
            "100000",
        )
        place = ("parent", "1:1")
    _do("tc", "-n", name, "qdisc", "add", "dev", INTERFACE, *place, *rate)


def _remove_left_over() -> None:
    """Remove namespaces of runs that were killed."""
    for path in NAMESPACES.glob(f"{PREFIX}-*-*") if NAMESPACES.is_dir() else ():
        owner = path.name.split("-")[1]
        if owner.isdecimal() and not Path("/proc", owner).exists():
            _delete(path.name)


def _do(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        reason = " ".join(done.stderr.split())
        hint = (
            " The kernel has no network emulator (module sch_netem), so links without a delay alone can be made."
            if "netem" in command
            else ""
        )
        raise UserError(f"The link between two hosts cannot be made: {' '.join(command[:4])} failed ({reason}).{hint}")
