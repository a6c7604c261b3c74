"""Updates of adaptive optimizers whose sign rounding decides: what explains them where a framework cannot compute in float64."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest
import synthetic
from planned import REFERENCES, changed, fill, fill_small, filled, undecided

from steelyard.certificates.conclusion import conclude, next_tasks
from steelyard.certificates.method import LIMIT, RANDOM_DRAWS, is_adaptive
from steelyard.certificates.plan import CertificationPlan, plan_certification
from steelyard.certificates.scales import SignChanges, sign_changes
from steelyard_worker import tensors
from steelyard_worker.case import NO_OPTIMIZER, Optimizer
from steelyard_worker.distances import change, start_of

if TYPE_CHECKING:
    from steelyard.certificates.plan import Candidate

KEY = "after1/head.weight"
ADAM = Optimizer("adam", 1e-3)


def turned(run: synthetic.Dump, count: int) -> synthetic.Dump:
    """Return the state in which the first elements have moved as far the other way."""
    update = change(run, KEY)
    update.flat[:count] *= -1
    return {KEY: run[start_of(KEY)] + update}


@pytest.fixture
def plan(candidate: Candidate, tmp_path: Path) -> CertificationPlan:
    return planned(candidate, tmp_path, ADAM)


def planned(candidate: Candidate, folder: Path, rule: Optimizer) -> CertificationPlan:
    job = replace(candidate.job, case=replace(candidate.job.case, optimizer=rule))
    return plan_certification(replace(candidate, job=job), REFERENCES, folder / "references")


def noise(plan: CertificationPlan, run: synthetic.Dump, count: int) -> None:
    """Fill the noisy run of the reference: `count` updates of one tensor change sign."""
    fill(plan.sign_changes_task, [run | turned(run, count)])


def other_draws(plan: CertificationPlan, errors: synthetic.Dump) -> None:
    runs = synthetic.dumps(network=plan.candidate.network)
    for number, pair in zip(RANDOM_DRAWS, plan.draw_tasks, strict=True):
        for task, run in zip(pair, (runs[0], runs[0] | errors), strict=True):
            tensors.write(Path(task.job.folder) / f"perturbation{number}", run)


def test_an_update_that_went_the_other_way_is_compared_with_those_of_noise_and_on_a_small_batch(
    plan: CertificationPlan,
) -> None:
    run = filled(plan, {})[0]
    fill(plan.candidate_task, [run | turned(run, 1)])
    assert next_tasks(plan) == (plan.sign_changes_task, *plan.small_tasks[0])
    job = plan.sign_changes_task.job
    assert job.case.settings.precision == "float64"
    assert job.certify == replace(plan.draw_tasks[0][0].job.certify, perturbations=(8,), noise=LIMIT * 2.0**-24)
    noise(plan, run, 1)
    fill_small(plan, 0, 0.0)
    assert next_tasks(plan) == ()
    found = conclude(plan)
    assert found.passed
    assert found.losses
    count = run[KEY].size
    assert (
        ", as far as float32 can show: all 57 tensors match. The largest "
        'deviation ("head.weight" after 1 step) follows from updates of gradients near zero, of which the optimizer makes full '
        f'steps, and whose sign rounding decides: in "head.weight" after 1 step, 1 of {count} elements moved the other way. '
        "MXNet 0 cannot compute this in float64, so a mistake of less than "
    ) in found.sentence
    assert (
        " % of an update would not be detected here; the optimizer is judged by its step on the adversarial batch. On"
        in found.sentence
    )
    assert found.sentence.endswith(
        " of the limit. A mistake of 1 % in a single tensor would be seen in all outputs, in all gradients and in 3 of 6 updates of "
        "the first step. Not looked at: later steps."
    )
    assert "On a batch of a few repeated samples, the largest deviation" in found.sentence


def test_more_updates_of_the_other_sign_than_noise_causes_are_rejected(plan: CertificationPlan) -> None:
    run = filled(plan, {})[0]
    wrong = turned(run, run[KEY].size)
    fill(plan.candidate_task, [run | wrong])
    noise(plan, run, 1)
    fill_small(plan, 0, 0.0)
    assert next_tasks(plan) == plan.draw_tasks[0]
    other_draws(plan, wrong)
    assert undecided(plan) == ()
    found = conclude(plan)
    assert not found.passed
    assert found.first == '"head.weight" after 1 step'


@pytest.mark.parametrize("key", ["grad/head.weight", "loss", "output/logits", "adversarial/after1/head.weight"])
def test_what_does_not_follow_from_updates_is_not_excused_by_their_signs(plan: CertificationPlan, key: str) -> None:
    run, *_ = runs = filled(plan, {})
    wrong = turned(run, 1) | changed(runs, key, 1e-3)
    fill(plan.candidate_task, [run | wrong])
    assert next_tasks(plan) == plan.draw_tasks[0]
    fill(plan.sign_changes_task, [run | turned(run, 1) | changed(runs, key, 1e-2)])
    fill_small(plan, 0, 0.0)
    assert next_tasks(plan) == plan.draw_tasks[0]
    other_draws(plan, wrong)
    assert undecided(plan) == ()
    assert not conclude(plan).passed


def test_a_near_tie_beside_more_sign_changes_than_noise_causes_is_excused_by_another_draw(
    plan: CertificationPlan,
) -> None:
    run = filled(plan, {})[0]
    fill(plan.candidate_task, [run | turned(run, run[KEY].size)])
    noise(plan, run, 1)
    fill_small(plan, 0, 0.0)
    other_draws(plan, {})
    assert next_tasks(plan) == ()
    found = conclude(plan)
    assert found.passed
    assert "another random draw of weights and batch" in found.sentence


@pytest.mark.parametrize(("factor", "unseen"), [(1.3, "of less than 30 % of an update"), (2.5, "in an update")])
def test_the_certificate_states_what_updates_do_not_show_and_that_gradients_show_as_much_as_before(
    plan: CertificationPlan, factor: float, unseen: str
) -> None:
    """With noise, everything but updates changes by 30 %, and what follows from the second update by 90 %."""
    runs = filled(plan, {})
    run = runs[0]
    exact = conclude(replace(plan, key="exact"))
    fill(plan.candidate_task, [run | turned(run, 1)])
    noisy = {key: 1.3 * array for key, array in run.items() if not key.startswith("after")}
    for step, size in ((1, factor), (2, 1.9), (5, 1.9)):
        for each in plan.candidate.network.parameters:
            start = run[f"after0/{each.name}"]
            noisy[f"after{step}/{each.name}"] = start + size * (run[f"after{step}/{each.name}"] - start)
    fill(plan.sign_changes_task, [run | noisy])
    fill_small(plan, 0, 0.0)
    found = conclude(plan)
    assert found.passed
    assert f"so a mistake {unseen} would not be detected here" in found.sentence
    assert found.resolution["gradients"] == exact.resolution["gradients"]
    assert found.resolution["after 2 steps"] > 1000 * exact.resolution["after 2 steps"]


def test_what_follows_from_the_first_update_may_differ_as_much_as_with_noise(plan: CertificationPlan) -> None:
    run, *_ = runs = filled(plan, {})
    keys = "after2/head.weight", "loss3", "inference/logits"
    later = {key: array for key in keys for key, array in changed(runs, key, 1e-3).items()}
    fill(plan.candidate_task, [run | turned(run, 1) | later])
    fill(plan.sign_changes_task, [run | turned(run, 1) | {key: run[key] * 1.01 for key in keys}])
    fill_small(plan, 0, 0.0)
    assert next_tasks(plan) == ()
    assert conclude(plan).passed


@pytest.mark.parametrize("rule", [Optimizer("sgd", 0.1, momentum=0.9), NO_OPTIMIZER])
def test_a_rule_that_does_not_divide_a_gradient_by_its_size_changes_no_sign(
    candidate: Candidate, tmp_path: Path, rule: Optimizer
) -> None:
    assert is_adaptive(ADAM)
    assert not is_adaptive(rule)
    plan = planned(candidate, tmp_path, rule)
    run = filled(plan, {})[0]
    fill(plan.candidate_task, [run | turned(run, 1)])
    assert next_tasks(plan) == plan.draw_tasks[0]
    assert (plan.sign_changes_task,) not in plan.further_tasks


def test_a_small_batch_that_differs_on_every_draw_rejects_what_sign_changes_explain(plan: CertificationPlan) -> None:
    run = filled(plan, {})[0]
    fill(plan.candidate_task, [run | turned(run, 1)])
    noise(plan, run, 1)
    few = synthetic.dumps(seed=1, network=plan.candidate.network)
    for reference, own in plan.small_tasks:
        assert next_tasks(plan) == (reference, own)
        fill(reference, few[: len(reference.job.certify.perturbations)])
        fill(own, [few[0] | changed(few, "output/logits", 1e-4)])
    assert undecided(plan) == ()
    folders = [Path(task.job.folder) for task in next_tasks(plan)]
    assert [folder.parent for folder in folders] == [Path(task.job.folder) for task in plan.small_tasks[0]]
    found = conclude(plan)
    assert not found.passed
    assert found.sentence.startswith(
        'Different computation, as a batch of a few repeated samples shows, where rounding hides less, first seen in the output "logits"'
    )
    fill(plan.small_tasks[2][1], few[:1])
    assert conclude(replace(plan, key="another")).passed


def test_the_certificate_of_a_float64_run_names_sign_changes_and_not_long_sums(plan: CertificationPlan) -> None:
    exact = replace(plan, candidate=replace(plan.candidate, has_float64=True))
    run = filled(plan, {})[0]
    fill(plan.candidate_task, [run | turned(run, 1)])
    fill(plan.float64_task, [run])
    fill(plan.long_sums_task, [run | turned(run, 1)])
    fill_small(plan, 0, 0.0)
    found = conclude(exact)
    assert found.passed
    assert f'in "head.weight" after 1 step, 1 of {run[KEY].size} elements moved the other way; ' in found.sentence
    assert "terms may lose" not in found.sentence
    fill(plan.candidate_task, [run | {KEY: run[KEY] + 1e-3 * (run[KEY] - run["after0/head.weight"])}])
    again = conclude(replace(exact, key="another"))
    assert again.passed
    assert "terms may lose" in again.sentence
    gradient = run["grad/head.weight"].copy()
    gradient.flat[0] *= -1
    fill(plan.candidate_task, [run | turned(run, 1) | {"grad/head.weight": gradient}])
    fill(plan.long_sums_task, [run | turned(run, 1) | {"grad/head.weight": 9 * gradient}])
    third = conclude(replace(exact, key="third"))
    assert third.passed
    assert "terms may lose" in third.sentence


def test_sign_changes_are_counted_with_their_share_of_the_squared_error() -> None:
    reference = {"after0/w": np.ones(4), "after1/w": np.array([2.0, 2.0, 0.0, 1.0])}
    candidate = reference | {"after1/w": np.array([0.0, 3.0, 0.0, 2.0])}
    assert sign_changes(reference, candidate, "after1/w") == SignChanges(1, 4, pytest.approx(4 / 6))
