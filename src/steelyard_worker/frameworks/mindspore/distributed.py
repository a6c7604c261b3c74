"""Several processes of MindSpore: the cluster that they join, and the training step that averages gradients over all ranks.

MindSpore calls this a dynamic cluster: the workers and one scheduler, through which they find each other, know their roles from
environment variables. `msrun` sets the same variables. It is not used here, because it runs one command for all, ends the other
ranks by force when one has failed, and then waits half a minute for its scheduler.
"""

from __future__ import annotations

import contextlib
import os
import socket
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mindspore import Parameter, Tensor, communication, nn

from steelyard_worker.frameworks.mindspore import cells, trainer
from steelyard_worker.strategy import ALONE

if TYPE_CHECKING:
    from collections.abc import Iterator

    from steelyard_worker.ranks import Ranks

SCHEDULER = "scheduler"
# One rank may compile for minutes longer than another. By default, MindSpore waits 30 s for the other ranks of an AllReduce.
LONGEST_WAIT_S = 900
# Between two messages to the scheduler a worker sleeps for 3 to 5 s by default. It learns of the others, and ends, only after
# such a sleep. These are whole seconds; with none, the worker sends messages without a pause.
BETWEEN_MESSAGES_S = 1
LOOK_S = 0.05


def shares_gradients(ranks: Ranks) -> bool:
    """Whether this process averages its gradients with those of others."""
    return ranks.spread is not None and ranks.name != ALONE


def join(ranks: Ranks) -> None:
    """Join the cluster as a worker and wait for all others."""
    os.environ.update(_variables(ranks), MS_ROLE="MS_WORKER", MS_NODE_ID=str(ranks.rank))
    _wait_for_scheduler(ranks)
    with _this_thread_first(ranks.rank):
        communication.init()


@contextlib.contextmanager
def _this_thread_first(rank: int) -> Iterator[None]:
    """Let this thread run on one core until it waits; threads that it starts do not interrupt it.

    MindSpore hands a new socket to a second thread, and only then notes where it leads. If the second thread reports that it is
    connected before that, the report is lost, and the connection is given up and made anew after half a second. A process that
    has one core lost many in a row, so that joining took 4 to 13 s beside other work, and once more than a minute.
    """
    if sys.platform != "linux":
        yield
        return
    usable, policy, priority = os.sched_getaffinity(0), os.sched_getscheduler(0), os.sched_getparam(0)
    # Threads of this policy, which those that are started inherit, do not interrupt another (sched(7)).
    _schedule_thread(0, {sorted(usable)[rank % len(usable)]}, os.SCHED_BATCH, os.sched_param(0))
    try:
        yield
    finally:
        for thread in Path("/proc/self/task").iterdir():
            _schedule_thread(int(thread.name), usable, policy, priority)


def _schedule_thread(thread: int, cores: set[int], policy: int, priority: os.sched_param) -> None:
    # A thread may have ended, and a container may forbid this. Without it, joining takes longer.
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.sched_setaffinity(thread, cores)
        os.sched_setscheduler(thread, policy, priority)


def _wait_for_scheduler(ranks: Ranks) -> None:
    """Wait until the scheduler listens. MindSpore's own attempts to reach it have pauses of many seconds between them."""
    deadline = time.monotonic() + LONGEST_WAIT_S
    while time.monotonic() < deadline:
        with contextlib.suppress(OSError):
            socket.create_connection((ranks.host, ranks.ports[1]), timeout=1).close()
            return
        time.sleep(LOOK_S)


def schedule(ranks: Ranks) -> None:
    """Be the scheduler of the cluster; returns when all workers have left it."""
    os.environ.update(_variables(ranks), MS_ROLE="MS_SCHED")
    communication.init()


def _variables(ranks: Ranks) -> dict[str, str]:
    limit, pause = str(LONGEST_WAIT_S), str(BETWEEN_MESSAGES_S)
    return {
        "MS_WORKER_NUM": str(ranks.count),
        "MS_SCHED_HOST": ranks.host,
        "MS_SCHED_PORT": str(ranks.ports[1]),
        "MS_TOPO_TIMEOUT": limit,
        "MS_NODE_TIMEOUT": limit,
        "MS_RECEIVE_MSG_TIMEOUT": limit,
        "MS_CPU_COMM_OP_TIMEOUT": limit,
        "MS_RETRY_INTERVAL_LOWER": pause,
        "MS_RETRY_INTERVAL_UPPER": pause,
    }


def applied(ranks: Ranks) -> dict[str, Any]:
    """Read the strategy back from the cluster; ranks that train alone have none, so the launcher's number is used."""
    if ranks.spread is None:
        return {}
    return {"strategy": f"{ranks.name}:{communication.get_group_size() if shares_gradients(ranks) else ranks.parts}"}


def averaging(parameters: tuple[Parameter, ...]) -> nn.Cell:
    """Return MindSpore's cell that averages gradients over all ranks."""
    return nn.DistributedGradReducer(parameters, mean=True, degree=communication.get_group_size())


class Step(cells.Step):
    """One optimizer step on a share of the batch, with gradients of the whole batch -> loss of the share."""

    def __init__(self, loss: cells.Loss, rule: nn.Cell, parameters: tuple[Parameter, ...], clip: float) -> None:
        super().__init__(loss, rule, parameters, clip)
        self.average = averaging(parameters)

    def construct(self, *batch: Tensor) -> Tensor:
        loss, gradients = self.differentiate(*batch)
        self.rule(self.clipped(self.average(gradients)))
        return loss


class ReferenceStep(Step):
    """The same with a reference rule, which takes two scalars of the step."""

    def construct(self, one: Tensor, two: Tensor, *batch: Tensor) -> Tensor:
        loss, gradients = self.differentiate(*batch)
        self.rule(self.clipped(self.average(gradients)), one, two)
        return loss


class Gradients(cells.Gradients):
    """Inputs and targets of a share -> ((loss, outputs) of the share, gradients of the whole batch)."""

    def __init__(self, loss: cells.LossAndOutputs, parameters: tuple[Parameter, ...]) -> None:
        super().__init__(loss, parameters)
        self.average = averaging(parameters)

    def construct(self, *batch: Tensor) -> Any:
        found, gradients = self.differentiate(*batch)
        return found, self.average(gradients)


class Trainer(trainer.Trainer):
    """A trainer of one rank, whose gradients are averaged over all ranks."""

    step_cell, reference_step_cell, gradients_cell = Step, ReferenceStep, Gradients
