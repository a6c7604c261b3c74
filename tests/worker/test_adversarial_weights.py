"""The weights of the adversarial steps are drawn, so that no implementation can tell them from usual ones by a factor of two."""

from __future__ import annotations

import math
from dataclasses import replace
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from steelyard.catalog import workloads
from steelyard_worker import adversarial_weights
from steelyard_worker.adversarial_weights import draw
from steelyard_worker.network import Isolation, Network, batch_norm

if TYPE_CHECKING:
    from collections.abc import Mapping

NORM = Network(tuple(batch_norm("bn", 3)), (), 1)


def ratios(drawn: Mapping[str, np.ndarray[Any, Any]], weights: Mapping[str, np.ndarray[Any, Any]]) -> dict[str, float]:
    """Return what every tensor was multiplied by; one number for all elements of it."""
    found = {}
    for name, array in weights.items():
        assert drawn[name].dtype == np.float32
        assert len(np.unique(drawn[name] / array)) == 1
        found[name] = float((drawn[name] / array).flat[0])
    return found


def ones(network: Network) -> dict[str, np.ndarray[Any, Any]]:
    return {each.name: np.ones(each.shape, np.float32) for each in network.parameters}


@pytest.mark.parametrize("name", sorted(workloads.find()))
def test_no_tensor_is_the_initial_one_or_a_power_of_two_times_it(name: str) -> None:
    known = workloads.find()[name]
    network = known.network(known.preset("tiny"))
    weights, isolation = ones(network), network.adversarial.isolation
    parts = [
        adversarial_weights.of_training(network, weights, 3),
        adversarial_weights.of_inference(network, weights, 3),
        adversarial_weights.of_evaluation(network, weights, 3),
    ]
    for part in parts:
        for tensor, ratio in ratios(part, weights).items():
            assert math.frexp(ratio)[0] != 0.5, tensor
    if isolation:
        isolated = adversarial_weights.isolated(isolation, weights, 3)
        multiplied = {each: array for each, array in weights.items() if not isolation.ramp(each)}
        assert all(math.frexp(ratio)[0] != 0.5 or not ratio for ratio in ratios(isolated, multiplied).values())


def test_every_tensor_has_a_draw_of_its_own_close_to_its_factor() -> None:
    network = workloads.find()["resnet18"].network(workloads.find()["resnet18"].preset("tiny"))
    found = ratios(adversarial_weights.of_training(network, ones(network), 0), ones(network))
    gammas = [ratio for name, ratio in found.items() if name.endswith(".gamma")]
    others = [ratio for name, ratio in found.items() if not name.endswith(".gamma")]
    assert all(7.5 < ratio < 8 for ratio in gammas)
    assert max(gammas) - min(gammas) > 0.3, "they are spread over the range"
    assert all(0.9375 < ratio < 1 for ratio in others)
    assert max(others) - min(others) > 0.04
    inference = ratios(adversarial_weights.of_inference(network, ones(network), 0), ones(network))
    small = [ratio for name, ratio in inference.items() if name.endswith((".gamma", ".running_var"))]
    others = [ratio for name, ratio in inference.items() if not name.endswith((".gamma", ".running_var"))]
    assert all(0.9375 < ratio < 1 for ratio in others)
    assert all(ratio < 0.01 for ratio in small)


def test_draws_depend_on_seed_and_name_and_are_the_same_in_every_version_of_numpy() -> None:
    assert draw(0, "head.weight") == 0.9470409154891968
    drawn = {draw(seed, name) for seed in range(50) for name in ("a", "b")}
    assert len(drawn) == 100
    assert all(np.float32(each) == each and 0.9375 < each < 1 for each in drawn)


def test_no_draw_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(adversarial_weights, "MOST", 2)
    assert {draw(seed, "a") for seed in range(50)} == {1 - 2.0**-23}


def test_layers_stay_isolated_and_running_variances_positive() -> None:
    isolation = Isolation(("bn.*",), factors={"*.gamma": 0.0}, ramps={"*.beta": 4.0})
    weights = ones(NORM)
    found = adversarial_weights.isolated(isolation, weights, 0)
    assert not found["bn.gamma"].any()
    np.testing.assert_array_equal(found["bn.beta"], adversarial_weights.ramp(weights["bn.beta"], 4.0))
    for part in (found, adversarial_weights.of_training(NORM, weights, 0)):
        assert (part["bn.running_var"] > 0.9).all()


@pytest.mark.parametrize("epsilon", [1e-5, 1e-3])
def test_with_small_variances_a_batch_norm_multiplies_as_before_and_its_epsilon_shows(epsilon: float) -> None:
    network = replace(NORM, norm_epsilon=epsilon)
    weights = ones(network) | {"bn.running_var": np.array([0.1, 1, 10], np.float32)}
    found = adversarial_weights.of_evaluation(network, weights, 0)

    def multiplier(of: Mapping[str, np.ndarray[Any, Any]], added: float) -> np.ndarray[Any, Any]:
        return np.asarray(of["bn.gamma"] / np.sqrt(of["bn.running_var"].astype(np.float64) + added))

    np.testing.assert_allclose(multiplier(found, epsilon), multiplier(weights, epsilon), rtol=0.07)  # draws are near 1
    assert (abs(multiplier(found, epsilon * 1.1) / multiplier(found, epsilon) - 1) > 0.01).all()
    assert (abs(multiplier(weights, epsilon * 1.1) / multiplier(weights, epsilon) - 1) < 0.001).all()


def test_variances_of_zero_stay_zero() -> None:
    weights = ones(NORM) | {"bn.running_var": np.zeros(3, np.float32)}
    found = adversarial_weights.of_evaluation(NORM, weights, 0)
    assert not found["bn.running_var"].any()
    assert np.isfinite(found["bn.gamma"]).all()


@pytest.mark.parametrize("name", sorted(workloads.find()))
def test_every_layer_norm_sees_small_variances_and_every_pattern_is_that_of_a_tensor(name: str) -> None:
    known = workloads.find()[name]
    network = known.network(known.preset("tiny"))
    names = {each.name for each in network.parameters}
    batch_norms = {each.name.rpartition(".")[0] for each in network.parameters if each.kind == "running_var"}
    scales = {each.name for each in network.parameters if each.kind == "gamma"}
    for each in scales:
        of_layer_norm = each.rpartition(".")[0] not in batch_norms
        assert (network.small_variance_factor(each) != 1) is of_layer_norm
    assert all(any(fnmatchcase(each, pattern) for each in names) for pattern in network.small_variances)
