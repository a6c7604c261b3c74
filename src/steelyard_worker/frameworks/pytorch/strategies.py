"""The strategies of PyTorch: how a process joins the others, and which trainer it uses."""

from __future__ import annotations

import atexit
import importlib
import os
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import torch
from torch import distributed

from steelyard_worker.frameworks.pytorch.trainer import Trainer
from steelyard_worker.protocol import Refusal
from steelyard_worker.strategy import ALONE

if TYPE_CHECKING:
    from steelyard_worker.case import Settings
    from steelyard_worker.communication import AllReduce
    from steelyard_worker.frameworks.base import Array
    from steelyard_worker.ranks import Ranks

SHARDED = "fsdp"
# Strategy -> module and class of its trainer.
TRAINERS = {
    "ddp": ("replicated", "Replicated"),
    "local-sgd": ("local", "Local"),
    SHARDED: ("sharded", "Sharded"),
    "gpipe": ("staged", "Pipeline"),
    "split": ("staged", "Split"),
}
HOROVOD = "horovod"
# Ranks wait for each other while one of them compiles.
LONGEST_WAIT = timedelta(minutes=10)


def joined(settings: Settings, ranks: Ranks) -> type[Trainer]:
    """Join the process group that `torchrun` describes in the environment; return the class of the strategy's trainers.

    Ranks that train alone have no group.
    """
    if settings.device == "cuda":
        # torchrun counts the ranks of a host by itself; other ranks are all on one.
        place = int(os.environ.get("LOCAL_RANK", ranks.rank))
        if place >= torch.cuda.device_count():
            message = f"{ranks.strategy} needs a GPU for every rank, and PyTorch finds {torch.cuda.device_count()}."
            raise Refusal("unsupported", message)
        torch.cuda.set_device(place)
    if ranks.name == ALONE:
        return Trainer
    if ranks.name == HOROVOD:
        return _joined_by_horovod()
    if ranks.interface:  # otherwise both take that of the host's name
        os.environ["GLOO_SOCKET_IFNAME"] = os.environ["NCCL_SOCKET_IFNAME"] = ranks.interface
    distributed.init_process_group("nccl" if settings.device == "cuda" else "gloo", timeout=LONGEST_WAIT)
    atexit.register(distributed.destroy_process_group)
    module, name = TRAINERS[ranks.name]
    found: type[Trainer] = getattr(importlib.import_module(f"{__package__}.{module}"), name)
    return found


def _joined_by_horovod() -> type[Trainer]:
    import horovod.torch as hvd

    from steelyard_worker.frameworks.pytorch.horovod_trainer import HorovodTrainer

    hvd.init()
    return HorovodTrainer


def all_reduce(ranks: Ranks, settings: Settings, array: Array) -> AllReduce:
    """Return the all-reduce by which a strategy exchanges gradients. Refusal: it has none between processes."""
    if ranks.name == HOROVOD:
        from steelyard_worker.frameworks.pytorch.horovod_trainer import HorovodReduce

        return HorovodReduce(array)
    if not distributed.is_initialized():
        raise Refusal("unsupported", "This strategy of PyTorch has no process group of torch.distributed.")
    from steelyard_worker.frameworks.pytorch import communication

    reduce = communication.ShardReduce if ranks.name == SHARDED else communication.GroupReduce
    return reduce(array, settings.device)


def _count(ranks: Ranks) -> int:
    if ranks.name == HOROVOD:
        import horovod.torch as hvd

        return int(hvd.size())
    return ranks.parts if ranks.name == ALONE else distributed.get_world_size()


def read_back(ranks: Ranks) -> dict[str, Any]:
    """Return the strategy with the number of processes in the group of PyTorch or Horovod."""
    parts = _count(ranks)
    return {"strategy": f"{ranks.name}:{parts}"}
