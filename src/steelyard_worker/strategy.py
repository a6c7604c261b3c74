"""How a computation is spread over devices or processes: what a strategy declares, and how a case names it."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from steelyard_worker import strategy_kinds
from steelyard_worker.strategy_kinds import ALONE

if TYPE_CHECKING:
    from collections.abc import Mapping

    from steelyard_worker.strategy_kinds import StrategyKind

# One process without any exchange. Written `single:1`, its process may use only as many cores as it has threads.
SINGLE = "single"
PINNED = f"{SINGLE}:1"


@dataclass(frozen=True)
class Spread:
    """One strategy of a framework, as `[strategies.NAME]` of its `framework.toml` describes it.

    kind: one of `strategy_kinds.KINDS`. help: the framework's own interface that does it.
    launcher: empty: one process drives all devices. "ranks", or "ranks+ROLE+...": steelyard starts a process for each rank, and
    one for each role, such as a server. Otherwise the command line of the framework's own launcher, in which {python}, {bin},
    {ranks}, {port} and {folder} are replaced, and {hosts}, {host}, {per_host} and {address}: how many hosts there are, the number
    of this one, its ranks, and the address of the first. The command line of a rank follows it.
    across_hosts: what follows the command line of a launcher that starts the ranks of other hosts itself, by ssh, where there are
    several. {slots} and {interface} are replaced too: the names of the hosts, each with its ranks, and the network interface.
    rank: environment variable in which such a launcher tells a process its rank.
    shares: what a rank has of its own: "batch" (an equal share of every batch, and all weights) or "network" (a part of the
    network, and every batch). One process that drives all devices gets whole batches in any case.
    statistics: over which samples batch normalisation computes: "share" (of one rank or device) or "batch". loss: over which
    samples the loss is averaged before anything is exchanged, likewise.
    knobs: the values that knobs have with this strategy. only_default: knob -> why it must have its default here.
    unsupported: mode -> why the strategy cannot run in it.
    workloads: workload -> why the strategy cannot run it. variables: environment variables of its processes.
    environment: the version of the environment that it needs, such as `2.13.0+horovod`; empty: any that holds the framework.
    """

    kind: str
    help: str
    launcher: str = ""
    rank: str = "STEELYARD_RANK"
    shares: str = "batch"
    statistics: str = "share"
    loss: str = "share"
    knobs: dict[str, Any] = field(default_factory=dict)
    only_default: dict[str, str] = field(default_factory=dict)
    unsupported: dict[str, str] = field(default_factory=dict)
    workloads: dict[str, str] = field(default_factory=dict)
    variables: dict[str, str] = field(default_factory=dict)
    environment: str = ""
    across_hosts: str = ""

    @property
    def does(self) -> StrategyKind:
        """The properties of strategies of this kind."""
        return strategy_kinds.of(self.kind)

    @property
    def several_processes(self) -> bool:
        """Whether every rank is a process of its own."""
        return bool(self.launcher)

    @property
    def roles(self) -> tuple[str, ...]:
        """The processes that steelyard starts beside the ranks, such as `server`."""
        first, *roles = self.launcher.split("+")
        return tuple(roles) if first == OWN_LAUNCHER else ()


# The knob that says into how many micro-batches a pipeline divides a batch.
MICRO_BATCHES = "micro_batches"
RATE = re.compile(r"(\d+(?:\.\d+)?)(kbit|mbit|gbit)")
RATE_UNITS = {"kbit": 1e3, "mbit": 1e6, "gbit": 1e9}
NODES = re.compile(r"(\d+)nodes")

OWN_LAUNCHER = "ranks"
# Ranks that train alone multiply their learning rates by this. They are a yardstick of time, and a share alone could diverge at
# the rate of a whole batch; computing with values that are not finite takes another time. Compilers could leave out an update
# with a rate of zero. The weights move by less than their rounding.
ALONE_RATE = 2.0**-40
# Of every framework: its ranks compute, and exchange nothing.
SPREAD_ALONE = Spread(
    ALONE,
    "ranks that train alone, each on its share of the batch, at a rate so small that no weight moves",
    OWN_LAUNCHER,
)


def name_of(strategy: str) -> str:
    """Return the name in a case's strategy, such as `ddp` in `ddp:2`."""
    return strategy.partition(":")[0]


def parts_of(strategy: str) -> int:
    """Return the number of ranks or devices in a case's strategy: 2 in `ddp:2`, 1 in `single`."""
    return int(without_hosts(strategy).partition(":")[2] or 1)


def link_of(strategy: str) -> str:
    """Return the link between two hosts in a case's strategy, such as `1gbit` in `ddp:2@1gbit`; empty if it names none."""
    where = strategy.partition("@")[2]
    return "" if NODES.fullmatch(where) else where


def nodes_of(strategy: str) -> int:
    """Return how many nodes of a cluster share the ranks in a case's strategy: 2 in `ddp:4@2nodes`, 1 without nodes."""
    match = NODES.fullmatch(strategy.partition("@")[2])
    return int(match[1]) if match else 1


def divisor_of(strategy: str, knobs: Mapping[str, Any], kind: str) -> int:
    """Return the number that a batch must be a multiple of, with a strategy of this kind: its parts, and its micro-batches."""
    micro = knobs.get(MICRO_BATCHES, 1) if strategy_kinds.of(kind).in_micro_batches else 1
    return math.lcm(parts_of(strategy), micro)


def without_hosts(strategy: str) -> str:
    """Return a case's strategy as it is on one host, such as `ddp:2`."""
    return strategy.partition("@")[0]


def bits_per_second(link: str) -> float:
    """Return the bandwidth of a link such as `1gbit` or `100mbit+5ms`; 0 if the text is none."""
    match = RATE.fullmatch(link.partition("+")[0])
    return float(match[1]) * RATE_UNITS[match[2]] if match else 0.0
