"""The judgement on synthetic dumps: which errors are allowed, and how large the allowances are."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
import synthetic
from synthetic import FLOAT32, NETWORK, dumps, error_of, judged, scales_of

from steelyard.certificates import judge
from steelyard.certificates.causes import CAUSES, UNDECLARED_LIKELIHOOD
from steelyard.certificates.method import (
    LIMIT,
    correction_roundings,
    longest_sum,
    method_for,
    small_batch,
)
from steelyard.certificates.scales import measure_changes
from steelyard.errors import UserError
from steelyard_worker.case import Optimizer
from steelyard_worker.network import Input, Parameter


def test_a_zero_gradient_parameter_is_compared_with_the_other_gradients_and_not_after_training() -> None:
    parameters = [replace(each, zero_gradient=each.name == "head.bias") for each in NETWORK.parameters]
    network = replace(NETWORK, parameters=tuple(parameters))
    runs = [run | {"grad/head.bias": np.full(2, 1e-15)} for run in dumps(network=network)]
    rounding = runs[0] | {"grad/head.bias": np.full(2, 1e-7), "after1/head.bias": np.full(2, 9.0)}
    assert judged(runs, rounding, network=network).passed
    assert not judged(runs, rounding).passed
    wrong = judged(runs, runs[0] | {"grad/head.bias": np.full(2, 0.1)}, network=network)
    assert wrong.first is not None
    assert wrong.first.key == "grad/head.bias"


def test_storing_a_state_in_float32_is_not_counted_and_a_lost_update_is() -> None:
    runs = dumps()
    stored = {k: a.astype(np.float32) if k.startswith("after") else a for k, a in runs[0].items()}
    found = judged(runs, stored)
    assert found.passed
    assert max(f.units for f in found.findings if f.stage.startswith("after ")) == 0
    still = runs[0] | {"after1/head.bias": runs[0]["after0/head.bias"]}
    assert judged(runs, still).first.key == "after1/head.bias"


def test_a_loss_whose_noise_cancelled_by_chance_gets_the_level_of_the_outputs() -> None:
    runs = dumps()
    quiet = [
        run | {f"loss{step}": runs[0][f"loss{step}"] for step in range(1, 6)} | {"loss": runs[0]["loss"]}
        for run in runs
    ]
    candidate = runs[0] | {"loss": runs[0]["loss"] * (1 + 2 * LIMIT * FLOAT32.unit_roundoff)}
    assert judged(quiet, candidate).passed


@pytest.mark.parametrize("key", ["loss", "loss5", "adversarial/loss1"])
def test_the_error_of_a_likelihood_below_one_nat_is_measured_in_nats(key: str) -> None:
    likelihood = replace(NETWORK, likelihood=True)
    runs = [run | {key: np.float64(6e-12)} for run in dumps()]
    zero = runs[0] | {key: np.float64(0)}
    assert judged(runs, zero, network=likelihood).passed
    wrong = judged(runs, runs[0] | {key: np.float64(1e-3)}, network=likelihood)
    assert wrong.first is not None
    assert wrong.first.key == key
    assert ": error 1.0e-03 nats, " in wrong.sentence
    other = judged(runs, zero)
    assert other.first is not None
    assert other.first.key == key
    assert ": relative error 1.0e+00, " in other.sentence
    assert other.sentence.endswith(UNDECLARED_LIKELIHOOD)


@pytest.mark.parametrize(("loss", "error"), [(6e-12, 1e-3), (5.0, 1e-3)])
def test_a_loss_that_would_be_wrong_as_a_likelihood_too_is_not_called_one(loss: float, error: float) -> None:
    runs = [run | {"loss5": np.float64(loss)} for run in dumps()]
    wrong = judged(runs, runs[0] | {"loss5": np.float64(loss + error)})
    assert wrong.first is not None
    assert wrong.first.key == "loss5"
    assert wrong.sentence.endswith(CAUSES["later loss"])


def test_the_error_of_a_likelihood_of_several_nats_is_relative() -> None:
    likelihood = replace(NETWORK, likelihood=True)
    runs = [run | {"loss": 10 * run["loss"]} for run in dumps()]
    assert scales_of(runs, network=likelihood)["loss"] == scales_of(runs)["loss"]
    assert scales_of(runs)["loss"].norm == pytest.approx(7)


def test_the_levels_of_the_adversarial_step_are_its_own() -> None:
    runs = dumps()
    key = "adversarial/after1/head.bias"
    loud = [run | {key: runs[0][key] + 1e3 * (run[key] - runs[0][key])} for run in runs]
    usual, louder = map(scales_of, (runs, loud))
    assert louder[key].amplification > 100 * usual[key].amplification
    assert all(louder[each] == scale for each, scale in usual.items() if not each.startswith("adversarial/"))
    quiet = [run | {"adversarial/loss1": runs[0]["adversarial/loss1"]} for run in runs]
    assert scales_of(quiet)["adversarial/loss1"].amplification > 2


def test_rounding_of_a_declared_float32_correction_is_not_counted() -> None:
    runs, generator = dumps(amplified=1.0), np.random.default_rng(0)
    rule = Optimizer("adam", 1e-3, correction="float32")
    moved = runs[0]["after1/head.bias"] - runs[0]["after0/head.bias"]
    candidate = runs[0] | {"after1/head.bias": runs[0]["after1/head.bias"] + synthetic.shift(moved, 4.8e-5, generator)}
    assert not judged(runs, candidate, rule=Optimizer("adam", 1e-3)).passed
    assert judged(runs, candidate, rule=rule).passed


def test_the_rounding_of_a_float32_correction_is_near_the_measured_one() -> None:
    rule = Optimizer("adam", 1e-3, correction="float32")
    assert correction_roundings(rule, 1) * 2.0**-24 == pytest.approx(3e-5, rel=0.05)  # measured: 2.3e-5
    assert correction_roundings(rule, 5) < correction_roundings(rule, 1)
    # 1 / (1 - 0.9) + 0.5 / (1 - 0.999) = 510; the second step: 1 / (1 - 0.81) + 0.5 / (1 - 0.998001).
    assert correction_roundings(rule, 1) == pytest.approx(510)
    assert correction_roundings(rule, 2) == pytest.approx((510 + 1 / 0.19 + 0.5 / 0.001999) / 2)
    assert correction_roundings(Optimizer("sgd", 0.1), 1) == 0


def test_the_error_of_long_sums_is_only_allowed_on_request() -> None:
    runs, generator = dumps(), np.random.default_rng(0)
    key = "after1/stem.bn.running_mean"
    scales = scales_of(runs)
    candidate = runs[0] | {key: runs[0][key] + error_of(key, runs, 3000, generator)}
    assert not judge.compare(NETWORK, runs[0], scales, candidate, FLOAT32).passed
    allowances = dict.fromkeys(scales, 5000 * 3.0 * FLOAT32.unit_roundoff)
    assert judge.compare(NETWORK, runs[0], scales, candidate, FLOAT32, allowances=allowances).passed


def test_sign_changes_of_updates_in_one_tensor_are_allowed_in_the_others_too() -> None:
    runs = dumps()
    scales = scales_of(runs)
    key, other = "after1/stem.conv.weight", "after1/head.weight"
    assert measure_changes(NETWORK, runs[0], scales, runs[1])[other] < 1e-4
    start = runs[0]["after0/stem.conv.weight"]
    updates = runs[0][key] - start
    updates.flat[:2] *= -1
    changes = measure_changes(NETWORK, runs[0], scales, runs[1] | {key: start + updates})
    # Two of 126 updates changed sign: of the 8 in a small tensor, at most 3 may, each as large as those two.
    size = float(np.mean(np.square(2 * updates.flat[:2])) / np.mean(np.square(updates)))
    assert changes[other] == pytest.approx((3 * size / 8) ** 0.5)
    assert changes["after2/head.weight"] < 1e-4
    assert changes["grad/head.weight"] < 1e-4


@pytest.mark.parametrize(("columns", "allowed"), [(533, 1), (1000, 0)])
def test_where_sign_changes_are_rare_a_small_tensor_is_allowed_one_or_none(columns: int, allowed: int) -> None:
    """One update of about half a million changed sign: a tensor of eight may have one in one of 67,000 tensors.

    One of a million: it has one in fewer than one of 100,000 tensors.
    """
    network = replace(
        NETWORK, parameters=(*NETWORK.parameters, Parameter("wide", (1000, columns), "dense", "uniform:1"))
    )
    generator = np.random.default_rng(0)
    starts = {f"after0/{each.name}": np.zeros(each.shape) for each in network.parameters}
    exact = starts | {f"after1/{each.name}": generator.uniform(1, 2, each.shape) for each in network.parameters}
    other = dict(exact)
    other["after1/wide"] = exact["after1/wide"].copy()
    other["after1/wide"][0, 0] *= -1
    scales = scales_of([exact, exact], network=network)
    changes = measure_changes(network, exact, scales, other)
    size = np.square(2 * exact["after1/wide"][0, 0]) / np.mean(np.square(exact["after1/wide"]))
    assert changes["after1/head.weight"] == pytest.approx((allowed * size / 8) ** 0.5)


def test_tensors_that_are_not_trained_do_not_dilute_the_sign_changes() -> None:
    """Twelve of the 126 trained elements changed sign, each by the same size."""
    starts = {f"after0/{each.name}": np.zeros(each.shape) for each in NETWORK.parameters}
    exact = starts | {f"after1/{each.name}": np.ones(each.shape) for each in NETWORK.parameters}
    other = dict(exact)
    other["after1/stem.conv.weight"] = exact["after1/stem.conv.weight"].copy()
    other["after1/stem.conv.weight"].flat[:12] = -1
    scales = scales_of([exact, exact])
    changes = measure_changes(NETWORK, exact, scales, other)
    most = next(count for count in range(99) if _poisson_tail(count, 12 / 126 * 8) <= 1e-5)
    assert changes["after1/head.weight"] == pytest.approx((most * 4 / 8) ** 0.5)
    assert most != next(count for count in range(99) if _poisson_tail(count, 12 / 144 * 8) <= 1e-5)
    assert changes["after1/frozen.weight"] == changes["after1/stem.bn.running_mean"] == 0


def test_an_element_without_an_update_changes_no_sign() -> None:
    """Of the 126 trained elements one changed sign, and fifty, such as rows of words that do not occur, stay as they are."""
    starts = {f"after0/{each.name}": np.zeros(each.shape) for each in NETWORK.parameters}
    exact = starts | {f"after1/{each.name}": np.ones(each.shape) for each in NETWORK.parameters}
    exact["after1/stem.conv.weight"].flat[:50] = 0
    other = dict(exact)
    other["after1/stem.conv.weight"] = exact["after1/stem.conv.weight"].copy()
    other["after1/stem.conv.weight"].flat[60] = -1
    scales = scales_of([exact, exact])
    changes = measure_changes(NETWORK, exact, scales, other)
    most = next(count for count in range(99) if _poisson_tail(count, 1 / 126 * 8) <= 1e-5)
    size = 4 / np.mean(np.square(exact["after1/stem.conv.weight"]))
    assert changes["after1/head.weight"] == pytest.approx((most * size / 8) ** 0.5)


def _poisson_tail(count: int, mean: float) -> float:
    """Return the probability of more than `count` events."""
    return 1 - sum(mean**n * math.exp(-mean) / math.factorial(n) for n in range(count + 1))


@pytest.mark.parametrize(
    ("image", "batch", "samples"), [(32, 64, 4), (64, 64, 4), (80, 64, 2), (224, 64, 2), (32, 3, 3), (224, 1, 1)]
)
def test_the_small_batch_has_four_samples_or_two_of_large_images(image: int, batch: int, samples: int) -> None:
    network = replace(NETWORK, inputs=(Input("image", (3, image, image), "float32"), NETWORK.inputs[1]))
    assert small_batch(network, batch) == samples


def test_the_longest_sum_runs_over_samples_and_positions() -> None:
    assert longest_sum(NETWORK, 64) == 64 * 8 * 8


@pytest.mark.parametrize(
    ("kind", "shape", "terms"),
    [
        ("dense", (3, 700), 700),
        ("dense", (900, 2), 900),
        ("conv", (4, 90, 3, 3), 810),
        ("bias", (800,), 800),
        ("embedding", (5000, 700), 64),
    ],
)
def test_a_sum_over_a_parameters_columns_or_rows_may_be_the_longest(
    kind: str, shape: tuple[int, ...], terms: int
) -> None:
    wide = replace(NETWORK, parameters=(*NETWORK.parameters, Parameter("wide", shape, kind, "uniform:1")))
    assert longest_sum(wide, 1) == terms


def test_the_resolution_is_the_error_that_each_stage_can_detect() -> None:
    found = judged(dumps(amplified=3.0), dumps()[0])
    assert found.resolution["gradients"] == pytest.approx(LIMIT * 3.0 * 2.0**-24, rel=0.2)
    assert list(found.resolution)[:5] == [
        "initial state",
        "after 1 step",
        "outputs",
        "inference before training",
        "loss",
    ]


def test_noise_is_at_least_that_of_float32_and_larger_for_coarser_precisions() -> None:
    assert method_for("float64").noise == method_for("float32").noise == 2.0**-20
    assert method_for("bfloat16").noise == 2.0**-4
    with pytest.raises(UserError, match="bfloat16"):
        method_for("bfloat1")
