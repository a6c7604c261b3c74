"""A reference that normalises by another run's batch statistics computes what that run does, but for its other errors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from steelyard_worker import normalisation
from steelyard_worker.network import Network, Parameter, batch_norm

if TYPE_CHECKING:
    from collections.abc import Mapping

    Array = np.ndarray[Any, Any]

WIDTH, LAYERS, EPSILON, SHARE = 5, 3, 1e-5, 0.1
NETWORK = Network(
    tuple(
        parameter
        for layer in range(LAYERS)
        for parameter in (
            Parameter(f"{layer}.weight", (WIDTH, WIDTH), "dense", "uniform:1"),
            *batch_norm(f"{layer}.bn", WIDTH),
        )
    ),
    (),
    1,
)


def start() -> dict[str, Array]:
    generator = np.random.default_rng(0)
    values = {"gamma": 1.0, "beta": 0.1, "running_mean": 0.0, "running_var": 1.0}
    return {
        each.name: generator.standard_normal(each.shape)
        if each.kind == "dense"
        else np.full(each.shape, values[each.kind])
        for each in NETWORK.parameters
    }


def forward(weights: Mapping[str, Array], mean: float = 0.0, variance: float = 0.0) -> tuple[Array, dict[str, Array]]:
    """Return what leaves the last layer, and the running statistics; the batch's own are off by these relative errors."""
    x, moved = np.random.default_rng(1).standard_normal((4000, WIDTH)) + 1, {}
    for layer in range(LAYERS):
        x = x @ weights[f"{layer}.weight"]
        own = np.mean(x, 0) * (1 + mean), np.var(x, 0) * (1 + variance)
        x = (x - own[0]) / np.sqrt(own[1] + EPSILON) * weights[f"{layer}.bn.gamma"] + weights[f"{layer}.bn.beta"]
        x = np.maximum(x, 0)
        for name, new in zip(("running_mean", "running_var"), (own[0], own[1] * 4000 / 3999), strict=True):
            moved[f"{layer}.bn.{name}"] = (1 - SHARE) * weights[f"{layer}.bn.{name}"] + SHARE * new
    return x, moved


@pytest.mark.parametrize(("mean", "variance"), [(1e-3, 0.0), (0.0, 1e-3), (-1e-3, 2e-3)])
def test_a_run_normalises_as_another_one_whose_statistics_are_off(mean: float, variance: float) -> None:
    weights = start()
    exact, _ = forward(weights)
    off, moved = forward(weights, mean, variance)
    found = normalisation.like(NETWORK, weights, moved, lambda each: forward(each)[1])
    assert np.abs(off - exact).max() > 1e-4
    assert np.abs(forward(found)[0] - off).max() < 1e-6
    assert {name for name in weights if not np.array_equal(weights[name], found[name])} <= {
        f"{layer}.bn.{part}" for layer in range(LAYERS) for part in ("gamma", "beta")
    }


def test_an_error_of_anything_else_is_not_taken_over() -> None:
    """A wrong epsilon does not show in the statistics of the first layer, so no scale or shift of that layer may hide it."""
    weights = start()
    _, moved = forward(weights)
    found = normalisation.like(NETWORK, weights, moved, lambda each: forward(each)[1])
    for name, array in weights.items():
        np.testing.assert_array_equal(found[name], array)


def test_the_rounding_of_stored_statistics_changes_nothing() -> None:
    weights = start()
    _, moved = forward(weights)
    stored = {name: array.astype(np.float32) for name, array in moved.items()}
    found = normalisation.like(NETWORK, weights, stored, lambda each: forward(each)[1])
    for name, array in weights.items():
        np.testing.assert_array_equal(found[name], array)


def test_undefined_statistics_and_frozen_layers_change_nothing() -> None:
    weights = start()
    _, moved = forward(weights)
    undefined = {name: np.full_like(array, np.nan) for name, array in moved.items()}
    found = normalisation.like(NETWORK, weights, undefined, lambda each: forward(each)[1])
    np.testing.assert_array_equal(found["0.bn.gamma"], weights["0.bn.gamma"])
    still = {name: array for name, array in weights.items() if "running" in name}
    frozen = normalisation.like(NETWORK, weights, still, lambda each: each)
    np.testing.assert_array_equal(frozen["0.bn.beta"], weights["0.bn.beta"])


def test_a_network_without_batch_norm_keeps_its_weights_and_makes_no_step() -> None:
    network = Network((Parameter("head.weight", (2, 2), "dense", "uniform:1"),), (), 1)
    weights = {"head.weight": np.ones((2, 2))}

    def no_step(each: Mapping[str, Array]) -> Mapping[str, Array]:
        raise AssertionError(each)

    assert normalisation.like(network, weights, {}, no_step) == weights
