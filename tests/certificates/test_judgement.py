"""The judgement on synthetic dumps: which deviations are found, which tensor is named, and which errors are allowed."""

from __future__ import annotations

import math
import re
from dataclasses import replace

import numpy as np
import pytest
import synthetic
from hypothesis import given
from hypothesis import strategies as st
from synthetic import FLOAT32, NETWORK, dumps, error_of

from steelyard.certificates import judge
from steelyard.certificates.judgement import Judgement
from steelyard.certificates.method import (
    AGREEMENT,
    LIMIT,
    correction_roundings,
    longest_sum,
    method_for,
    small_batch,
)
from steelyard.certificates.scales import measure_changes, measure_scales
from steelyard.certificates.sentences import CAUSES, references_disagree
from steelyard.certificates.tensors import places
from steelyard.errors import UserError
from steelyard_worker.case import Optimizer
from steelyard_worker.network import Input, Network, Parameter

KEYS = list(places(dumps()[0], NETWORK))
# Tensors that are not trained and stay as they are have no rounding error.
MOVING = [key for key in KEYS if not re.fullmatch(r".*after[0-9]/frozen.weight", key)]
seeds = st.integers(0, 2**32)


def judged(
    runs: list[synthetic.Dump], candidate: synthetic.Dump, rule: Optimizer | None = None, network: Network = NETWORK
) -> Judgement:
    scales = measure_scales(network, runs, FLOAT32.noise, rule)
    return judge.compare(network, runs[0], scales, candidate, FLOAT32)


def compared(runs: list[synthetic.Dump], second: synthetic.Dump) -> Judgement:
    scales = measure_scales(NETWORK, runs, FLOAT32.noise)
    return judge.compare_references(NETWORK, runs[0], scales, second)


def test_the_reference_itself_passes() -> None:
    found = judged(dumps(), dumps()[0])
    assert found.passed
    assert found.worst is not None
    assert found.worst.units == 0
    assert found.sentence.startswith(f"Same computation: all {len(KEYS)} tensors match the double-precision reference.")
    assert found.sentence.endswith("is normal rounding, at less than 1 % of the limit.")


@given(key=st.sampled_from(KEYS), seed=seeds, beyond=st.floats(1.05, 1e6))
def test_an_error_beyond_the_limit_is_found_in_any_tensor_and_named(key: str, seed: int, beyond: float) -> None:
    runs, generator = dumps(seed), np.random.default_rng(seed)
    candidate = dict(runs[0])
    candidate[key] = candidate[key] + error_of(key, runs, beyond * LIMIT, generator)
    found = judged(runs, candidate)
    assert not found.passed
    assert found.first is not None
    assert found.first.key == key
    assert found.first.units == pytest.approx(beyond * LIMIT, rel=1e-3)
    assert found.sentence.startswith(f"Different computation, first seen in {found.first.label}: relative error ")
    assert found.sentence.endswith(CAUSES[found.first.kind])


@given(key=st.sampled_from(MOVING), seed=seeds, within=st.floats(0, 0.95))
def test_an_error_within_the_limit_passes_in_any_tensor(key: str, seed: int, within: float) -> None:
    runs, generator = dumps(seed), np.random.default_rng(seed)
    candidate = dict(runs[0])
    candidate[key] = candidate[key] + error_of(key, runs, within * LIMIT, generator)
    assert judged(runs, candidate).passed


@given(seed=seeds, factor=st.sampled_from([2.0**-20, 0.5, 4.0, 2.0**20]))
def test_the_verdict_does_not_depend_on_the_scale_of_the_tensors(seed: int, factor: float) -> None:
    runs, generator = dumps(seed), np.random.default_rng(seed)
    candidate = {key: array + error_of(key, runs, 7.0, generator) for key, array in runs[0].items()}
    plain = judged(runs, candidate)
    scaled = judged(
        [{key: array * factor for key, array in run.items()} for run in runs],
        {key: array * factor for key, array in candidate.items()},
    )
    assert [f.units for f in scaled.findings] == pytest.approx([f.units for f in plain.findings], rel=1e-6)


def test_the_first_of_several_errors_is_named_in_causal_and_network_order() -> None:
    runs, generator = dumps(), np.random.default_rng(0)
    for keys, first in (
        (("grad/head.bias", "grad/stem.conv.weight"), "grad/stem.conv.weight"),
        (("grad/stem.conv.weight", "loss"), "loss"),
        (("loss", "output/logits"), "output/logits"),
        (("output/logits", "after1/stem.bn.running_var"), "after1/stem.bn.running_var"),
        (("after2/stem.conv.weight", "loss2", "after1/head.bias"), "after1/head.bias"),
        (("after2/stem.conv.weight", "loss2"), "loss2"),
        (("inference/logits", "after5/head.bias"), "after5/head.bias"),
        (("after0/head.bias", "after1/stem.bn.running_mean"), "after0/head.bias"),
        (("adversarial/loss1", "inference/logits"), "inference/logits"),
        (("adversarial/after1/stem.conv.weight", "adversarial/loss1"), "adversarial/loss1"),
        (("adversarial/loss1", "adversarial/after1/stem.bn.running_var"), "adversarial/after1/stem.bn.running_var"),
        (("isolated/after0/head.bias", "adversarial/after1/head.bias"), "adversarial/after1/head.bias"),
        (("isolated/after1/head.weight", "isolated/loss1"), "isolated/loss1"),
    ):
        errors = {key: runs[0][key] + error_of(key, runs, 1e4, generator) for key in keys}
        found = judged(runs, runs[0] | errors)
        assert found.first is not None
        assert found.first.key == first


@pytest.mark.parametrize(("key", "label", "cause"), [
    ("after0/head.bias", "head.bias before the first step", "the weights are loaded differently"),
    ("after1/stem.bn.running_var", "stem.bn.running_var after 1 step", "the forward pass differs in this layer"),
    ("output/logits", "the output logits", "the forward pass differs; compare every layer"),
    ("loss", "the loss", "the loss function differs"),
    ("grad/head.weight", "the gradient of head.weight", "a wrong backward pass"),
    ("loss3", "the loss of step 3", "a trained tensor that network.py does not list"),
    ("after2/stem.bn.running_var", "stem.bn.running_var after 2 steps", "the optimizer differs"),
    ("after5/head.bias", "head.bias after 5 steps", "the optimizer differs"),
    ("inference/logits", "the output logits in inference after training", "behaves differently in inference"),
    ("adversarial/after0/head.bias", "head.bias before the first step on the adversarial batch", "weights are loaded differently"),
    ("adversarial/loss1", "the loss on the adversarial batch", "Usual batches match"),
    ("adversarial/after1/head.bias", "head.bias after 1 step on the adversarial batch", "Usual batches match"),
    ("isolated/after0/head.bias", "head.bias before the first step with weights that isolate a layer", "weights are loaded differently"),
    ("isolated/loss1", "the loss with weights that isolate a layer", "computes in a lower precision"),
    ("isolated/after1/head.bias", "head.bias after 1 step with weights that isolate a layer", "computes in a lower precision"),
])  # fmt: skip
def test_a_rejection_names_the_tensor_in_words_its_error_and_a_likely_cause(key: str, label: str, cause: str) -> None:
    runs, generator = dumps(), np.random.default_rng(0)
    found = judged(runs, runs[0] | {key: runs[0][key] + error_of(key, runs, 260 * LIMIT, generator)})
    assert found.sentence.startswith(f"Different computation, first seen in {label}: relative error ")
    assert ", 260 times the limit for rounding. " in found.sentence
    assert cause in found.sentence


def test_a_rejection_says_how_many_later_tensors_differ_too() -> None:
    runs = dumps()
    assert "later" not in judged(runs, runs[0] | {"loss": np.float64(0.8)}).sentence
    two = runs[0] | {"loss": np.float64(0.8), "loss2": np.float64(0.9)}
    assert " 1 later tensor differs too. " in judged(runs, two).sentence
    assert " 2 later tensors differ too. " in judged(runs, two | {"loss5": np.float64(0.9)}).sentence


def test_a_missing_tensor_a_wrong_shape_and_an_unknown_tensor_are_named() -> None:
    runs = dumps()
    without = {key: array for key, array in runs[0].items() if key != "grad/head.bias"}
    assert judged(runs, without).sentence.startswith("The gradient of head.bias is missing.")
    transposed = runs[0] | {"after1/head.weight": runs[0]["after1/head.weight"].T}
    assert judged(runs, transposed).sentence == "head.weight after 1 step has shape (4, 2), expected (2, 4)."
    unknown = runs[0] | {"grad/frozen.weight": np.zeros((5, 2))}
    assert judged(runs, unknown).sentence.startswith("The implementation provides grad/frozen.weight, which")
    for candidate in (without, transposed, unknown):
        assert not judged(runs, candidate).passed


def test_a_loss_that_is_not_a_number_is_rejected() -> None:
    runs = dumps()
    found = judged(runs, runs[0] | {"loss2": np.float64("nan")})
    assert not found.passed
    assert found.first is not None
    assert found.first.key == "loss2"
    assert "the loss of step 2: it has infinite or undefined (NaN) values." in found.sentence


def test_a_frozen_tensor_that_changes_is_rejected() -> None:
    runs = dumps()
    changed = runs[0]["after5/frozen.weight"] * 1.001
    assert judged(runs, runs[0] | {"after5/frozen.weight": changed}).first.key == "after5/frozen.weight"


@pytest.mark.parametrize("key", ["after1/frozen.weight", "after5/frozen.weight", "adversarial/after1/frozen.weight"])
def test_a_frozen_tensor_that_changes_by_less_than_rounding_is_rejected_as_well(key: str) -> None:
    runs = dumps()
    changed = runs[0][key].copy()
    changed.flat[3] = np.nextafter(changed.flat[3], np.inf)
    found = judged(runs, runs[0] | {key: changed})
    assert not found.passed
    assert re.search(
        r"frozen\.weight.* is not what it was before the first step, although it is not trained", found.sentence
    )


def test_a_frozen_tensor_that_starts_with_a_rounding_may_stay_so() -> None:
    runs = dumps()
    states = [key for key in runs[0] if key.endswith("/frozen.weight")]
    assert judged(runs, runs[0] | {key: runs[0][key].astype(np.float32) for key in states}).passed


def test_a_gradient_that_is_zero_in_the_reference_must_be_zero() -> None:
    runs = [run | {"grad/head.bias": np.zeros(2)} for run in dumps()]
    assert judged(runs, runs[0]).passed
    assert not judged(runs, runs[0] | {"grad/head.bias": np.full(2, 0.1)}).passed


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


def test_the_levels_of_the_adversarial_step_are_its_own() -> None:
    runs = dumps()
    key = "adversarial/after1/head.bias"
    loud = [run | {key: runs[0][key] + 1e3 * (run[key] - runs[0][key])} for run in runs]
    usual, louder = (measure_scales(NETWORK, each, FLOAT32.noise) for each in (runs, loud))
    assert louder[key].amplification > 100 * usual[key].amplification
    assert all(louder[each] == scale for each, scale in usual.items() if not each.startswith("adversarial/"))
    quiet = [run | {"adversarial/loss1": runs[0]["adversarial/loss1"]} for run in runs]
    assert measure_scales(NETWORK, quiet, FLOAT32.noise)["adversarial/loss1"].amplification > 2


def test_references_that_disagree_are_named_with_the_first_difference() -> None:
    runs = dumps()
    found = compared(runs, runs[0] | {"loss": runs[0]["loss"] * (1 + 3 * AGREEMENT)})
    assert not found.passed
    assert found.sentence.startswith("The first difference is in the loss: relative error 3.0e-09, ")
    assert found.sentence.endswith(CAUSES["loss"])
    incomplete = compared(runs, {key: array for key, array in runs[0].items() if key != "loss"})
    assert incomplete.sentence.startswith("The loss is missing.")
    assert references_disagree(incomplete.sentence, ("JAX 1", "PyTorch 2")).startswith(
        "Nothing can be certified, because JAX 1 and PyTorch 2 disagree in float64, so one of them is wrong. The loss is missing."
    )


@pytest.mark.parametrize(("error", "single"), [(2.0**-29, False), (2.0**-25, True), (1e-3, False)])
def test_references_that_differ_by_float32_rounding_look_as_if_one_computes_in_float32(
    error: float, single: bool
) -> None:
    runs = dumps()
    found = compared(runs, runs[0] | {"output/logits": runs[0]["output/logits"] * (1 + error)})
    assert not found.passed
    assert ("it looks as if one of them computes a part in float32" in found.sentence) is single
    assert found.sentence.endswith(CAUSES["output"]) is not single


def test_references_may_differ_by_a_small_share_of_a_rounding_level() -> None:
    for amplified, passed in ((1e3, False), (1e6, True)):
        runs = dumps(amplified=amplified)
        second = runs[0] | {"inference/logits": runs[0]["inference/logits"] * (1 + 1e-7)}
        assert compared(runs, second).passed == passed


def test_the_agreement_of_two_references_is_their_largest_difference() -> None:
    runs = dumps()
    found = compared(runs, runs[0] | {"loss": runs[0]["loss"] * (1 + AGREEMENT / 3)})
    assert found.passed
    assert found.agreement == pytest.approx(AGREEMENT / 3, rel=1e-3)


def test_float64_must_agree_except_where_training_amplifies_rounding() -> None:
    calm, chaotic = dumps(amplified=3.0), dumps(amplified=1e7)
    for runs, passed in ((calm, False), (chaotic, True)):
        scales = measure_scales(NETWORK, runs, FLOAT32.noise)
        candidate = runs[0] | {"inference/logits": runs[0]["inference/logits"] * (1 + 50 * AGREEMENT)}
        assert judge.compare(NETWORK, runs[0], scales, candidate, method_for("float64")).passed == passed


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
    scales = measure_scales(NETWORK, runs, FLOAT32.noise)
    candidate = runs[0] | {key: runs[0][key] + error_of(key, runs, 3000, generator)}
    assert not judge.compare(NETWORK, runs[0], scales, candidate, FLOAT32).passed
    allowances = dict.fromkeys(scales, 5000 * 3.0 * FLOAT32.unit_roundoff)
    assert judge.compare(NETWORK, runs[0], scales, candidate, FLOAT32, allowances=allowances).passed


def test_sign_changes_of_updates_in_one_tensor_are_allowed_in_the_others_too() -> None:
    runs = dumps()
    scales = measure_scales(NETWORK, runs, FLOAT32.noise)
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
    scales = measure_scales(network, [exact, exact], FLOAT32.noise)
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
    scales = measure_scales(NETWORK, [exact, exact], FLOAT32.noise)
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
    scales = measure_scales(NETWORK, [exact, exact], FLOAT32.noise)
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


@pytest.mark.parametrize(("kind", "shape", "terms"), [
    ("dense", (3, 700), 700), ("dense", (900, 2), 900), ("conv", (4, 90, 3, 3), 810), ("bias", (800,), 800),
    ("embedding", (5000, 700), 64),
])  # fmt: skip
def test_a_sum_over_a_parameters_columns_or_rows_may_be_the_longest(
    kind: str, shape: tuple[int, ...], terms: int
) -> None:
    wide = replace(NETWORK, parameters=(*NETWORK.parameters, Parameter("wide", shape, kind, "uniform:1")))
    assert longest_sum(wide, 1) == terms


def test_the_resolution_is_the_error_that_each_stage_can_detect() -> None:
    found = judged(dumps(amplified=3.0), dumps()[0])
    assert found.resolution["gradients"] == pytest.approx(LIMIT * 3.0 * 2.0**-24, rel=0.2)
    assert list(found.resolution)[:4] == ["initial state", "after 1 step", "outputs", "loss"]


def test_noise_is_at_least_that_of_float32_and_larger_for_coarser_precisions() -> None:
    assert method_for("float64").noise == method_for("float32").noise == 2.0**-20
    assert method_for("bfloat16").noise == 2.0**-4
    with pytest.raises(UserError, match="bfloat16"):
        method_for("bfloat1")


def inference_dumps() -> list[synthetic.Dump]:
    """Return the reference of an inference of three batches, and two noisy runs."""
    generator = np.random.default_rng(5)
    keys = [
        "after0/head.weight",
        *(f"inference{number}/logits" for number in (1, 2, 10)),
        "adversarial/inference1/logits",
    ]
    exact = {key: generator.standard_normal((4, 3)) for key in keys}
    noisy = [{key: array * (1 + FLOAT32.noise * generator.standard_normal(array.shape)) for key, array in exact.items()}
             for _ in range(2)]  # fmt: skip
    return [exact, *noisy]


ONE_LAYER = Network((Parameter("head.weight", (4, 3), "dense", "normal:1"),), (Input("point", (3,), "float32"),), 12)


def test_the_outputs_of_an_inference_are_compared_in_the_order_of_the_batches_and_the_adversarial_one_last() -> None:
    labels = [place.label for place in places(inference_dumps()[0], ONE_LAYER).values()]
    assert labels == [
        "head.weight before the first step", "the output logits of batch 1", "the output logits of batch 2",
        "the output logits of batch 10", "the output logits on the adversarial batch",
    ]  # fmt: skip


@pytest.mark.parametrize(("key", "named"), [
    ("inference2/logits", "the output logits of batch 2"),
    ("adversarial/inference1/logits", "the output logits on the adversarial batch"),
])  # fmt: skip
def test_an_output_of_an_inference_beyond_its_limit_is_named_with_its_batch_and_a_cause(key: str, named: str) -> None:
    runs = inference_dumps()
    assert judged(runs, runs[0], network=ONE_LAYER).passed
    wrong = judged(runs, runs[0] | {key: runs[0][key] * (1 + 1e-3)}, network=ONE_LAYER)
    assert not wrong.passed
    assert wrong.sentence.startswith(f"Different computation, first seen in {named}:")
    kind = "adversarial" if key.startswith("adversarial") else "inference output"
    assert wrong.sentence.endswith(CAUSES[kind])


def test_a_batch_that_was_not_saved_is_missing() -> None:
    runs = inference_dumps()
    candidate = {key: array for key, array in runs[0].items() if key != "inference10/logits"}
    found = judged(runs, candidate, network=ONE_LAYER)
    assert found.sentence.startswith("The output logits of batch 10 is missing.")
