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

    `pool` names the tensors whose rounding levels support each other; empty: each stands alone.
    """

    stage: int
    rank: int
    pool: str
    said: str

    @property
    def heading(self) -> str:
        """The stage in words."""
        return _heading(self.stage)


def places(keys: Iterable[str], network: Network) -> dict[str, Place]:
    """Return the places of all keys in the order in which they are judged.

    Outputs, loss, gradients; then for every step its loss and the state after it; then inference. KeyError names a
    key that no certify task writes or a tensor that the network does not have.
    """
    ranks = {parameter.name: rank for rank, parameter in enumerate(network.parameters)}
    statistics = {parameter.name for parameter in network.parameters if parameter.kind in STATISTICS}
    found = {key: _place(key, ranks, statistics) for key in keys}
    return dict(sorted(found.items(), key=lambda item: item[1]))


def state_name(key: str) -> str:
    """Return the tensor's canonical name if the key is a state after some step, else nothing."""
    match = _PATTERN.fullmatch(key)
    return (match["state"] or "") if match else ""


def _place(key: str, ranks: Mapping[str, int], statistics: set[str]) -> Place:
    match = _PATTERN.fullmatch(key)
    if match is None:
        raise KeyError(key)
    if match["state"]:
        return _state(int(match["step"]), match["state"], ranks, statistics)
    if match["loss"] is not None:
        step = int(match["loss"] or 0)
        return Place(10 * step if step else 1, -1, "loss", f"the loss of step {step}" if step else "the loss")
    if match[1] == "grad":
        return Place(2, ranks[match["part"]], "gradients", f"the gradient of {match['part']}")
    if match[1] == "output":
        return Place(0, 0, "outputs", f"the output {match['part']}")
    return Place(_INFERENCE, 0, "inference", f"the output {match['part']} in inference after training")


def _state(step: int, name: str, ranks: Mapping[str, int], statistics: set[str]) -> Place:
    said = f"{name} after {step} step{'s' if step > 1 else ''}"
    return Place(10 * step + 1, ranks[name], f"statistics {step}" if name in statistics else "", said)


_INFERENCE = 10**9


def _heading(stage: int) -> str:
    step = stage // 10
    if stage == _INFERENCE:
        return "inference"
    return ("outputs", "loss", "gradients")[stage] if not step else f"{'state after' if stage % 10 else 'loss of'} step {step}"


def expected_shapes(network: Network, reference: Tensors) -> dict[str, tuple[int, ...]]:
    """Return the shape of every tensor a dump must hold: the network's own, and the reference's for outputs."""
    shapes = {parameter.name: parameter.shape for parameter in network.parameters}
    trained = [parameter.name for parameter in network.parameters if parameter.trainable]
    steps = sorted({key.partition("/")[0] for key in reference if state_name(key)})
    wanted = {key: np.shape(array) for key, array in reference.items() if not state_name(key) and not key.startswith("grad/")}
    wanted |= {f"grad/{name}": shapes[name] for name in trained}
    return wanted | {f"{step}/{name}": shape for step in steps for name, shape in shapes.items()}
