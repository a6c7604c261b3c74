"""The only module that uses Ray: joining a cluster, its nodes, their agents, and calls that end in bounded time."""

import ipaddress
import logging
import os
import signal
import socket
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

from steelyard.cluster import probe
from steelyard.cluster.agent import Agent
from steelyard.errors import UserError

ANY = "ray"
INSTALL = (
    "A cluster needs Ray, which is not installed here. Install it with: pip install 'steelyard[cluster]'. To measure on this "
    "machine alone, leave out --on."
)
CONNECT_S = 10.0
# How long a node may take to start a process of steelyard and to answer its first question.
START_S = 120.0
# After this time without an answer, a question is repeated: it may have been lost with a connection that was broken for
# a while. An agent answers within 10 s; Ray never answers a call that was on its way when the connection broke.
ANSWER_S = 20.0
# How long a node may be silent before it is given up. A connection that is broken for a minute is no reason.
SILENT_S = 180.0
# Between two questions to a node whose connection is broken, in seconds.
PAUSE_S = 1.0
# How long an agent may take to stop its process when the run ends.
END_S = 5.0


class NodeLost(Exception):
    """An agent cannot be reached any more; the text says why, as a part of a sentence."""


@dataclass(frozen=True)
class Member:
    """A node of the cluster. `name`: unique; that given to `ray start --node-name`, or the host's."""

    id: str
    name: str
    address: str


def ray() -> Any:
    """Return the module; UserError: it is not installed."""
    # Ray would print its own accounts of lost nodes on standard output, between results that a script reads.
    os.environ["RAY_DEDUP_LOGS_SKIP_REGEX"] = ".*"
    try:
        import ray as found
    except ImportError:
        raise UserError(INSTALL) from None
    return found


@contextmanager
def joined(address: str) -> Iterator[None]:
    """Join a cluster: `ray`, one that `ray start` made on this machine or that RAY_ADDRESS names, or `ray://HOST:PORT`.

    UserError: there is none, it does not answer, or its versions differ.
    """
    _check_port(address)
    found = ray()
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        found.init(
            address="auto" if address == ANY else address,
            log_to_driver=False,
            logging_level=logging.CRITICAL,
            configure_logging=True,
        )
    except (OSError, RuntimeError, ValueError) as error:  # ConnectionError, and what Ray raises for unlike versions
        raise UserError(_refused(address, error, found.__version__)) from None
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
    try:
        yield
    finally:
        found.shutdown()


def _check_port(address: str) -> None:
    """Fail at once if nothing listens, which Ray would notice after minutes. Keep Ray on this machine if the cluster is here."""
    named = os.environ.get("RAY_ADDRESS", "") if address == ANY else address
    host, _, port = named.removeprefix("ray://").rpartition(":")
    if not (host and port.isdecimal()):
        return  # Ray looks for a cluster on this machine
    try:
        with socket.create_connection((host, int(port)), timeout=CONNECT_S) as connection:
            if ipaddress.ip_address(connection.getpeername()[0]).is_loopback:
                # Otherwise Ray replaces 127.0.0.1 by the address of a network, where such a cluster does not listen.
                os.environ.setdefault("RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER", "0")
    except OSError as error:
        raise UserError(_refused(named, error, "")) from None


def _refused(address: str, error: Exception, version: str) -> str:
    """Return why a cluster cannot be joined, with advice."""
    text = " ".join(str(error).split())
    if "ersion mismatch" in text:
        mine = f"Ray {version} with Python {'.'.join(map(str, sys.version_info[:3]))}"
        return f"The cluster {address} has another version of Ray or Python than this machine, which has {mine}: {text}"
    advice = "Start one with: ray start --head" if address == ANY else "Check host and port, and that the cluster runs."
    return f"No Ray cluster answers at {address} ({text[:200].rstrip('.')}). {advice}"


def members() -> list[Member]:
    """Return the nodes of the cluster that are alive, sorted by name."""
    alive = [node for node in ray().nodes() if node["Alive"]]
    names = [_own_name(node) for node in alive]
    found = [
        Member(
            node["NodeID"],
            name if names.count(name) == 1 else f"{name}-{node['NodeID'][:6]}",
            node["NodeManagerAddress"],
        )
        for node, name in zip(alive, names, strict=True)
    ]
    return sorted(found, key=lambda each: each.name)


def _own_name(node: dict[str, Any]) -> str:
    given: str = node.get("NodeName", "")
    host: str = node["NodeManagerHostname"]
    return host if given in ("", node["NodeManagerAddress"]) else given


def probe_all(nodes: list[Member], version: str, code: str) -> dict[str, dict[str, Any]]:
    """Return the answers of all nodes about themselves, by name; `error` for a node that does not answer."""
    found = ray()
    found.cloudpickle.register_pickle_by_value(probe)
    try:
        asked = {node.name: _remote(probe.probe, node).remote(version, code) for node in nodes}
        ended, _ = found.wait(list(asked.values()), num_returns=len(asked), timeout=START_S)
        return {
            name: _answer(ref) if ref in ended else {"error": f"no answer within {START_S:.0f} s"}
            for name, ref in asked.items()
        }
    finally:
        found.cloudpickle.unregister_pickle_by_value(probe)


def _answer(ref: Any) -> dict[str, Any]:
    try:
        answer: dict[str, Any] = ray().get(ref, timeout=END_S)
    except ray().exceptions.RayError as error:
        return {"error": _first_line(error)}
    return answer


def _remote(work: Any, node: Member, **options: Any) -> Any:
    """Return a function or class that runs on one node in addition to other work of Ray: it reserves no CPUs."""
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    # Without this variable Ray hides the accelerators from processes that have reserved none.
    environment = {"env_vars": {"RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0"}}
    fixed = NodeAffinitySchedulingStrategy(node.id, soft=False)
    return ray().remote(work).options(num_cpus=0, scheduling_strategy=fixed, runtime_env=environment, **options)


class Remote:
    """The agent of a node, seen from the machine of the run. It ends with this process: Ray ends the actors of a lost driver."""

    def __init__(self, node: Member, key: str, run: str) -> None:
        """`key` and `run`: as in `Agent`."""
        self.node = node
        self._actor = _remote(Agent, node, max_concurrency=4, max_restarts=0).remote(node.name, key, run)

    def ask(self, method: str, *values: Any) -> Any:
        """Call a method without waiting; returns a reference for `ready` and `take`."""
        return getattr(self._actor, method).remote(*values)

    def call(self, method: str, *values: Any) -> Any:
        """Call a method and return its result. NodeLost: no answer. UserError: what the agent raised."""
        return self._answer(lambda: self.take(self.ask(method, *values), SILENT_S), 0)

    def fetch(self, path: str, begin: int) -> Any:
        """Return a piece of a file, as `Agent.fetch`; asks again as long as a connection may be broken."""
        return self._answer(lambda: self.take(self.ask("fetch", path, begin), ANSWER_S), SILENT_S)

    def _answer(self, question: Callable[[], Any], again_s: float) -> Any:
        """Return the answer to a question, which is repeated for `again_s` seconds; then NodeLost."""
        limit_s = time.monotonic() + again_s
        while True:
            try:
                return question()
            except TimeoutError:
                if time.monotonic() >= limit_s:
                    raise NodeLost(f"it gave no answer within {SILENT_S:.0f} s") from None
            time.sleep(PAUSE_S)

    def take(self, ref: Any, limit_s: float = END_S) -> Any:
        """Return the result of a call. TimeoutError: the connection is broken for now. NodeLost: for good."""
        errors = ray().exceptions
        try:
            return ray().get(ref, timeout=limit_s)
        except errors.RayTaskError as error:
            cause = error.cause
            if isinstance(cause, UserError):
                raise UserError(str(cause)) from None
            raise NodeLost(f"its agent failed ({_first_line(cause)})") from None
        except (errors.ActorUnavailableError, errors.GetTimeoutError):
            raise TimeoutError from None
        except errors.RayError as error:
            raise NodeLost(_why_lost(error, errors)) from None

    def kill(self) -> None:
        """End the agent."""
        with suppress(Exception):  # the node may be gone, or the connection
            ray().kill(self._actor)


def end(agents: list[Remote]) -> None:
    """Stop the processes of all agents, then the agents."""
    with suppress(Exception):  # a node may be gone, or its connection
        stopped = [each.ask("stop") for each in agents]
        ray().wait(stopped, num_returns=len(stopped), timeout=END_S)
    for each in agents:
        each.kill()


def ready(refs: list[Any], limit_s: float) -> list[Any]:
    """Return all references whose results have arrived, after waiting for the first."""
    ray().wait(refs, num_returns=1, timeout=limit_s)
    found: list[Any] = ray().wait(refs, num_returns=len(refs), timeout=0)[0]
    return found


def _why_lost(error: Exception, errors: Any) -> str:
    if isinstance(error, errors.ActorUnschedulableError):
        return "Ray cannot start a process there any more"
    return "it left the cluster" if _node_died(error) else "the process of its agent ended"


def _node_died(error: Exception) -> bool:
    text = str(error).lower()
    return "node" in text and ("died" in text or "dead" in text or "removed" in text or "terminated" in text)


def _first_line(error: BaseException) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return f"{type(error).__name__}: {lines[-1] if lines else 'no message'}"
