"""Start the processes of a trial with several ranks, and end with them.

    launcher.py ranks[+ROLE...] COUNT COMMAND...   start COUNT ranks and one process for each role, all with the same command
    launcher.py hosts COUNT COMMAND...             start COMMAND once on each host; {host} stands for the host's number
    launcher.py ssh COUNT COMMAND...               start COMMAND on the first of COUNT hosts; it reaches the others by `ssh`
    launcher.py become COMMAND...                  become the framework's own launcher

Where the hosts are nodes of a cluster, a launcher runs on each, and starts the ranks of its host; the processes with roles are on
the first. Either way the processes end if the orchestrator is killed. Only the standard library is used.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

Process = subprocess.Popen[bytes]
POLL_S = 0.05
# The time that the other ranks have to record why they cannot continue, after one has failed.
GRACE_S = 5.0
PR_SET_PDEATHSIG = 1  # linux/prctl.h
# The process number of a process's parent, in its variables.
PARENT = "STEELYARD_PARENT"
# Where there are several hosts: the network namespace of each, separated by spaces.
HOSTS = "STEELYARD_HOSTS"
# Where the hosts are nodes of a cluster: the number of this one, a slash, and how many there are.
HOST = "STEELYARD_HOST"
# A launcher that starts ranks on other hosts by ssh finds this program in its PATH first: the hosts are namespaces of this
# machine, which have no ssh server, and their names are those of the namespaces. As in ssh(1), options come before and after the
# host, and the other side's shell gets the words that follow. Of the options, it knows those that Horovod uses.
SSH = """\
#!/bin/sh
host=
while [ $# -gt 0 ]; do
    case $1 in
    -o | -p | -i) shift 2 ;;
    *)
        [ -n "$host" ] && break
        host=$1
        shift
        ;;
    esac
done
exec ip netns exec "$host" sh -c "$*"
"""
DISK_FULL, NOT_FOUND = 5, 119  # exit codes: of a rank whose disk is full, and of a launcher that cannot be started


def main(arguments: list[str]) -> int:
    """Start what the arguments say; the exit code is that of the first rank that failed, or 0."""
    _die_with_parent()
    first, *others = arguments
    if first == "become":
        os.environ.pop(PARENT, None)  # the ranks may have another parent than this process
        try:
            os.execvp(others[0], others)
        except OSError as error:
            print(f"The launcher {others[0]} could not be started ({error.strerror}).")
            return NOT_FOUND
    _, *roles = first.split("+")
    count, command = int(others[0]), others[1:]
    hosts = os.environ.get(HOSTS, "").split()
    if first == "ssh":
        with tempfile.TemporaryDirectory() as folder:
            return _follow({"The launcher": _start(command, hosts[0], PATH=_with_ssh(folder))}, {})
    if first == "hosts":
        numbered = ([part.replace("{host}", str(host)) for part in command] for host in range(count))
        launchers = {f"The launcher of host {host}": _start(each, hosts[host]) for host, each in enumerate(numbered)}
        return _follow(launchers, {})
    own = ranks_of_host(count)
    ranks = {f"Rank {rank}": _start(command, _host(hosts, rank, count), STEELYARD_RANK=str(rank)) for rank in own}
    beside = {
        f"The process '{role}' beside the ranks": _start(
            command, _host(hosts, 0, count), STEELYARD_RANK="0", STEELYARD_ROLE=role
        )
        for role in (roles if own.start == 0 else [])
    }
    return _follow(ranks, beside)


def _follow(ranks: dict[str, Process], beside: dict[str, Process]) -> int:
    """Wait until all ranks have ended, or one process has failed, and end the others; the exit code is that of `main`."""
    everything = [*ranks.values(), *beside.values()]
    signal.signal(signal.SIGTERM, lambda *_: _stop(everything))
    while True:
        codes = [process.poll() for process in ranks.values()]
        if any(codes):
            _wait(list(ranks.values()), GRACE_S)
            failed = {name: code for name, each in ranks.items() if (code := each.poll())}
            _end(everything)
            for name, code in failed.items():
                print(f"{name} was ended by signal {-code}." if code < 0 else f"{name} ended with exit code {code}.")
            return DISK_FULL if DISK_FULL in failed.values() else 1
        if all(code == 0 for code in codes):
            _end(list(beside.values()))
            return 0
        for name, each in beside.items():
            if code := each.poll():
                _end(everything)
                print(f"{name} ended with exit code {code}.")
                return 1
        time.sleep(POLL_S)


def _with_ssh(folder: str) -> str:
    """Write the program that takes the place of ssh into a folder; return a search path that finds it there."""
    program = Path(folder, "ssh")
    program.write_text(SSH, encoding="utf-8")
    program.chmod(0o755)
    return os.pathsep.join([folder, os.environ.get("PATH", os.defpath)])


def ranks_of_host(count: int) -> range:
    """Return which of all ranks are on this host: those of its share on a node of a cluster, otherwise all."""
    host, _, hosts = os.environ.get(HOST, "0/1").partition("/")
    share = count // int(hosts)
    return range(int(host) * share, (int(host) + 1) * share)


def _host(hosts: list[str], rank: int, count: int) -> str:
    """Return the namespace of a rank; empty on one host."""
    return hosts[rank * len(hosts) // count] if hosts else ""


def _start(command: list[str], namespace: str, **variables: str) -> Process:
    command = ["ip", "netns", "exec", namespace, *command] if namespace else command
    return subprocess.Popen(command, env=os.environ | variables | {PARENT: str(os.getpid())}, stdin=subprocess.DEVNULL)


def _stop(processes: list[Process]) -> None:
    _end(processes)
    sys.exit(128 + signal.SIGTERM)


def _wait(processes: list[Process], longest_s: float) -> None:
    deadline = time.monotonic() + longest_s
    while time.monotonic() < deadline and any(each.poll() is None for each in processes):
        time.sleep(POLL_S)


def _end(processes: list[Process]) -> None:
    """End processes that still run: first politely, then by force."""
    for end in (signal.SIGTERM, signal.SIGKILL):
        for each in processes:
            with contextlib.suppress(ProcessLookupError):
                if each.poll() is None:
                    each.send_signal(end)
        _wait(processes, GRACE_S)


def _die_with_parent() -> None:
    """Make the kernel kill this process if the orchestrator is killed (prctl(2)); its ranks do the same."""
    if sys.platform == "linux":
        import ctypes

        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.environ.get(PARENT) not in (None, str(os.getppid())):  # it was killed before this process could ask
            sys.exit(1)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
