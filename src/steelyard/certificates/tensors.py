"""What the tensors of a certify task are called, which stage each belongs to, and in which order they are judged."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from steelyard_worker.network import Network

    Array = np.ndarray[Any, Any]
    Tensors = Mapping[str, Array]

STATISTICS = ("running_mean", "running_var")

_PATTERN = re.compile(r"(output|inference|grad)/(?P<part>.+)|loss(?P<loss>\d*)|after(?P<step>\d+)/(?P<state>.+)")


@dataclass(frozen=True, order=True)
class Place:
    """Where a tensor stands: the stage in causal order, then the rank in network order.

    `pool` names the tensors whose rounding levels support each other (empty: it stands alone); `heading` is the stage
    and `said` the tensor in words.
    """

    stage: int
    rank: int
    pool: str
    heading: str
    said: str


def places(keys: Iterable[str], network: Network) -> dict[str, Place]:
    """Return the places of all keys in the order in which they are judged.

    Initial state; batch statistics after step 1, because they show the first forward pass layer by layer; outputs, loss,
    gradients; then for every step its loss and the state after it; then inference. An idle tensor that has been trained is left
    out. KeyError names a key that no certify task
    writes, or a tensor that the network does not have.
    """
    ranks = {parameter.name: rank for rank, parameter in enumerate(network.parameters)}
    statistics = {parameter.name for parameter in network.parameters if parameter.kind in STATISTICS}
    # Nothing depends on an idle tensor, and rules that divide by the gradient's size move it at random (P-51).
    idle = {parameter.name for parameter in network.parameters if parameter.idle}
    judged = [key for key in keys if not (state_step(key) and key.partition("/")[2] in idle)]
    found = {key: _place(key, ranks, statistics) for key in judged}
    return dict(sorted(found.items(), key=lambda item: item[1]))


def state_step(key: str) -> int:
    """Return the number of steps before a state was taken; 0 for the initial state and for what is no state."""
    match = _PATTERN.fullmatch(key)
    return int(match["step"] or 0) if match else 0


def trained_steps(key: str, reference: Tensors) -> int:
    """Return how many updates a tensor has seen: all steps for inference, k for a state, k - 1 for the loss of step k."""
    match = _PATTERN.fullmatch(key)
    if match is None:
        return 0
    if match[1] == "inference":
        return max(state_step(other) for other in reference)
    return state_step(key) or max(0, int(match["loss"] or 0) - 1)


def _place(key: str, ranks: Mapping[str, int], statistics: set[str]) -> Place:
    match = _PATTERN.fullmatch(key)
    if match is None:
        raise KeyError(key)
    if match["state"]:
        return _state(int(match["step"]), match["state"], ranks, statistics)
    if match["loss"]:
        step = int(match["loss"])
        return Place(10 * step, 0, "loss", f"loss of step {step}", f"the loss of step {step}")
    if match["loss"] is not None:
        return Place(3, 0, "loss", "loss", "the loss")
    name = match["part"]
    if match[1] == "grad":
        return Place(4, ranks[name], "gradients", "gradients", f"the gradient of {name}")
    if match[1] == "output":
        return Place(2, 0, "outputs", "outputs", f"the output {name}")
    return Place(_LAST, 0, "inference", "inference", f"the output {name} in inference after training")


def _state(step: int, name: str, ranks: Mapping[str, int], statistics: set[str]) -> Place:
    if not step:
        return Place(0, ranks[name], "", "initial state", f"{name} before the first step")
    after = f"after {step} step{'s' if step > 1 else ''}"
    if name not in statistics:
        return Place(10 * step + 1, ranks[name], "", after, f"{name} {after}")
    return Place(1 if step == 1 else 10 * step + 1, ranks[name], f"statistics {after}", after, f"{name} {after}")


_LAST = 10**9


def expected_shapes(network: Network, reference: Tensors) -> dict[str, tuple[int, ...]]:
    """Return the shape of every tensor a dump must hold: the network's own, and the reference's for outputs.

    Where the reference keeps a sample of a tensor, so must every dump; whole tensors' shapes were checked when they were loaded.
    """
    shapes = {parameter.name: parameter.shape for parameter in network.parameters}
    starts = {name: np.shape(reference.get(f"after0/{name}", ())) for name in shapes}
    shapes |= {
        p.name: starts[p.name] for p in network.parameters if len(starts[p.name]) == 1 < p.count > starts[p.name][0]
    }
    steps = {key.partition("/")[0] for key in reference if key.startswith("after")}
    others = {key: np.shape(array) for key, array in reference.items() if not key.startswith(("after", "grad/"))}
    trained = {f"grad/{p.name}": shapes[p.name] for p in network.parameters if p.trainable}
    return others | trained | {f"{step}/{name}": shape for step in steps for name, shape in shapes.items()}
