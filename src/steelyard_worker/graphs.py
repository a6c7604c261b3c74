"""What the graph of a training step consists of, before and after it was optimised, in a process that measures nothing."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from steelyard_worker import batches
from steelyard_worker.case import INFERENCE
from steelyard_worker.protocol import Refusal

if TYPE_CHECKING:
    from steelyard_worker.frameworks.base import Adapter
    from steelyard_worker.network import Network
    from steelyard_worker.protocol import EventWriter, Job


@dataclass(frozen=True)
class Stage:
    """The graph at one stage. The first stage that an adapter returns is the graph as it was traced.

    name: such as "traced" or "optimised"; unit: what is counted, such as "nodes"; kinds: {kind of operation: how often}.
    passes: where a stage is the graph after a choice of passes other than that of the process, the value of the knob that makes
    it; empty: it is what this process runs.
    """

    name: str
    unit: str
    kinds: dict[str, int] = field(default_factory=dict)
    passes: str = ""


def cumulative(names: tuple[str, ...]) -> list[str]:
    """Return values of a knob: the first pass, the first two, and so on."""
    return list(itertools.accumulate(names, "{}+{}".format))


def leave_one_out(names: tuple[str, ...]) -> list[str]:
    """Return values of a knob: all of these passes but one."""
    return ["+".join(name for name in names if name != left_out) for left_out in names]


def count(job: Job, network: Network, adapter: Adapter, built: Any, events: EventWriter, recorder: Any) -> None:
    """Write an event for each stage of the graph of a training step on the synthetic batch."""
    del network, recorder
    if job.case.task == INFERENCE:
        raise Refusal("unsupported", "Only the graphs of training steps are counted.")
    if not hasattr(adapter, "graphs"):
        raise Refusal("unsupported", f"The adapter of {job.case.framework} has no graphs().")
    batch = built.put(batches.synthetic_batch(job.data))
    for stage in adapter.graphs(built, batch):
        events.write("graph", stage=stage.name, unit=stage.unit, passes=stage.passes, kinds=stage.kinds)
