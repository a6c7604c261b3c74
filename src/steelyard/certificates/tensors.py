"""The tensors of a certify task: their names, the stage each belongs to, and the order in which they are compared."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from steelyard_worker.network import STATISTICS, Network

Array = np.ndarray[Any, Any]
Tensors = Mapping[str, Array]

# Kinds of tensors (`Place.kind`) on which the first loss has no effect.
BEFORE_THE_LOSS = ("initial state", "first statistics", "output", "inference output", "evaluation")
# Kinds of tensors on which updates have an effect.
AFTER_UPDATES = ("later loss", "state", "inference")

_PATTERN = re.compile(
    r"(output|evaluation|inference|grad)/(?P<part>.+)|inference(?P<batch>\d+)/(?P<of_batch>.+)|loss(?P<loss>\d*)|after(?P<step>\d+)/(?P<state>.+)"
)
_LAST = 10**9
# Prefixes of the tensors of the steps with the network's adversarial batch: with its adversarial weights, and with those that
# isolate a layer (`network.Isolation`). Each has its first stage, its heading, and where its tensors are, in words.
ADVERSARIAL, ISOLATED = "adversarial/", "isolated/"
_EXTRA_STEPS = {
    ADVERSARIAL: (2 * _LAST, "adversarial batch", "on the adversarial batch"),
    ISOLATED: (3 * _LAST, "isolated layer", "with weights that isolate a layer"),
}


@dataclass(frozen=True, order=True)
class Place:
    """The position of a tensor in the comparison: the stage in causal order, then the rank within it.

    `pool` names the tensors that share a minimum rounding level (empty: none); `heading` is the stage in words, `label` the
    tensor in words. `kind` groups tensors whose deviations have the same likely causes (`causes.CAUSES`).
    """

    stage: int
    rank: int
    pool: str
    heading: str
    label: str
    kind: str


def places(keys: Iterable[str], network: Network) -> dict[str, Place]:
    """Return the places of all keys, in the order in which they are compared.

    The order is: initial state; batch statistics after step 1, because they show the first forward pass layer by layer; outputs,
    those in inference before training; loss; gradients from the last layer to the first, as the backward pass computes them; for
    every step its loss and then the state after it; inference; then the adversarial step in the same order, and the step that
    isolates a layer.
    An inference has its initial state, the outputs batch by batch, and those of the adversarial batch.
    Zero-gradient parameters are left out once they have been trained. KeyError names a key that no certify task writes, or a
    tensor that the network does not have.
    """
    ranks = {parameter.name: rank for rank, parameter in enumerate(network.parameters)}
    statistics = {parameter.name for parameter in network.parameters if parameter.kind in STATISTICS}
    # No output depends on these parameters, and optimizers that divide by the gradient's size move them at random.
    zero_gradient = {parameter.name for parameter in network.parameters if parameter.zero_gradient}
    compared = [key for key in keys if not (state_step(key) and key.rpartition("/")[2] in zero_gradient)]
    found = {key: _place(key, ranks, statistics) for key in compared}
    return dict(sorted(found.items(), key=lambda item: item[1]))


def state_step(key: str) -> int:
    """Return the number of optimizer steps before a state was saved; 0 for the initial state and for other tensors."""
    match = _PATTERN.fullmatch(_plain(key)[1])
    return int(match["step"] or 0) if match else 0


def is_loss(key: str) -> bool:
    """Return whether a tensor is a loss: of a step of training, or of an extra step."""
    match = _PATTERN.fullmatch(_plain(key)[1])
    return match is not None and match["loss"] is not None


def is_statistic(key: str) -> bool:
    """Return whether a tensor is a running statistic of a batch norm after some steps."""
    return bool(state_step(key)) and key.rpartition(".")[2] in STATISTICS


def trained_steps(key: str, reference: Tensors) -> int:
    """Return the number of updates that affect a tensor: all steps for inference, k for a state, k - 1 for the loss of step k."""
    match = _PATTERN.fullmatch(_plain(key)[1])
    if match is None:
        return 0
    if match[1] == "inference":
        return max(state_step(other) for other in reference)
    return state_step(key) or max(0, int(match["loss"] or 0) - 1)


def _plain(key: str) -> tuple[str, str]:
    """Return the prefix of an extra step, empty for other tensors, and the key without it."""
    prefix = next((each for each in _EXTRA_STEPS if key.startswith(each)), "")
    return prefix, key.removeprefix(prefix)


def _place(key: str, ranks: Mapping[str, int], statistics: set[str]) -> Place:
    prefix, plain = _plain(key)
    if prefix:
        return _in_an_extra_step(_place(plain, ranks, statistics), prefix)
    match = _PATTERN.fullmatch(key)
    if match is None:
        raise KeyError(key)
    if match["state"]:
        return _state(int(match["step"]), match["state"], ranks, statistics)
    if match["loss"]:
        step = int(match["loss"])
        return Place(10 * step, 0, "loss", f"loss of step {step}", f"the loss of step {step}", "later loss")
    if match["loss"] is not None:
        return Place(4, 0, "loss", "loss", "the loss", "loss")
    if match["batch"]:
        number, name = int(match["batch"]), match["of_batch"]
        return Place(2, number, "outputs", "outputs", f'the output "{name}" of batch {number}', "inference output")
    name = match["part"]
    if match[1] == "grad":
        return Place(5, len(ranks) - ranks[name], "gradients", "gradients", f'the gradient of "{name}"', "gradient")
    if match[1] == "output":
        return Place(2, 0, "outputs", "outputs", f'the output "{name}"', "output")
    if match[1] == "evaluation":
        label = f'the output "{name}" in inference before training'
        return Place(3, 0, "evaluation", "inference before training", label, "evaluation")
    return Place(_LAST, 0, "inference", "inference", f'the output "{name}" in inference after training', "inference")


def _in_an_extra_step(place: Place, prefix: str) -> Place:
    """Return the place of the same tensor in a step of its own: its loss and its updates, as gradients do, share a pool."""
    loaded, kind = place.kind == "initial state", prefix.removesuffix("/")
    pool = "" if loaded else f"{kind} " + (place.pool if place.pool.startswith("statistics") else "update")
    label = "the loss" if place.kind == "later loss" else place.label.removesuffix(" of batch 1")
    first, heading, where = _EXTRA_STEPS[prefix]
    return replace(
        place,
        stage=first + place.stage,
        pool=pool,
        heading=heading,
        label=f"{label} {where}",
        kind=place.kind if loaded else kind,
    )


def _state(step: int, name: str, ranks: Mapping[str, int], statistics: set[str]) -> Place:
    if not step:
        return Place(0, ranks[name], "", "initial state", f'"{name}" before the first step', "initial state")
    after = f"after {step} step{'s' if step > 1 else ''}"
    pool = f"statistics {after}" if name in statistics else ""
    if step == 1 and name in statistics:
        return Place(1, ranks[name], pool, after, f'"{name}" {after}', "first statistics")
    return Place(10 * step + 1, ranks[name], pool, after, f'"{name}" {after}', "state")


def expected_shapes(network: Network, reference: Tensors) -> dict[str, tuple[int, ...]]:
    """Return the shape of every tensor that a dump must contain: from the network, and for outputs from the reference.

    Where the reference contains a sample of a tensor, every dump must. The whole tensor's shape was checked when it was loaded.
    """
    shapes = {parameter.name: parameter.shape for parameter in network.parameters}
    starts = {name: np.shape(reference.get(f"after0/{name}", ())) for name in shapes}
    shapes |= {
        p.name: starts[p.name] for p in network.parameters if len(starts[p.name]) == 1 < p.count > starts[p.name][0]
    }
    states = tuple(f"{prefix}after" for prefix in ("", *_EXTRA_STEPS))
    steps = {key[: key.index("/", key.index("after"))] for key in reference if key.startswith(states)}
    others = {key: np.shape(array) for key, array in reference.items() if not key.startswith((*states, "grad/"))}
    trained = {f"grad/{p.name}": shapes[p.name] for p in network.parameters if p.trainable}
    saved = {f"{step}/{name}": shape for step in steps for name, shape in shapes.items()}
    # The step that isolates a layer only saves the tensors of that layer.
    saved = {key: shape for key, shape in saved.items() if key in reference or not key.startswith(ISOLATED)}
    return others | trained | saved
