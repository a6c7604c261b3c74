"""What each strategy does in a process: before MXNet is imported, when it joins, and which trainer it builds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from steelyard_worker.frameworks.mxnet import distributed
from steelyard_worker.protocol import Refusal
from steelyard_worker.strategy import ALONE

if TYPE_CHECKING:
    from steelyard_worker.case import Settings
    from steelyard_worker.communication import AllReduce
    from steelyard_worker.frameworks.base import Array, CountingTrainer
    from steelyard_worker.frameworks.mxnet.stores import Store
    from steelyard_worker.frameworks.mxnet.trainer import Trainer
    from steelyard_worker.ranks import Ranks

STORE_OF_DEVICES = "kvstore-"


class Alone:
    """One process without any exchange, whether others run beside it or not."""

    def __init__(self, ranks: Ranks) -> None:
        self.ranks = ranks

    def join(self) -> None:
        """Do nothing."""

    def applied(self, settings: Settings) -> dict[str, Any]:
        """Return the strategy, where the case has one."""
        del settings
        return {"strategy": self.ranks.strategy} if self.ranks.spread else {}

    def trainer(self, *arguments: Any) -> Trainer:
        """Return the trainer of a single process."""
        from steelyard_worker.frameworks.mxnet.trainer import Trainer

        return Trainer(*arguments)

    def counting_trainer(self, *arguments: Any) -> CountingTrainer:
        """Refuse: only ranks with an asynchronous store apply gradients that are stale."""
        raise Refusal("unsupported", "This strategy of MXNet has no asynchronous updates.")

    def all_reduce(self, array: Array) -> AllReduce:
        """Refuse: only ranks with a store exchange anything."""
        del array
        raise Refusal("unsupported", "This strategy of MXNet exchanges nothing between processes.")


class Served(Alone):
    """A rank that exchanges gradients through MXNet's parameter servers."""

    def __init__(self, ranks: Ranks) -> None:
        super().__init__(ranks)
        distributed.export(distributed.WORKER, ranks)
        self._store: Store | None = None

    def join(self) -> None:
        """Join the other ranks."""
        from steelyard_worker.frameworks.mxnet.stores import Store

        self._store = Store(distributed.join(self.ranks))

    def applied(self, settings: Settings) -> dict[str, Any]:
        """Return the strategy with the number of ranks that MXNet knows."""
        del settings
        assert self._store is not None
        return {"strategy": f"{self.ranks.name}:{self._store.ranks}"}

    def trainer(self, *arguments: Any) -> Trainer:
        """Return the trainer of a rank."""
        from steelyard_worker.frameworks.mxnet import ranked

        synchronous = self.ranks.spread is not None and self.ranks.spread.kind == "server"
        made = ranked.SynchronousTrainer if synchronous else ranked.AsynchronousTrainer
        return made(self._store, *arguments)

    def counting_trainer(self, *arguments: Any) -> CountingTrainer:
        """Return a trainer of a rank that counts updates."""
        from steelyard_worker.frameworks.mxnet import staleness

        return staleness.CountingTrainer(self._store, *arguments)

    def all_reduce(self, array: Array) -> AllReduce:
        """Return the exchange of the store."""
        from steelyard_worker.frameworks.mxnet.communication import StoreReduce

        assert self._store is not None
        return StoreReduce(array, self._store)


class Horovod(Alone):
    """A rank that averages gradients by Horovod."""

    def join(self) -> None:
        """Join the other ranks."""
        import horovod.mxnet as hvd

        hvd.init()
        self._size = hvd.size

    def applied(self, settings: Settings) -> dict[str, Any]:
        """Return the strategy with the number of ranks that Horovod knows."""
        del settings
        return {"strategy": f"{self.ranks.name}:{self._size()}"}

    def trainer(self, *arguments: Any) -> Trainer:
        """Return the trainer of a rank."""
        from steelyard_worker.frameworks.mxnet.horovod_trainer import HorovodTrainer

        return HorovodTrainer(*arguments)

    def all_reduce(self, array: Array) -> AllReduce:
        """Return the all-reduce of Horovod."""
        from steelyard_worker.frameworks.mxnet.horovod_trainer import HorovodReduce

        return HorovodReduce(array)


class Devices(Alone):
    """Several devices that this process drives."""

    @property
    def _store(self) -> str:
        """The type of MXNet's store: `local` in `kvstore-local`."""
        return self.ranks.name.removeprefix(STORE_OF_DEVICES)

    def applied(self, settings: Settings) -> dict[str, Any]:
        """Return the strategy with the number of devices on which MXNet puts a parameter."""
        from steelyard_worker.frameworks.mxnet import devices

        return {"strategy": STORE_OF_DEVICES + devices.applied(settings, self._store, self.ranks.parts)}

    def trainer(self, *arguments: Any) -> Trainer:
        """Return the trainer of all devices."""
        from steelyard_worker.frameworks.mxnet.devices import DeviceTrainer

        return DeviceTrainer(self._store, self.ranks.parts, *arguments)


class Split(Alone):
    """Parts of the network on several devices that this process drives."""

    def applied(self, settings: Settings) -> dict[str, Any]:
        """Return the strategy with the number of devices on which MXNet puts the weights of a network."""
        from steelyard_worker.frameworks.mxnet import split

        return {"strategy": f"{self.ranks.name}:{split.applied(settings, self.ranks.parts)}"}

    def trainer(self, *arguments: Any) -> Trainer:
        """Return the trainer of all parts."""
        from steelyard_worker.frameworks.mxnet.split import SplitTrainer

        return SplitTrainer(self.ranks.parts, *arguments)


class Pipelined(Split):
    """As split, with micro-batches."""

    def trainer(self, *arguments: Any) -> Trainer:
        """Return the trainer of all parts."""
        from steelyard_worker.frameworks.mxnet.pipelined import PipelinedTrainer

        return PipelinedTrainer(self.ranks.parts, *arguments)


def of(ranks: Ranks) -> Alone:
    """Return what the strategy of these ranks does; its settings are in the environment then."""
    kind = ranks.spread.kind if ranks.spread else ALONE
    if kind in distributed.STORES:
        return Served(ranks)
    return {"devices": Devices, "library": Horovod, "model": Split, "pipeline": Pipelined}.get(kind, Alone)(ranks)
