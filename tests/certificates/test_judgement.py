"""The judgement on synthetic dumps: which deviations are found, and which tensor is named."""

from __future__ import annotations

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from synthetic import FLOAT32, NETWORK, Dump, compared, dumps, error_of, judged, scales_of

from steelyard.certificates import judge
from steelyard.certificates.causes import CAUSES, UNDECLARED_LIKELIHOOD
from steelyard.certificates.method import (
    AGREEMENT,
    LIMIT,
    method_for,
)
from steelyard.certificates.sentences import references_disagree
from steelyard.certificates.tensors import is_loss, places, state_step
from steelyard_worker.distances import start_of

KEYS = list(places(dumps()[0], NETWORK))
# Tensors that are not trained and stay as they are have no rounding error.
MOVING = [key for key in KEYS if not re.fullmatch(r".*after[0-9]/frozen.weight", key)]
seeds = st.integers(0, 2**32)


def test_the_reference_itself_passes() -> None:
    found = judged(dumps(), dumps()[0])
    assert found.passed
    assert found.worst is not None
    assert found.worst.units == 0
    assert found.sentence.startswith(f"Same computation: all {len(KEYS)} tensors match to rounding.")
    assert found.sentence.endswith("is at less than 1 % of the limit.")


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
    # The synthetic losses are 0.6 to 0.7: an error slightly beyond the limit would be within it in nats.
    assert not found.first.small_in_nats or (is_loss(key) and beyond < 2)
    other = f" {UNDECLARED_LIKELIHOOD}" if found.first.small_in_nats else ""
    assert found.sentence.endswith(f"{CAUSES[found.first.kind]}{other}")


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


def test_the_first_of_several_errors_is_named_in_causal_order_that_of_gradients_backwards() -> None:
    runs, generator = dumps(), np.random.default_rng(0)
    for keys, first in (
        (("grad/stem.conv.weight", "grad/head.bias"), "grad/head.bias"),
        (("after1/head.bias", "after1/stem.conv.weight"), "after1/stem.conv.weight"),
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
        (("evaluation/logits", "loss5"), "evaluation/logits"),
        (("evaluation/logits", "output/logits"), "output/logits"),
        # It names no layer, unlike what the adversarial batch shows.
        (
            ("evaluation/logits", "loss5", "adversarial/after1/stem.bn.running_var"),
            "adversarial/after1/stem.bn.running_var",
        ),
    ):
        errors = {key: runs[0][key] + error_of(key, runs, 1e4, generator) for key in keys}
        found = judged(runs, runs[0] | errors)
        assert found.first is not None
        assert found.first.key == first


@pytest.mark.parametrize(
    ("key", "label", "cause"),
    [
        ("after0/head.bias", '"head.bias" before the first step', "the weights are loaded differently"),
        ("after1/stem.bn.running_var", '"stem.bn.running_var" after 1 step', "the forward pass differs in this layer"),
        ("output/logits", 'the output "logits"', "the forward pass differs; compare every layer"),
        (
            "evaluation/logits",
            'the output "logits" in inference before training',
            "the epsilon of a batch norm or layer norm",
        ),
        ("loss", "the loss", "the loss function differs"),
        ("grad/head.weight", 'the gradient of "head.weight"', "the backward pass goes wrong here"),
        ("loss3", "the loss of step 3", "a trained tensor that network.py does not list"),
        ("after2/stem.bn.running_var", '"stem.bn.running_var" after 2 steps', "the optimizer differs"),
        ("after5/head.bias", '"head.bias" after 5 steps', "the optimizer differs"),
        ("inference/logits", 'the output "logits" in inference after training', "behaves differently in inference"),
        (
            "adversarial/after0/head.bias",
            '"head.bias" before the first step on the adversarial batch',
            "weights are loaded differently",
        ),
        ("adversarial/loss1", "the loss on the adversarial batch", "Usual batches match"),
        ("adversarial/after1/head.bias", '"head.bias" after 1 step on the adversarial batch', "Usual batches match"),
        (
            "isolated/after0/head.bias",
            '"head.bias" before the first step with weights that isolate a layer',
            "weights are loaded differently",
        ),
        ("isolated/loss1", "the loss with weights that isolate a layer", "computes in a lower precision"),
        (
            "isolated/after1/head.bias",
            '"head.bias" after 1 step with weights that isolate a layer',
            "computes in a lower precision",
        ),
    ],
)
def test_a_rejection_names_the_tensor_in_words_its_error_and_a_likely_cause(key: str, label: str, cause: str) -> None:
    runs, generator = dumps(), np.random.default_rng(0)
    found = judged(runs, runs[0] | {key: runs[0][key] + error_of(key, runs, 260 * LIMIT, generator)})
    assert found.sentence.startswith(f"Different computation, first seen in {label}: relative error ")
    assert ", 260 times the limit for rounding. " in found.sentence
    assert cause in found.sentence


def test_a_rejection_says_how_many_other_tensors_differ_too() -> None:
    runs = dumps()
    assert "other tensor" not in judged(runs, runs[0] | {"loss": np.float64(0.8)}).sentence
    two = runs[0] | {"loss": np.float64(0.8), "loss2": np.float64(0.9)}
    assert " 1 other tensor differs too. " in judged(runs, two).sentence
    assert " 2 other tensors differ too. " in judged(runs, two | {"loss5": np.float64(0.9)}).sentence


def test_a_missing_tensor_a_wrong_shape_and_an_unknown_tensor_are_named() -> None:
    runs = dumps()
    without = {key: array for key, array in runs[0].items() if key != "grad/head.bias"}
    assert judged(runs, without).sentence.startswith('The gradient of "head.bias" is missing.')
    transposed = runs[0] | {"after1/head.weight": runs[0]["after1/head.weight"].T}
    assert judged(runs, transposed).sentence == '"head.weight" after 1 step has shape (4, 2), expected (2, 4).'
    unknown = runs[0] | {"grad/frozen.weight": np.zeros((5, 2))}
    assert judged(runs, unknown).sentence.startswith('The implementation provides "grad/frozen.weight", which')
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


CHAOS = ("after2/", "loss3", "loss4", "loss5", "after5/", "inference/")


def chaotic(runs: list[Dump], growth: float) -> list[Dump]:
    """Return the runs with `growth` times the noise in everything from the second step on."""
    reference, *noisy = runs
    return [
        reference,
        *(
            {
                key: reference[key] + growth * (array - reference[key]) if key.startswith(CHAOS) else array
                for key, array in run.items()
            }
            for run in noisy
        ),
    ]


@pytest.mark.parametrize("key", ["loss3", "after5/head.weight", "inference/logits"])
def test_in_chaotic_training_references_need_not_agree_after_the_step_in_which_it_became_so(key: str) -> None:
    for share, passed in (
        (0.2, False),
        (0.3, True),
    ):  # of its change by which noise has changed a state after two steps
        runs = chaotic(dumps(amplified=3.0), share / (3.0 * FLOAT32.noise))
        change = runs[0][key] - runs[0][start_of(key)] if state_step(key) else runs[0][key]
        found = compared(runs, runs[0] | {key: runs[0][key] + 0.1 * change})
        assert found.passed is passed
        assert (found.agreement == 0.0) is passed


@pytest.mark.parametrize(
    ("key", "error"),
    [
        ("after2/head.weight", 0.1),
        ("loss2", 1e-6),
        ("grad/head.weight", 1e-6),
        ("adversarial/after1/head.weight", 1e-6),
    ],
)
def test_up_to_that_step_references_must_agree_in_chaotic_training_too(key: str, error: float) -> None:
    runs = chaotic(dumps(amplified=3.0), 0.3 / (3.0 * FLOAT32.noise))
    change = runs[0][key] - runs[0][start_of(key)] if state_step(key) else runs[0][key]
    assert not compared(runs, runs[0] | {key: runs[0][key] + error * change}).passed


def test_a_single_tensor_that_noise_changes_much_is_no_chaos() -> None:
    runs = dumps()
    key = "after2/head.bias"
    runs[1:] = [run | {key: runs[0][key] + 1e6 * (run[key] - runs[0][key])} for run in runs[1:]]
    assert not compared(runs, runs[0] | {"loss3": runs[0]["loss3"] * (1 + 1e-6)}).passed


def test_the_agreement_of_two_references_is_their_largest_difference() -> None:
    runs = dumps()
    found = compared(runs, runs[0] | {"loss": runs[0]["loss"] * (1 + AGREEMENT / 3)})
    assert found.passed
    assert found.agreement == pytest.approx(AGREEMENT / 3, rel=1e-3)


def test_float64_must_agree_except_where_training_amplifies_rounding() -> None:
    calm, chaotic = dumps(amplified=3.0), dumps(amplified=1e7)
    for runs, passed in ((calm, False), (chaotic, True)):
        scales = scales_of(runs)
        candidate = runs[0] | {"inference/logits": runs[0]["inference/logits"] * (1 + 50 * AGREEMENT)}
        assert judge.compare(NETWORK, runs[0], scales, candidate, method_for("float64")).passed == passed
