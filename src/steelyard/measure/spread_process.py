"""How the processes of a trial with a strategy are started: the launcher's command line and the variables of its ranks."""

import os
from pathlib import Path

from steelyard.environments.interpreter import command
from steelyard.measure.hosts import Hosts
from steelyard_worker.protocol import Job
from steelyard_worker.strategy import OWN_LAUNCHER, Spread, parts_of

LAUNCHER = "launcher.py"


def started(
    job: Job, spread: Spread, python: Path, worker: Path, environ: dict[str, str], hosts: Hosts, line: Path
) -> tuple[list[str], dict[str, str]]:
    """Return the command line and the variables that start a job's ranks: all of them, or on a node of a cluster its own.

    `line`: the file that holds the job.
    """
    parts = parts_of(job.case.strategy)
    rank = [*command(python), str(worker / "__main__.py"), str(line)]
    chosen = environ | spread.variables
    addresses = [hosts.address(each, parts) for each in range(parts)]
    environ = chosen | {
        "STEELYARD_PORTS": ",".join(map(str, hosts.meeting.ports)),
        "STEELYARD_ADDRESSES": ",".join(addresses),
        "STEELYARD_INTERFACE": hosts.interface,
        "STEELYARD_KEY": hosts.meeting.key,
        "STEELYARD_GIVEN": ",".join(chosen),
        "STEELYARD_HOSTS": " ".join(hosts.namespaces),
        "STEELYARD_PARENT": str(os.getpid()),
    }
    if hosts.are_nodes:
        environ["STEELYARD_HOST"] = f"{hosts.number}/{hosts.count}"
    if not spread.several_processes:
        return rank, environ
    launcher = [*command(python), str(worker / LAUNCHER)]
    if spread.launcher.split("+")[0] == OWN_LAUNCHER:
        return [*launcher, spread.launcher, str(parts), *rank], environ
    values = {
        "python": str(python),
        "bin": str(python.parent),
        "ranks": str(parts),
        "port": str(hosts.meeting.ports[1]),
        "folder": job.folder,
        "hosts": str(hosts.count),
        "per_host": str(parts // hosts.count),
        "address": addresses[0],
        "host": "{host}" if hosts.namespaces else str(hosts.number),
        "interface": hosts.interface,
        "slots": ",".join(f"{name}:{parts // hosts.count}" for name in hosts.namespaces),
    }
    first_alone = bool(hosts.namespaces and spread.across_hosts)
    text = f"{spread.launcher} {spread.across_hosts}" if first_alone else spread.launcher
    own = [*launcher, "become", *(part.format(**values) for part in text.split()), *rank]
    if not hosts.namespaces:
        return own, environ
    return [*launcher, "ssh" if first_alone else "hosts", str(hosts.count), *own], environ
