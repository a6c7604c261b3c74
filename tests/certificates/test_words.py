"""The words of certificates: on what one rests, what could have passed, and the cause that fits what differs."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import subjects
import synthetic
from planned import changed, filled, inaccurate

from steelyard.certificates import causes, looked_at, sentences
from steelyard.certificates.conclusion import conclude
from steelyard.certificates.judgement import Finding, Judgement
from steelyard_worker.case import INFERENCE, NO_OPTIMIZER, RateSchedule

if TYPE_CHECKING:
    from steelyard.certificates.plan import CertificationPlan

CHANGING = RateSchedule("cosine", "steps", length=100)


def judged(factors: dict[str, float]) -> Judgement:
    """Judge a copy of the reference in which tensors are this many times as large."""
    runs = synthetic.dumps()
    own = {key: np.asarray(factor * runs[0][key]) for key, factor in factors.items()}
    return synthetic.judged(runs, runs[0] | own)


def keys(start: str) -> list[str]:
    return [key for key in synthetic.dumps()[0] if key.startswith(start)]


def test_a_certificate_says_how_many_steps_of_what_were_compared_and_what_was_not(plan: CertificationPlan) -> None:
    filled(plan, {})
    found = conclude(plan)
    assert found.looked_at == (
        "the first 5 training steps (batch of 8, the run's own data)",
        "inference before and after them",
        "a step with adversarial weights",
    )
    assert found.not_looked_at == ("later steps",)
    assert found.sentence.startswith(
        "Same computation as the double-precision reference in the first 5 training steps (batch of 8, the run's own data), "
        "inference before and after them and a step with adversarial weights: all 57 tensors match to rounding. The largest deviation ("
    )
    assert found.sentence.endswith(" of the limit. Not looked at: later steps.")


def test_what_was_not_looked_at_follows_from_the_plan(plan: CertificationPlan) -> None:
    candidate = plan.candidate
    job = candidate.job
    bare = replace(job.data, prepared="", order="", adversarial="")
    rule = replace(job.case.optimizer, schedule=CHANGING)
    changing = replace(job, data=bare, case=replace(job.case, optimizer=rule))
    assert looked_at.parts(_planned(plan, changing)) == (
        "the first 5 training steps (batch of 8, synthetic data)",
        "inference before and after them",
    )
    assert looked_at.gaps(_planned(plan, changing)) == (
        "later steps and their learning rates",
        "real data",
        "extreme weights and inputs",
    )
    inference = replace(job, case=replace(job.case, task=INFERENCE, optimizer=NO_OPTIMIZER))
    assert looked_at.parts(_planned(plan, inference)) == (
        "the first 5 batches of the run's own data (batch of 8)",
        "a batch with adversarial weights",
    )
    assert looked_at.gaps(_planned(plan, inference)) == ("later batches",)
    one = replace(candidate, scope=replace(candidate.scope, steps=1, sample=1000))
    full = replace(plan, candidate=one)
    assert looked_at.parts(full)[0] == "the first training step (batch of 8, the run's own data)"
    assert looked_at.gaps(full) == ("later steps", "all but 1,000 elements of each larger tensor")


def _planned(plan: CertificationPlan, job: Any) -> CertificationPlan:
    return replace(plan, candidate=replace(plan.candidate, job=job))


def test_what_long_sums_excuse_is_told_with_what_could_have_passed(plan: CertificationPlan) -> None:
    found = conclude(inaccurate(plan, definition=0, sums=3e-2))
    assert found.passed
    assert (
        "is no more than sums of up to 160 terms may lose; errors of up to 3 % of an output and 3 % of a gradient would have passed"
        in found.sentence
    )
    assert "normal rounding" not in found.sentence


@pytest.mark.parametrize(
    ("factors", "words"),
    [
        (dict.fromkeys(keys("grad/"), 2.0), " All gradients are 2.00 times the reference's."),
        (dict.fromkeys(keys("grad/"), 0.0), " All gradients are zero."),
        (dict.fromkeys(keys("grad/"), -1.0), " All gradients are -1.00 times the reference's."),
        ({keys("grad/")[0]: 0.0}, " It is zero."),
        ({keys("grad/")[0]: 2.0}, " It is 2.00 times the reference's."),
        ({"loss": 16.0}, " It is 16.00 times the reference's."),
        ({"loss": 1.1}, ""),
        ({"output/logits": 1.001}, ""),
    ],
)
def test_an_error_that_a_factor_explains_is_told_as_that_factor_and_once(factors: dict[str, float], words: str) -> None:
    found = judged(factors)
    assert not found.passed
    limit = " times the limit for rounding."
    assert found.sentence.partition(limit)[2].startswith(words or (" ", " Likely", " The", " 1 later")[0])
    assert found.sentence.count("the reference's") + found.sentence.count("zero.") == bool(words)


def test_an_error_in_another_direction_is_told_without_a_factor() -> None:
    runs = synthetic.dumps()
    other = np.random.default_rng(1).standard_normal(runs[0]["output/logits"].shape)
    found = synthetic.judged(runs, runs[0] | {"output/logits": other})
    assert found.first is not None
    assert found.first.ratio is None
    assert "times the reference's" not in found.sentence


def test_a_weight_in_the_wrong_place_is_named_before_large_activations() -> None:
    cause = causes.CAUSES["adversarial"]
    assert cause.index("loaded into the wrong place") < cause.index("large activations")


def test_with_a_schedule_the_rates_are_the_likely_cause_of_other_updates(plan: CertificationPlan) -> None:
    runs = synthetic.dumps(network=plan.candidate.network)
    case = plan.candidate.job.case
    rule = replace(case.optimizer, schedule=CHANGING)
    scheduled = _planned(plan, replace(plan.candidate.job, case=replace(case, optimizer=rule)))
    filled(plan, changed(runs, "after2/head.weight", 1e-2))
    assert causes.CAUSES["state"] in conclude(plan).sentence
    assert causes.CHANGING_RATES in conclude(scheduled).sentence
    assert causes.CAUSES["state"] not in conclude(scheduled).sentence


def test_an_exported_network_that_differs_names_the_export(plan: CertificationPlan) -> None:
    runs = synthetic.dumps(network=plan.candidate.network)
    filled(plan, changed(runs, "output/logits", 1e-2))
    exported = replace(plan, candidate=replace(plan.candidate, exporter=subjects.installation("pytorch")))
    assert "exported by" not in conclude(plan).sentence
    assert "The network was exported by PyTorch 0, so the export may be the cause" in conclude(exported).sentence


@pytest.mark.parametrize(("error", "precision"), [(3e-3, True), (0.5, False)])
def test_an_error_far_above_that_of_bfloat16_is_not_called_a_lower_precision(error: float, precision: bool) -> None:
    first = Finding("output/logits", 'the output "logits"', "outputs", "output", error, 2.0**-24, 200 * 2.0**-24)
    own = sentences.different_in_own_precision([first], "float32")
    few = sentences.different_on_few_samples(Judgement(False, "", (first,)), "float32")
    only = sentences.different_on_few_samples_only(Judgement(False, "", (first,)))
    for sentence in (own, few):
        assert ("a part of the network that computes in a lower precision" in sentence) is precision
        assert ("A lower precision is not: " in sentence) is not precision
    assert ("in a lower precision" in only) is precision
    assert (causes.CAUSES["output"] in only) is not precision
    update = replace(first, kind="state")
    assert "A lower precision is not: " not in sentences.different_in_own_precision([update], "float32")


def test_a_third_reference_that_cannot_be_compared_by_numbers_is_told_without_one() -> None:
    sentence = sentences.third_reference("JAX 1", {"PyTorch 1": math.inf, "TensorFlow 1": 2.0})
    assert "inf " not in sentence
    assert "without bound from PyTorch 1 (other tensors, or infinite or undefined (NaN) values)" in sentence
    assert "by 2.0 times the limit from TensorFlow 1" in sentence
    assert sentence.endswith("So PyTorch 1 is probably wrong.")
    neither = sentences.third_reference("JAX 1", {"PyTorch 1": math.inf, "TensorFlow 1": math.inf})
    assert "probably wrong" not in neither
