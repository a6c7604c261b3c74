"""The judgement on synthetic dumps: what is found, what is named, what is forgiven."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import synthetic
from hypothesis import given
from hypothesis import strategies as st
from synthetic import FLOAT32, NETWORK, dumps, error_of

from steelyard.certificates import judge
from steelyard.certificates.method import AGREEMENT, LIMIT, correction_roundings, longest_sum, method
from steelyard.certificates.tensors import places
from steelyard.errors import UserError
from steelyard_worker.network import Parameter
from steelyard_worker.protocol import Optimizer

KEYS = list(places(dumps()[0], NETWORK))
seeds = st.integers(0, 2**32)


def judged(runs: list[synthetic.Dump], candidate: synthetic.Dump, **options: object) -> judge.Judgement:
    return judge.judge(NETWORK, runs, options.get("second"), candidate, FLOAT32, options.get("rule"))


def test_the_reference_itself_passes() -> None:
    found = judged(dumps(), dumps()[0])
    assert found.passed
    assert found.worst is not None
    assert found.worst.units == 0
    assert "tensors agree with the float64 reference" in found.sentence


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
    assert found.sentence.lower().startswith(found.first.said.lower())


@given(key=st.sampled_from(KEYS), seed=seeds, within=st.floats(0, 0.95))
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
    ):
        errors = {key: runs[0][key] + error_of(key, runs, 1e4, generator) for key in keys}
        found = judged(runs, runs[0] | errors)
        assert found.first is not None
        assert found.first.key == first


def test_stages_and_tensors_are_said_in_words() -> None:
    runs, generator = dumps(), np.random.default_rng(0)
    for key, words in {
        "after1/stem.bn.running_var": "stem.bn.running_var after 1 step is off by",
        "after5/head.bias": "head.bias after 5 steps is off by",
        "grad/head.weight": "The gradient of head.weight is off by",
        "loss3": "The loss of step 3 is off by",
        "inference/logits": "The output logits in inference after training is off by",
    }.items():
        found = judged(runs, runs[0] | {key: runs[0][key] + error_of(key, runs, 52000, generator)})
        assert found.sentence.startswith(words)
        assert f"(52,000 times the rounding level; limit {LIMIT:.0f})" in found.sentence


def test_a_missing_tensor_a_wrong_shape_and_a_stranger_are_named() -> None:
    runs = dumps()
    without = {key: array for key, array in runs[0].items() if key != "grad/head.bias"}
    assert judged(runs, without).sentence == "The gradient of head.bias is missing."
    turned = runs[0] | {"after1/head.weight": runs[0]["after1/head.weight"].T}
    assert judged(runs, turned).sentence == "head.weight after 1 step has shape (4, 2), expected (2, 4)."
    stranger = runs[0] | {"grad/frozen.weight": np.zeros((5, 2))}
    assert judged(runs, stranger).sentence == "The dump holds grad/frozen.weight, which is not part of the network."
    for candidate in (without, turned, stranger):
        assert not judged(runs, candidate).passed


def test_a_loss_that_is_not_a_number_is_rejected() -> None:
    runs = dumps()
    found = judged(runs, runs[0] | {"loss2": np.float64("nan")})
    assert not found.passed
    assert found.first is not None
    assert found.first.key == "loss2"


def test_a_tensor_that_must_not_move_is_rejected_when_it_moves() -> None:
    runs = dumps()
    moved = runs[0]["after5/frozen.weight"] * 1.001
    assert judged(runs, runs[0] | {"after5/frozen.weight": moved}).first.key == "after5/frozen.weight"


def test_a_gradient_that_is_zero_in_the_reference_must_be_zero() -> None:
    runs = [run | {"grad/head.bias": np.zeros(2)} for run in dumps()]
    assert judged(runs, runs[0]).passed
    assert not judged(runs, runs[0] | {"grad/head.bias": np.full(2, 0.1)}).passed


def test_storing_a_state_in_float32_is_not_charged_and_a_lost_update_is() -> None:
    runs = dumps()
    stored = {k: a.astype(np.float32) if k.startswith("after") else a for k, a in runs[0].items()}
    found = judged(runs, stored)
    assert found.passed
    assert max(f.units for f in found.findings if f.stage.startswith("after ")) == 0
    still = runs[0] | {"after1/head.bias": runs[0]["after0/head.bias"]}
    assert judged(runs, still).first.key == "after1/head.bias"


def test_a_loss_whose_noise_cancelled_by_accident_keeps_the_level_of_the_outputs() -> None:
    runs = dumps()
    quiet = [
        run | {f"loss{step}": runs[0][f"loss{step}"] for step in range(1, 6)} | {"loss": runs[0]["loss"]}
        for run in runs
    ]
    candidate = runs[0] | {"loss": runs[0]["loss"] * (1 + 2 * LIMIT * FLOAT32.unit_roundoff)}
    assert judged(quiet, candidate).passed


def test_references_that_disagree_certify_nothing() -> None:
    runs = dumps()
    second = runs[0] | {"loss": runs[0]["loss"] * (1 + 3 * AGREEMENT)}
    found = judged(runs, runs[0], second=second)
    assert not found.passed
    assert found.sentence.startswith(
        "One reference and the other disagree in float64, so nothing can be certified: the loss is off"
    )


def test_references_may_differ_by_what_no_rounding_level_can_tell() -> None:
    for amplified, passed in ((1e3, False), (1e6, True)):
        runs = dumps(amplified=amplified)
        second = runs[0] | {"inference/logits": runs[0]["inference/logits"] * (1 + 1e-7)}
        assert judged(runs, runs[0], second=second).passed == passed


def test_references_that_agree_say_how_well() -> None:
    runs = dumps()
    second = runs[0] | {"loss": runs[0]["loss"] * (1 + AGREEMENT / 3)}
    found = judged(runs, runs[0], second=second)
    assert found.passed
    assert found.agreement == pytest.approx(AGREEMENT / 3, rel=1e-3)


def test_float64_is_held_to_the_agreement_and_to_more_where_training_amplifies() -> None:
    calm, chaotic = dumps(amplified=3.0), dumps(amplified=1e7)
    for runs, passed in ((calm, False), (chaotic, True)):
        scales = judge.measure_scales(NETWORK, runs, FLOAT32.noise)
        candidate = runs[0] | {"inference/logits": runs[0]["inference/logits"] * (1 + 50 * AGREEMENT)}
        assert judge.compare(NETWORK, runs[0], scales, candidate, method("float64")).passed == passed


def test_a_rule_that_declares_float32_corrections_is_granted_their_rounding() -> None:
    runs, generator = dumps(amplified=1.0), np.random.default_rng(0)
    rule = Optimizer("adam", 1e-3, correction="float32")
    moved = runs[0]["after1/head.bias"] - runs[0]["after0/head.bias"]
    candidate = runs[0] | {"after1/head.bias": runs[0]["after1/head.bias"] + synthetic.shift(moved, 4.8e-5, generator)}
    assert not judged(runs, candidate, rule=Optimizer("adam", 1e-3)).passed
    assert judged(runs, candidate, rule=rule).passed


def test_the_rounding_of_a_float32_correction_is_that_of_the_parity_table() -> None:
    rule = Optimizer("adam", 1e-3, correction="float32")
    assert correction_roundings(rule, 1) * 2.0**-24 == pytest.approx(3e-5, rel=0.05)  # P-41 measured 2.3e-5
    assert correction_roundings(rule, 5) < correction_roundings(rule, 1)
    assert correction_roundings(Optimizer("sgd", 0.1), 1) == 0


def test_what_long_sums_may_lose_is_allowed_where_it_is_asked_for() -> None:
    runs, generator = dumps(), np.random.default_rng(0)
    key = "after1/stem.bn.running_mean"
    scales = judge.measure_scales(NETWORK, runs, FLOAT32.noise)
    candidate = runs[0] | {key: runs[0][key] + error_of(key, runs, 3000, generator)}
    assert not judge.compare(NETWORK, runs[0], scales, candidate, FLOAT32).passed
    lost = dict.fromkeys(scales, 5000 * 3.0 * FLOAT32.unit_roundoff)
    assert judge.compare(NETWORK, runs[0], scales, candidate, FLOAT32, sums=lost).passed


def test_updates_that_turn_round_in_one_tensor_are_allowed_in_the_others_too() -> None:
    runs = dumps()
    scales = judge.measure_scales(NETWORK, runs, FLOAT32.noise)
    key, other = "after1/stem.conv.weight", "after1/head.weight"
    assert judge.measure_sums(NETWORK, runs[0], scales, runs[1])[other] < 1e-4
    start = runs[0]["after0/stem.conv.weight"]
    updates = runs[0][key] - start
    updates.flat[:2] *= -1
    granted = judge.measure_sums(NETWORK, runs[0], scales, runs[1] | {key: start + updates})
    # Two of 126 updates turned: of the 8 of a small tensor, 3 and no more may have, each as large as those two were.
    size = float(np.mean(np.square(2 * updates.flat[:2])) / np.mean(np.square(updates)))
    assert granted[other] == pytest.approx((3 * size / 8) ** 0.5)
    assert granted["after2/head.weight"] < 1e-4
    assert granted["grad/head.weight"] < 1e-4


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


def test_the_resolution_says_what_each_stage_could_have_seen() -> None:
    found = judged(dumps(amplified=3.0), dumps()[0])
    assert found.resolution["gradients"] == pytest.approx(LIMIT * 3.0 * 2.0**-24, rel=0.2)
    assert list(found.resolution)[:4] == ["initial state", "after 1 step", "outputs", "loss"]


def test_noise_is_large_against_float64_and_follows_coarser_precisions() -> None:
    assert method("float64").noise == method("float32").noise == 2.0**-20
    assert method("bfloat16").noise == 2.0**-4
    with pytest.raises(UserError, match="bfloat16"):
        method("bfloat1")
