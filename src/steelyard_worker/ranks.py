"""The processes of one trial: which of them this one is, and what they tell each other outside timed work.

The first rank decides what is done next and tells the others, so that all do the same number of steps. This channel carries
orders, losses and predictions between blocks; whatever is timed uses the framework's own communication.
"""

from __future__ import annotations

import operator
import os
import time
from dataclasses import dataclass, field, replace
from multiprocessing.connection import Client, Listener
from typing import TYPE_CHECKING, Any

import numpy as np

from steelyard_worker import launcher, traffic
from steelyard_worker.protocol import Refusal
from steelyard_worker.strategy import SINGLE, Spread, name_of, parts_of, without_hosts

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from multiprocessing.connection import Connection

    from steelyard_worker.batches import Batch, Source

    Array = np.ndarray[Any, Any]

# Set by the launcher: the rank of a process, or its role beside the ranks; ports that are free, the first for this channel; the
# address of each rank; the network interface that has it; the key that ranks must know.
RANK, ROLE, PORTS, ADDRESSES, INTERFACE, KEY = (
    "STEELYARD_RANK",
    "STEELYARD_ROLE",
    "STEELYARD_PORTS",
    "STEELYARD_ADDRESSES",
    "STEELYARD_INTERFACE",
    "STEELYARD_KEY",
)
LOOPBACK = "127.0.0.1"
# Ranks import their framework at the same time; the slowest may need this long.
LONGEST_START_S = 300.0
RETRY_S = 0.05
END = None


class Lost(Exception):
    """The connection to another rank has ended; its own record says why."""


@dataclass(eq=False)
class Ranks:
    """The ranks of a trial, as one of them sees them. `rank` is 0 in a trial of one process.

    strategy: as in the case, such as `ddp:2`. spread: what the framework declares of it; None: a single process.
    ports: of this machine, free when the trial was started; `ports[0]` belongs to this channel, the others to the framework.
    addresses: of the hosts of all ranks. interface: the network interface between the hosts; empty on one host.
    """

    strategy: str = SINGLE
    spread: Spread | None = None
    rank: int = 0
    ports: tuple[int, ...] = ()
    addresses: tuple[str, ...] = (LOOPBACK,)
    interface: str = ""
    key: bytes = b""
    _others: list[Connection] = field(default_factory=list)

    @property
    def name(self) -> str:
        """The name of the strategy, such as `ddp`."""
        return name_of(self.strategy)

    @property
    def host(self) -> str:
        """The address of the first rank."""
        return self.addresses[0]

    @property
    def address(self) -> str:
        """The address of this rank."""
        return self.addresses[min(self.rank, len(self.addresses) - 1)]

    @property
    def parts(self) -> int:
        """Ranks or devices over which the computation is spread."""
        return parts_of(self.strategy)

    @property
    def count(self) -> int:
        """Processes that compute; 1 where one process drives all devices."""
        return self.parts if self.spread and self.spread.several_processes else 1

    @property
    def place(self) -> int:
        """The number of this rank among those that share the cores of its machine."""
        return self.rank - launcher.ranks_of_host(self.count).start if self.count > 1 else 0

    @property
    def leads(self) -> bool:
        """Whether this is the first rank, whose folder is that of the trial."""
        return self.rank == 0

    @property
    def shares_batch(self) -> bool:
        """Whether this process gets a share of every batch."""
        return self.count > 1 and self.spread is not None and self.spread.shares == "batch"

    def share(self, batch: Batch) -> Batch:
        """Return this rank's share of a batch: consecutive samples, the first rank has the first."""
        if not self.shares_batch:
            return batch
        samples = len(next(iter(batch.values()))) // self.count
        return {name: array[self.rank * samples : (self.rank + 1) * samples] for name, array in batch.items()}

    def source(self, source: Source) -> Source:
        """Return the source of this rank's shares of all batches."""
        if not self.shares_batch:
            return source
        samples = source.order.shape[1] // self.count
        return replace(source, part=slice(self.rank * samples, (self.rank + 1) * samples))

    def sizes(self, sizes: dict[str, Any]) -> dict[str, Any]:
        """Return the sizes with the samples that this process gets of every batch."""
        return sizes | {"batch": int(sizes["batch"]) // self.count} if self.shares_batch else sizes

    def meet(self, software: dict[str, Any]) -> None:
        """Connect all ranks. Lost: one of them did not come; Refusal: it computes with other `software`."""
        if self.count == 1:
            return
        if not self.leads:
            first = self._first_rank()
            first.send((self.rank, software))
            self._others = [first]
            return
        with Listener((self.host, self.ports[0]), backlog=self.count, authkey=self.key) as listener:
            found = [listener.accept() for _ in range(self.count - 1)]
        told = sorted(((*each.recv(), each) for each in found), key=operator.itemgetter(0))
        self._others = [each for _, _, each in told]
        for rank, other, _ in told:
            for name in sorted(software.keys() | other.keys()):
                if software.get(name) != other.get(name):
                    message = (
                        f"Rank {rank} computes with {name} {other.get(name)}, and rank 0 with {software.get(name)}."
                    )
                    raise Refusal("ranks", message)

    def _first_rank(self) -> Connection:
        deadline = time.monotonic() + LONGEST_START_S
        while True:
            try:
                return Client((self.host, self.ports[0]), authkey=self.key)
            except (ConnectionError, EOFError):  # the first rank does not listen yet
                if time.monotonic() > deadline:
                    message = f"Rank 0 did not answer rank {self.rank} within {LONGEST_START_S:.0f} s."
                    raise Lost(message) from None
                time.sleep(RETRY_S)

    def barrier(self) -> None:
        """Wait until all ranks are here."""
        if not self._others:
            return
        if self.leads:
            self._receive()
            self._send(END)
        else:
            self._send(END)
            self._receive()

    def announce(self, order: Any) -> None:
        """Tell the others what is done next; they get it from `orders`."""
        if self.leads:
            self._send(order)

    def orders(self) -> Iterator[Any]:
        """Yield what the first rank announces, until it announces the end."""
        while (order := self._receive()[0]) is not END:
            yield order

    def end(self) -> None:
        """Tell the others that there is nothing left to do."""
        self.announce(END)

    def gathered(self, value: Any) -> list[Any]:
        """Return the values of all ranks, by rank, on the first; on the others, their own alone."""
        if not self._others:
            return [value]
        if self.leads:
            return [value, *self._receive()]
        self._send(value)
        return [value]

    def carried(self) -> traffic.Counters | None:
        """Return what the connections of this process have carried, without those of this channel; None of a single process."""
        return traffic.read([each.fileno() for each in self._others]) if self._others else None

    def joined_losses(self, losses: Array) -> Array:
        """Return the mean over all ranks that have losses, on the first rank; on the others, their own. float32 (steps,)."""
        found = [each for each in self.gathered(losses) if len(each)]
        if len(found) < 2:
            return found[0] if found else losses
        return np.asarray(np.mean(np.stack(found), axis=0, dtype=np.float64), np.float32)

    def joined_outputs(self, outputs: Mapping[str, Array]) -> dict[str, Array]:
        """Return the outputs for the whole batch on the first rank; on the others, their own."""
        return join_outputs(self.gathered(dict(outputs)), self.shares_batch)

    def joined_tensors(self, tensors: Mapping[str, Array]) -> dict[str, Array]:
        """Return the tensors of a certificate for the whole batch on the first rank; on the others, their own.

        Outputs and losses are joined. Every other tensor of several ranks must be the same, bit by bit; Refusal: one is not.
        """
        return join_tensors(self.gathered(dict(tensors)), self.shares_batch)

    def _send(self, value: Any) -> None:
        try:
            for other in self._others:
                other.send(value)
        except OSError:
            self._lost()

    def _receive(self) -> list[Any]:
        try:
            return [other.recv() for other in self._others]
        except (OSError, EOFError):
            self._lost()
            return []

    def _lost(self) -> None:
        other = "another rank" if self.leads else "rank 0"
        message = f"Rank {self.rank} lost its connection to {other}."
        raise Lost(message) from None


def join_outputs(found: list[dict[str, Array]], shares_batch: bool) -> dict[str, Array]:
    """Join the outputs of ranks: shares of a batch one after the other; otherwise each rank has some of the outputs, or all."""
    if not shares_batch:
        return {name: array for each in reversed(found) for name, array in each.items()}
    return {name: np.concatenate([each[name] for each in found]) for name in found[0]}


def join_tensors(found: list[dict[str, Array]], shares_batch: bool) -> dict[str, Array]:
    """Join the tensors that ranks have saved for a certificate, as `Ranks.joined_tensors` does."""
    if len(found) == 1:
        return found[0]
    joined: dict[str, Array] = {}
    for name in dict.fromkeys(name for each in found for name in each):
        arrays = {rank: each[name] for rank, each in enumerate(found) if name in each}
        if _is_loss(name):
            losses = [float(array) for array in arrays.values() if not np.isnan(array)]
            joined[name] = np.array(np.mean(losses) if losses else np.nan, np.float64)
        elif _is_output(name) and shares_batch:
            joined[name] = np.concatenate(list(arrays.values()))
        elif "inner/" in name and shares_batch:
            joined[name] = np.sort(np.concatenate(list(arrays.values())))
        else:
            joined[name] = _equal(name, arrays)
    return joined


def _is_loss(name: str) -> bool:
    return name.rpartition("/")[2].rstrip("0123456789") == "loss"


def _is_output(name: str) -> bool:
    return name.startswith(("output/", "evaluation/", "inference"))


def _equal(name: str, arrays: Mapping[int, Array]) -> Array:
    """Return the array that all of these ranks have; Refusal: they have different ones."""
    (first, expected), *others = arrays.items()
    for rank, array in others:
        if not np.array_equal(array, expected, equal_nan=True):
            largest = float(np.max(np.abs(array.astype(np.float64) - expected)))
            message = f"Rank {rank} has other values of {name} than rank {first}: they differ by up to {largest:.3g}."
            raise Refusal("ranks", message)
    return expected


def of_environment(strategy: str, spread: Spread | None) -> Ranks:
    """Return this process among its ranks, as the launcher has told it in environment variables."""
    if spread is None:
        return Ranks(strategy)
    ports = tuple(int(port) for port in os.environ.get(PORTS, "").split(",") if port)
    rank = 0
    if spread.several_processes:
        told = os.environ.get(spread.rank)
        if told is None:
            raise Refusal(
                "setting", f"The launcher of strategy {strategy} did not tell the rank of a process ({spread.rank})."
            )
        rank = int(told)
    return Ranks(
        without_hosts(strategy),
        spread,
        rank,
        ports,
        tuple(os.environ.get(ADDRESSES, LOOPBACK).split(",")),
        os.environ.get(INTERFACE, ""),
        os.environ.get(KEY, "").encode(),
    )
