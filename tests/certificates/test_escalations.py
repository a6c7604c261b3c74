"""What runs where rounding alone does not decide, and what it leads to: float64, long sums, small batches, further draws."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest
import subjects
import synthetic
from planned import REFERENCES, changed, fill, fill_small, filled, inaccurate, noisy, undecided, write_error

from steelyard.certificates import record
from steelyard.certificates.conclusion import conclude, next_tasks
from steelyard.certificates.method import RANDOM_DRAWS
from steelyard.certificates.plan import CertificationPlan, plan_certification
from steelyard_worker import tensors
from steelyard_worker.case import Optimizer

if TYPE_CHECKING:
    from steelyard.certificates.plan import Candidate


def test_only_a_candidate_beyond_rounding_needs_further_tasks(plan: CertificationPlan) -> None:
    filled(plan, {})
    with_float64 = replace(plan, candidate=replace(plan.candidate, has_float64=True))
    assert next_tasks(with_float64) == next_tasks(plan) == ()
    runs = synthetic.dumps(network=plan.candidate.network)
    filled(plan, changed(runs, "grad/head.bias", 1e-3))
    assert next_tasks(with_float64) == (plan.long_sums_task, plan.float64_task, *plan.small_tasks[0])
    pair = next_tasks(plan)
    assert [task.job.case.settings.precision for task in pair] == ["float64", "float32"]
    assert pair[0].job.certify == pair[1].job.certify
    assert pair[0].job.certify.noise > 1000 * plan.candidate_task.job.certify.noise


@pytest.mark.parametrize(
    ("off", "passed", "ran"), [((1e-3, 0.0), True, 2), ((0.0, 1e-3), True, 1), ((1e-3, 1e-3), False, 3)]
)
def test_without_float64_a_deviation_must_show_on_every_random_draw_to_be_rejected(
    plan: CertificationPlan, off: tuple[float, float], passed: bool, ran: int
) -> None:
    runs = synthetic.dumps(network=plan.candidate.network)
    filled(plan, changed(runs, "grad/head.bias", 1e-3))
    for number, error in zip(RANDOM_DRAWS, (*off, 1e-3), strict=True):
        pair = next_tasks(plan)
        if pair:
            assert [task.job.certify.perturbations for task in pair] == [(number,), (number,)]
            drawn = {key: array * 1.001 for key, array in runs[0].items()}
            for task, run in zip(pair, (drawn, drawn | changed([drawn], "grad/head.bias", error)), strict=True):
                tensors.write(Path(task.job.folder) / f"perturbation{number}", run)
    assert next_tasks(plan) == ()
    assert sum(Path(reference.job.folder).is_dir() for reference, _ in plan.draw_tasks) == ran
    found = conclude(plan)
    assert found.passed is passed
    expected = (
        'another random draw of weights and batch. On the original one, the gradient of "head.bias" differed'
        if passed
        else 'first seen in the gradient of "head.bias": relative error 1.0e-03'
    )
    assert expected in found.sentence


def test_the_error_of_a_failed_random_draw_is_reported_and_the_certificate_is_not_saved(
    plan: CertificationPlan,
) -> None:
    runs = synthetic.dumps(network=plan.candidate.network)
    filled(plan, changed(runs, "grad/head.bias", 1e-3))
    write_error(Path(plan.draw_tasks[0][1].job.folder), "crash", "TypeError: the input type must be same.")
    assert next_tasks(plan) == ()
    found = conclude(plan)
    assert not found.passed
    assert found.sentence.endswith("only rounding failed: TypeError: the input type must be same.")
    assert record.find(plan.key) is None


@pytest.mark.parametrize(("off", "passed"), [(1e-4, True), (1e-3, False)])
def test_without_float64_only_the_rounding_error_of_a_likelihood_is_allowed(
    candidate: Candidate, tmp_path: Path, off: float, passed: bool
) -> None:
    over = replace(candidate, network=replace(candidate.network, recursion=900))
    plan = plan_certification(over, REFERENCES, tmp_path / "references")
    runs = filled(plan, changed(synthetic.dumps(network=over.network), "grad/head.bias", off))
    (task,) = next_tasks(plan)
    assert task.job.case.settings.precision == "float64"
    assert task.job.certify.noise == pytest.approx(0.7 * 30 / 3 * 2.0**-24)
    fill(task, [{key: array * (1 + 1e-4) for key, array in runs[0].items()}])
    pair = next_tasks(plan)
    assert [each.job.certify.perturbations for each in pair] == ([] if passed else [RANDOM_DRAWS[:1]] * 2)
    found = conclude(plan)
    assert found.passed is passed
    expected = (
        "no more than rounding of a log-likelihood of 0.7 nats over 900 steps may cause, which changes gradients by about 4.2e-07. MXNet 0 cannot"
        if passed
        else 'first seen in the gradient of "head.bias": relative error 1.0e-03'
    )
    assert expected in found.sentence
    assert (", as far as float32 can show: all 57 tensors match." in found.sentence) is passed
    assert found.float64_error is None


def test_a_framework_with_float64_runs_in_float64_whatever_its_loss(candidate: Candidate, tmp_path: Path) -> None:
    over = replace(candidate, has_float64=True, network=replace(candidate.network, recursion=900))
    plan = plan_certification(over, REFERENCES, tmp_path / "references")
    filled(plan, changed(synthetic.dumps(network=over.network), "grad/head.bias", 1e-4))
    assert plan.float64_task in next_tasks(plan)


def test_an_error_on_the_small_batch_is_not_excused_by_long_sums(plan: CertificationPlan) -> None:
    over = inaccurate(plan, 1e-12, 1e-3, small=1e-4)
    for number, _ in enumerate(RANDOM_DRAWS, 1):
        assert next_tasks(over) == plan.small_tasks[number]
        fill_small(plan, number, 1e-4)
    assert undecided(over) == ()
    found = conclude(over)
    assert not found.passed
    assert found.first == 'the output "logits"'
    assert found.sentence.startswith(
        'Same computation in float64, but not in float32, as a batch of a few repeated samples shows, first seen in the output "logits"'
    )
    assert found.sentence.endswith("or a kernel of the framework that is wrong in this one.")
    assert found.losses == ()


@pytest.mark.parametrize(("error", "passed"), [(1e-6, True), (1e-4, False)])
def test_outputs_in_inference_are_held_to_rounding_whatever_long_sums_explain(
    plan: CertificationPlan, error: float, passed: bool
) -> None:
    over = inaccurate(plan, 1e-12, 1e-3)
    runs = synthetic.dumps(network=plan.candidate.network)
    both = changed(runs, "output/logits", 1e-4) | changed(runs, "evaluation/logits", error)
    fill(plan.candidate_task, [runs[0] | both])
    found = conclude(over)
    assert found.passed is passed
    first = (
        'Different computation, first seen in the output "logits" in inference before training: relative error 1.0e-04'
    )
    assert found.sentence.startswith(first) is not passed


@pytest.mark.parametrize(("key", "passed"), [("grad/head.bias", True), ("output/logits", False)])
def test_on_the_small_batch_the_error_of_a_likelihood_is_allowed_only_from_the_loss_on(
    candidate: Candidate, tmp_path: Path, key: str, passed: bool
) -> None:
    over = replace(candidate, has_float64=True, network=replace(candidate.network, recursion=900))
    plan = inaccurate(plan_certification(over, REFERENCES, tmp_path / "references"), 1e-12, 1e-3)
    runs = synthetic.dumps(seed=1, network=over.network)
    fill(plan.small_tasks[0][1], [runs[0] | changed(runs, key, 1e-4)])
    fill(plan.small_likelihood_task, [{name: array * (1 + 2e-4) for name, array in runs[0].items()}])
    assert conclude(plan).passed is passed


@pytest.mark.parametrize(
    ("key", "passed"),
    [
        ("grad/head.bias", False),
        ("loss", False),
        ("adversarial/loss1", False),
        ("adversarial/after1/head.bias", False),
        ("isolated/loss1", False),
        ("isolated/after1/head.bias", False),
        ("after1/head.bias", True),
        ("loss2", True),
        ("inference/logits", True),
    ],
)
def test_on_the_small_batch_forward_pass_gradients_and_adversarial_step_are_judged_and_updates_are_not(
    plan: CertificationPlan, key: str, passed: bool
) -> None:
    over = inaccurate(plan, 1e-12, 1e-3)
    runs = synthetic.dumps(seed=1, network=plan.candidate.network)
    fill(plan.small_tasks[0][1], [runs[0] | changed(runs, key, 1e-2)])
    assert conclude(over).passed is passed


@pytest.mark.parametrize(
    ("batch", "amplified", "examined"), [(64, 100.0, True), (5, 100.0, True), (4, 100.0, False), (64, 10.0, False)]
)
def test_a_large_batch_whose_gradients_could_hide_a_lower_precision_is_followed_by_a_small_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, batch: int, amplified: float, examined: bool
) -> None:
    """Gradients that are off by 2^-12 pass where noise is amplified by 20 or more."""
    monkeypatch.setenv("STEELYARD_CACHE", str(tmp_path / "cache"))
    plan = noisy(subjects.candidate("mxnet", "lstm-imdb", "tiny", tmp_path, batch=batch), amplified, {})
    assert next_tasks(plan) == (plan.small_tasks[0] if examined else ())


@pytest.mark.parametrize("has_float64", [False, True])
@pytest.mark.parametrize(
    ("key", "cause"),
    [
        ("grad/head.bias", "a part of the network that computes in a lower precision"),
        ("adversarial/loss1", "a clip"),
        ("isolated/loss1", "computes in a lower precision"),
    ],
)
def test_a_candidate_within_the_rounding_of_a_large_batch_must_match_on_a_small_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, has_float64: bool, key: str, cause: str
) -> None:
    monkeypatch.setenv("STEELYARD_CACHE", str(tmp_path / "cache"))
    large = replace(subjects.candidate("mxnet", "lstm-imdb", "tiny", tmp_path, batch=64), has_float64=has_float64)
    runs = synthetic.dumps(network=large.network, amplified=100.0)
    plan = noisy(large, 100.0, changed(runs, key, 1e-4))
    for reference, own in plan.small_tasks:
        assert next_tasks(plan) == (reference, own)
        few = synthetic.dumps(seed=1, network=large.network)
        fill(reference, few[: len(reference.job.certify.perturbations)])
        fill(own, [few[0] | changed(few, key, 1e-3)])
    assert undecided(plan) == ()
    found = conclude(plan)
    assert not found.passed
    assert found.sentence.startswith(
        "Different computation, as a batch of a few repeated samples shows, where rounding hides less, first seen in "
    )
    assert cause in found.sentence
    assert found.losses == ()
    fill(plan.small_tasks[2][1], few[:1])
    again = conclude(replace(plan, key="another"))
    assert again.passed
    assert "On a batch of a few repeated samples, the largest deviation" in again.sentence
    assert again.losses


def test_a_likelihood_that_another_candidate_needed_does_not_concern_one_within_rounding(
    candidate: Candidate, tmp_path: Path
) -> None:
    over = replace(candidate, network=replace(candidate.network, recursion=900))
    plan = noisy(over, 1.0, {})
    write_error(Path(plan.likelihood_task.job.folder), "hung", "The worker sent no event.")
    assert next_tasks(plan) == ()
    assert conclude(plan).passed


def test_a_run_on_a_small_batch_that_failed_leaves_the_candidate_undecided(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STEELYARD_CACHE", str(tmp_path / "cache"))
    plan = noisy(subjects.candidate("mxnet", "lstm-imdb", "tiny", tmp_path, batch=64), 100.0, {})
    write_error(Path(plan.small_tasks[0][1].job.folder), "out-of-memory", "No room.")
    assert next_tasks(plan) == ()
    found = conclude(plan)
    assert not found.passed
    assert found.sentence.startswith("Not decided: ")
    assert found.sentence.endswith("No room.")
    assert record.find(plan.key) is None


def test_a_near_tie_on_the_small_batch_is_excused_by_another_draw(plan: CertificationPlan) -> None:
    over = inaccurate(plan, 1e-12, 1e-3, small=1e-4)
    fill_small(plan, 1, 0.0)
    assert next_tasks(over) == ()
    assert conclude(over).passed


def normed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> CertificationPlan:
    """Return the plan of a network with batch norm, whose candidate is within rounding, with coarse gradients."""
    monkeypatch.setenv("STEELYARD_CACHE", str(tmp_path / "cache"))
    found = subjects.candidate("mxnet", "resnet18", "tiny", tmp_path, batch=8)
    return noisy(replace(found, network=synthetic.NETWORK), 100.0, {})  # its dumps are a hundred times smaller


@pytest.mark.parametrize(
    ("key", "left", "passed"),
    [
        ("grad/head.weight", 0.0, True),  # a ReLU that flipped because of the statistics
        ("grad/head.weight", 1e-3, False),
        ("after1/stem.bn.running_mean", 0.0, False),  # the statistics themselves are those of the usual reference
    ],
)
def test_what_follows_from_batch_statistics_is_compared_with_a_reference_that_has_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, key: str, left: float, passed: bool
) -> None:
    plan = normed(tmp_path, monkeypatch)
    few = synthetic.dumps(seed=1, network=plan.candidate.network)
    own = few[0] | changed(few, key, 1e-2)
    for (reference, candidate), normalised in zip(plan.small_tasks, plan.normalised_tasks, strict=True):
        if not next_tasks(plan):
            break
        assert next_tasks(plan) == (reference, candidate)
        fill(reference, few[: len(reference.job.certify.perturbations)])
        fill(candidate, [own])
        assert undecided(plan) == (normalised,)
        number = candidate.job.certify.perturbations[0]
        assert normalised.job.certify.normalised == str(Path(candidate.job.folder) / f"perturbation{number}")
        assert normalised.job.certify.distinct == candidate.job.certify.distinct
        like_it = own if key.startswith("after1") else own | changed([own], key, left)
        fill(normalised, [like_it])
    assert undecided(plan) == ()
    assert conclude(plan).passed is passed


@pytest.mark.parametrize(
    ("key", "error", "passed"),
    [
        ("after1/stem.bn.running_mean", 6e-5, False),
        ("grad/stem.bn.beta", 1e-3, True),
        ("grad/stem.bn.beta", 1e-2, False),
        ("grad/stem.conv.weight", 1e-3, False),
        ("after0/stem.bn.beta", 1e-3, False),
    ],
)
def test_only_sums_over_the_batch_may_lose_more_than_the_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, key: str, error: float, passed: bool
) -> None:
    monkeypatch.setenv("STEELYARD_CACHE", str(tmp_path / "cache"))
    found = replace(subjects.candidate("mxnet", "resnet18", "tiny", tmp_path, batch=960), network=synthetic.NETWORK)
    plan = noisy(found, 100.0, {})
    few = synthetic.dumps(seed=1, amplified=1.0, network=plan.candidate.network)
    for (reference, candidate), normalised in zip(plan.small_tasks, plan.normalised_tasks, strict=True):
        fill(reference, few[: len(reference.job.certify.perturbations)])
        fill(candidate, [few[0] | changed(few, key, error)])
        fill(normalised, few[:1])
    assert conclude(plan).passed is passed


@pytest.mark.parametrize(
    ("key", "levels", "batch", "passed"),
    [
        ("after1/stem.bn.running_mean", 225, 960, True),  # 61,440 terms may lose 248 levels
        ("after1/stem.bn.running_var", 240, 960, True),
        ("after1/stem.bn.running_mean", 260, 960, False),
        ("after1/stem.bn.running_mean", 225, 512, False),  # 32,768 terms: 181, less than the usual limit
        ("after1/stem.bn.running_mean", 190, 512, True),
        ("output/logits", 225, 960, False),
        ("grad/stem.conv.weight", 225, 960, False),
        ("adversarial/after1/head.weight", 225, 960, False),
        ("isolated/after1/head.weight", 225, 960, False),
    ],
)
def test_a_batch_statistic_alone_may_exceed_the_limit_where_its_sum_is_long(
    candidate: Candidate, key: str, levels: float, batch: int, passed: bool
) -> None:
    """Images of 8 by 8 pixels have 64 terms a sample."""
    case = replace(candidate.job.case, sizes={"batch": batch}, optimizer=Optimizer("sgd", 0.1))
    plan = noisy(replace(candidate, network=synthetic.NETWORK, job=replace(candidate.job, case=case)), 100.0, {})
    few = synthetic.dumps(seed=1, amplified=1.0)
    wrong = few[0] | {key: few[0][key] + synthetic.error_of(key, few, levels, np.random.default_rng(0))}
    for (reference, own), normalised in zip(plan.small_tasks, plan.normalised_tasks, strict=True):
        fill(reference, few[: len(reference.job.certify.perturbations)])
        fill(own, [wrong])
        fill(normalised, few[:1])
    assert undecided(plan) == ()
    assert conclude(plan).passed is passed


def test_no_further_draw_of_the_small_batch_runs_where_float64_or_long_sums_have_decided(
    plan: CertificationPlan,
) -> None:
    assert undecided(inaccurate(plan, 1e-4, 1e-3, small=1e-4)) == ()
    assert undecided(inaccurate(plan, 1e-12, 1e-5, small=1e-4)) == ()


def test_a_candidate_with_inaccurate_sums_is_certified_by_its_float64_run(plan: CertificationPlan) -> None:
    found = conclude(inaccurate(plan, 1e-12, 1e-3))
    assert found.passed
    assert found.float64_error == pytest.approx(1e-12, rel=0.1)
    assert (
        ": all 57 tensors match, to 1.0e-12 when computed in float64. In float32 the largest deviation ("
        in found.sentence
    )
    assert (
        'deviation (the output "logits") is no more than sums of up to 160 terms may lose; errors of up to '
        in found.sentence
    )
    assert found.sentence.endswith(") is at less than 1 % of the limit. Not looked at: later steps.")
    assert found.worst == 'the output "logits"', "the tensor that the sentence names"


def test_a_candidate_whose_float64_run_differs_is_rejected_whatever_its_sums(plan: CertificationPlan) -> None:
    found = conclude(inaccurate(plan, 1e-4, 1e-3))
    assert not found.passed
    assert found.sentence.startswith(
        'Different computation even in float64, first seen in the output "logits": relative error 1.0e-04, '
    )


def test_a_matching_float64_run_allows_no_more_than_the_error_of_long_sums(plan: CertificationPlan) -> None:
    found = conclude(inaccurate(plan, 1e-12, 1e-5))
    assert not found.passed
    assert 'Same computation in float64, but not in float32, first seen in the output "logits"' in found.sentence
    assert found.sentence.endswith("or a kernel of the framework that is wrong in this one.")
    assert found.float64_error == pytest.approx(1e-12, rel=0.1)


def test_a_float64_run_that_lacks_a_tensor_is_rejected_with_its_name(plan: CertificationPlan) -> None:
    over = inaccurate(plan, 1e-12, 1e-3)
    runs = synthetic.dumps(network=plan.candidate.network)
    fill(plan.float64_task, [{key: array for key, array in runs[0].items() if key != "loss"}])
    found = conclude(over)
    assert not found.passed
    assert found.sentence.startswith("The loss is missing.")
