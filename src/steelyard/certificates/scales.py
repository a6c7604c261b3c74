"""How the error of each tensor is measured, and which errors noise of a given size causes: from runs of the float64 reference."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from steelyard.certificates.method import CHAOTIC, SIGN_CHANGE_ODDS, SMALLEST_LIKELIHOOD, correction_roundings
from steelyard.certificates.tensors import (
    AFTER_UPDATES,
    Array,
    Place,
    Tensors,
    is_loss,
    places,
    state_step,
    trained_steps,
)
from steelyard_worker import distances
from steelyard_worker.case import Optimizer
from steelyard_worker.distances import change, l2_norm
from steelyard_worker.network import Network


@dataclass(frozen=True)
class Scale:
    """How the error of one tensor is measured: relative to `norm`. One rounding of every input causes u * `amplification`.

    `norm` is the reference's L2 norm. For a state it is the norm of the change since the start, of the whole tensor if it never
    changes, or 1 if that is zero. `unavoidable` is an absolute error, in units of u, that is not counted: two roundings of a
    state at every step, and the bias correction of an optimizer that is declared to compute it in float32.
    `in_nats`: the norm is one nat, because the tensor is a likelihood below that (`SMALLEST_LIKELIHOOD`).
    """

    norm: float
    amplification: float
    unavoidable: float = 0.0
    in_nats: bool = False


def measure_scales(
    network: Network,
    reference: Tensors,
    noisy: Sequence[Tensors],
    noise: float,
    rule: Optimizer | None = None,
) -> dict[str, Scale]:
    """Return the scale of every tensor, in the order of `places`.

    `reference`: in float64; `rule`: its update rule. `noisy`: how far its runs with relative noise of standard deviation `noise`
    are from it, a number for each tensor (`steelyard_worker.distances.of_run`).
    """
    ordered = places(reference, network)
    norms = _norms(network, ordered, reference)
    small = {
        key for key in ordered if network.likelihood and is_loss(key) and abs(reference[key]) < SMALLEST_LIKELIHOOD
    }
    norms |= dict.fromkeys(small, SMALLEST_LIKELIHOOD)
    measured = {key: max(1.0, *(float(each[key]) / norms[key] / noise for each in noisy)) for key in ordered}
    amplification = _raised(ordered, measured)
    return {
        key: Scale(norms[key], amplification[key], _unavoidable(key, reference, norms[key], rule), key in small)
        for key in ordered
    }


def measure_changes(
    network: Network, reference: Tensors, scales: Mapping[str, Scale], noisy: Tensors
) -> dict[str, float]:
    """Return the relative change of every tensor in one noisy run: the error that noise of this size explains."""
    apart = distances.of_run(noisy, reference)
    changes = _raised(places(reference, network), {key: apart[key] / scale.norm for key, scale in scales.items()})
    sign_changes = _sign_changes(network, reference, noisy)
    return {key: max(change, sign_changes.get(key, 0.0)) for key, change in changes.items()}


def after_chaos(network: Network, ordered: Mapping[str, Place], scales: Mapping[str, Scale], noise: float) -> set[str]:
    """Return the tensors of training after the first step in which it is chaotic (`CHAOTIC`): losses, states, inference.

    `noise`: of the runs that the scales were measured with. Steps with an adversarial batch start anew and never belong to them.
    """
    trained = {each.name for each in network.parameters if each.trainable}
    changes: dict[int, list[float]] = {}
    for key, place in ordered.items():
        if place.kind == "state" and key.rpartition("/")[2] in trained:
            changes.setdefault(place.stage, []).append(scales[key].amplification * noise)
    chaotic = [stage for stage, found in changes.items() if np.median(found) >= CHAOTIC]
    return {
        key for key, place in ordered.items() if chaotic and place.kind in AFTER_UPDATES and place.stage > min(chaotic)
    }


@dataclass(frozen=True)
class SignChanges:
    """How many of a tensor's `elements` moved the other way than the reference's, and their share of the squared error."""

    count: int
    elements: int
    share: float


def sign_changes(reference: Tensors, candidate: Tensors, key: str) -> SignChanges:
    """Return the sign changes in the update of one state, which differs between the two."""
    exact, other = change(reference, key), change(candidate, key)
    opposite, squares = _opposite(exact, other), np.square(other - exact)
    return SignChanges(int(opposite.sum()), opposite.size, float(squares[opposite].sum() / squares.sum()))


def _norms(network: Network, ordered: Mapping[str, Place], reference: Tensors) -> dict[str, float]:
    """Return the norms that errors are relative to.

    A zero-gradient parameter's gradient is zero except for rounding, so its error is relative to the size of the other gradients.
    """
    norms = {key: l2_norm(change(reference, key)) or l2_norm(reference[key]) or 1.0 for key in ordered}
    zero = {f"grad/{parameter.name}" for parameter in network.parameters if parameter.zero_gradient}
    usual = [norm for key, norm in norms.items() if key.startswith("grad/") and key not in zero]
    return norms | {key: float(np.median(usual)) for key in zero & norms.keys() if usual}


def _raised(ordered: Mapping[str, Place], measured: Mapping[str, float]) -> dict[str, float]:
    """Raise values that are small by chance.

    A tensor of a pool (gradients, outputs, statistics of one step) gets at least the median of the pool. A loss is a single
    number, in which noise can cancel: it gets at least the value of the outputs and of the losses before it.
    """
    pools: dict[str, list[float]] = {}
    for key, place in ordered.items():
        pools.setdefault(place.pool, []).append(measured[key])
    medians = {pool: float(np.median(values)) if pool else 0.0 for pool, values in pools.items()}
    raised = {key: max(measured[key], medians[place.pool]) for key, place in ordered.items()}
    running = max(pools.get("outputs", [0.0]))
    for key in [key for key, place in ordered.items() if place.pool == "loss"]:
        running = raised[key] = max(measured[key], running)
    return raised


def _sign_changes(network: Network, reference: Tensors, noisy: Tensors) -> dict[str, float]:
    """Return how far sign changes of single elements' updates may move the state of a trained tensor, relative to its update.

    An optimizer that divides a gradient by its own size turns gradients near zero, whose sign depends on noise, into full-size
    steps. In a small tensor few elements change sign, and mostly none in a single noisy run. Sign changes are therefore counted
    over all tensors of a step. Each tensor is allowed the number that a Poisson distribution of that rate exceeds in one of
    SIGN_CHANGE_ODDS tensors, each of the mean size of those observed.
    """
    found: dict[str, float] = {}
    trained = [each.name for each in network.parameters if each.trainable and not each.zero_gradient]
    for step in {state_step(key) for key in reference} - {0}:
        keys = [f"after{step}/{name}" for name in trained]
        updates = {key: (change(reference, key), change(noisy, key)) for key in keys}
        sizes = np.concatenate([_sign_change_sizes(exact, other) for exact, other in updates.values()])
        rate = sizes.size / sum(exact.size for exact, _ in updates.values())
        for key, (exact, _) in updates.items():
            most = _poisson_maximum(rate * exact.size)
            found[key] = math.sqrt(most * float(sizes.mean()) / exact.size) if sizes.size else 0.0
    return found


def _sign_change_sizes(exact: Array, other: Array) -> Array:
    """Return the squared differences of the elements whose sign changed, relative to the mean square of the update."""
    found: Array = np.square(other - exact)[_opposite(exact, other)] / np.mean(np.square(exact))
    return found


def _opposite(exact: Array, other: Array) -> Array:
    """Return for each element whether two updates have opposite signs."""
    found: Array = np.multiply(other, exact) < 0
    return found


def _poisson_maximum(mean: float) -> int:
    """Return the count that a Poisson distribution exceeds with probability 1 / SIGN_CHANGE_ODDS."""
    from scipy.special import pdtrik

    return math.ceil(max(0.0, float(pdtrik(1 - 1 / SIGN_CHANGE_ODDS, mean))))


def _unavoidable(key: str, reference: Tensors, norm: float, rule: Optimizer | None) -> float:
    """Return the error that is not counted, in units of u: of storing a state, and of a correction declared to be in float32."""
    stored = 2.0 * state_step(key) * l2_norm(reference[key]) if state_step(key) else 0.0
    updates = trained_steps(key, reference)
    return stored + (correction_roundings(rule, updates) * norm if rule and updates else 0.0)
