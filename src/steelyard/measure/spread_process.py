"""How the processes of a trial with a strategy are started: the launcher's command line and the variables of its ranks."""

import contextlib
import os
import secrets
import socket
from collections.abc import Iterator
from pathlib import Path

from steelyard.environments.interpreter import command
from steelyard.host import links
from steelyard.results.trials import JOB
from steelyard_worker.protocol import Job
from steelyard_worker.strategy import OWN_LAUNCHER, Spread, link_of, parts_of

LAUNCHER = "launcher.py"
LOOPBACK = "127.0.0.1"
# Ports for a framework's own rendezvous, beside one for each part and role.
SPARE_PORTS = 4
# The kinds of jobs whose ranks are on the hosts that their strategy names; for a certificate they make no difference.
TIMED = ("measure", "probe", "search", "communication")


@contextlib.contextmanager
def hosts(job: Job) -> Iterator[tuple[str, ...]]:
    """Make the hosts that a job's strategy names, for processes that are timed; yield their namespaces.

    UserError: this machine cannot have them.
    """
    link = link_of(job.case.strategy)
    if not link or job.kind not in TIMED:
        yield ()
        return
    with links.hosts(link) as namespaces:
        yield namespaces


def started(
    job: Job, spread: Spread, python: Path, worker: Path, environ: dict[str, str], namespaces: tuple[str, ...] = ()
) -> tuple[list[str], dict[str, str]]:  # fmt: skip
    """Return the command line and the variables that start a job with a strategy. `namespaces`: of the hosts; empty: one host."""
    parts = parts_of(job.case.strategy)
    ports = _free_ports(parts + len(spread.roles) + SPARE_PORTS)
    rank = [*command(python), str(worker / "__main__.py"), str(Path(job.folder) / JOB)]
    chosen = environ | spread.variables
    addresses = [links.ADDRESSES[each * 2 // parts] if namespaces else LOOPBACK for each in range(parts)]
    environ = chosen | {
        "STEELYARD_PORTS": ",".join(map(str, ports)), "STEELYARD_ADDRESSES": ",".join(addresses),
        "STEELYARD_INTERFACE": links.INTERFACE if namespaces else "", "STEELYARD_HOSTS": " ".join(namespaces),
        "STEELYARD_KEY": secrets.token_hex(16), "STEELYARD_GIVEN": ",".join(chosen), "STEELYARD_PARENT": str(os.getpid()),
    }  # fmt: skip
    if not spread.several_processes:
        return rank, environ
    launcher = [*command(python), str(worker / LAUNCHER)]
    if spread.launcher.split("+")[0] == OWN_LAUNCHER:
        return [*launcher, spread.launcher, str(parts), *rank], environ
    count = len(namespaces) or 1
    values = {
        "python": str(python), "bin": str(python.parent), "ranks": str(parts), "port": str(ports[1]), "folder": job.folder,
        "hosts": str(count), "per_host": str(parts // count), "address": addresses[0],
        "host": "{host}" if namespaces else "0",
    }  # fmt: skip
    own = [*launcher, "become", *(part.format(**values) for part in spread.launcher.split()), *rank]
    return [*launcher, "hosts", str(count), *own] if namespaces else own, environ


def _free_ports(count: int) -> list[int]:
    """Return ports of the loopback interface that nothing listens on. Another program may still take one before it is used."""
    sockets = [socket.socket() for _ in range(count)]
    try:
        for each in sockets:
            each.bind((LOOPBACK, 0))
        return [each.getsockname()[1] for each in sockets]
    finally:
        for each in sockets:
            each.close()
