"""Start the processes of a trial with several ranks, and end with them.

    launcher.py ranks[+ROLE...] COUNT COMMAND...   start COUNT ranks and one process for each role, all with the same command
    launcher.py hosts COUNT COMMAND...             start COMMAND once on each host; {host} stands for the host's number
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
import time

POLL_S = 0.05
# What the other ranks get to record why they cannot go on, after one has failed.
GRACE_S = 5.0
PR_SET_PDEATHSIG = 1  # linux/prctl.h
# The process number of a process's parent, in its variables.
PARENT = "STEELYARD_PARENT"
# Where there are several hosts: the network namespace of each, separated by spaces.
HOSTS = "STEELYARD_HOSTS"
# Where the hosts are nodes of a cluster: the number of this one, a slash, and how many there are.
HOST = "STEELYARD_HOST"
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
    own = ranks_of_host(count)
    if first == "hosts":
        ranks = [_start([part.replace("{host}", str(host)) for part in command], hosts[host]) for host in range(count)]
    else:
        ranks = [_start(command, _host(hosts, rank, count), STEELYARD_RANK=str(rank)) for rank in own]
    roles = roles if own.start == 0 else []
    beside = [_start(command, _host(hosts, 0, count), STEELYARD_RANK="0", STEELYARD_ROLE=role) for role in roles]
    signal.signal(signal.SIGTERM, lambda *_: _stop([*ranks, *beside]))
    while True:
        codes = [process.poll() for process in ranks]
        if any(codes):
            _wait(ranks, GRACE_S)
            failed = {rank: code for rank, each in zip(own, ranks, strict=True) if (code := each.poll())}
            _end([*ranks, *beside])
            for rank, code in failed.items():
                print(
                    f"Rank {rank} was ended by signal {-code}."
                    if code < 0
                    else f"Rank {rank} ended with exit code {code}."
                )
            return DISK_FULL if DISK_FULL in failed.values() else 1
        if all(code == 0 for code in codes):
            _end(beside)
            return 0
        for role, each in zip(roles, beside, strict=True):
            if code := each.poll():
                _end([*ranks, *beside])
                print(f"The process '{role}' beside the ranks ended with exit code {code}.")
                return 1
        time.sleep(POLL_S)


def ranks_of_host(count: int) -> range:
    """Return which of all ranks are on this host: those of its share on a node of a cluster, otherwise all."""
    host, _, hosts = os.environ.get(HOST, "0/1").partition("/")
    share = count // int(hosts)
    return range(int(host) * share, (int(host) + 1) * share)


def _host(hosts: list[str], rank: int, count: int) -> str:
    """Return the namespace of a rank; empty on one host."""
    return hosts[rank * len(hosts) // count] if hosts else ""


def _start(command: list[str], namespace: str, **variables: str) -> subprocess.Popen[bytes]:
    command = ["ip", "netns", "exec", namespace, *command] if namespace else command
    return subprocess.Popen(command, env=os.environ | variables | {PARENT: str(os.getpid())}, stdin=subprocess.DEVNULL)


def _stop(processes: list[subprocess.Popen[bytes]]) -> None:
    _end(processes)
    sys.exit(128 + signal.SIGTERM)


def _wait(processes: list[subprocess.Popen[bytes]], longest_s: float) -> None:
    deadline = time.monotonic() + longest_s
    while time.monotonic() < deadline and any(each.poll() is None for each in processes):
        time.sleep(POLL_S)


def _end(processes: list[subprocess.Popen[bytes]]) -> None:
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
