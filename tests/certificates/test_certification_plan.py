"""Which processes a certificate needs, what its key depends on, and which certificate their results lead to."""

from __future__ import annotations

import json
import shutil
from dataclasses import asdict, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import subjects
import synthetic

from steelyard.catalog import frameworks
from steelyard.certificates import record
from steelyard.certificates.conclusion import conclude, next_tasks
from steelyard.certificates.method import LIMIT, RANDOM_DRAWS, VERSION, Scope, method_for
from steelyard.certificates.plan import CertificationPlan, plan_certification, reference_optimizer, with_arbiter
from steelyard.certificates.references import has_reference
from steelyard.certificates.sentences import CAUSES, optimizer_form
from steelyard.certificates.sources import implementation_hash, implementation_of, specification_hash
from steelyard.errors import UserError
from steelyard_worker import protocol, tensors
from steelyard_worker.case import Optimizer

if TYPE_CHECKING:
    from steelyard.certificates.plan import Candidate, Task

REFERENCES = [subjects.installation("pytorch"), subjects.installation("jax")]


@pytest.fixture
def candidate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Candidate:
    monkeypatch.setenv("STEELYARD_CACHE", str(tmp_path / "cache"))
    return subjects.candidate("mxnet", "lstm-imdb", "tiny", tmp_path)


@pytest.fixture
def plan(candidate: Candidate, tmp_path: Path) -> CertificationPlan:
    return plan_certification(candidate, REFERENCES, tmp_path / "references")


def fill(task: Task, runs: list[synthetic.Dump]) -> None:
    """Write what the worker would have written for the perturbations of a task."""
    for number, run in zip(task.job.certify.perturbations, runs, strict=True):
        tensors.write(Path(task.job.folder) / f"perturbation{number}", run)


def filled(plan: CertificationPlan, errors: synthetic.Dump) -> list[synthetic.Dump]:
    """Fill the references with synthetic dumps that agree, and the candidate with the given changes."""
    runs = synthetic.dumps(network=plan.candidate.network)
    first, second = plan.reference_tasks
    fill(first, runs)
    fill(second, runs[:1])
    fill(plan.candidate_task, [runs[0] | errors])
    return runs


def changed(runs: list[synthetic.Dump], key: str, relative: float) -> synthetic.Dump:
    return {key: runs[0][key] + synthetic.shift(runs[0][key], relative, np.random.default_rng(0))}


def undecided(plan: CertificationPlan) -> tuple[Task, ...]:
    """Return the next tasks that decide the certificate; processes that save inner tensors only name the layer."""
    return tuple(task for task in next_tasks(plan) if not task.job.certify.inner)


def test_references_compute_in_float64_with_the_form_of_the_optimizer_that_the_framework_declares(
    plan: CertificationPlan,
) -> None:
    first, second = (task.job for task in plan.reference_tasks)
    assert (first.case.framework, first.certify.perturbations) == ("pytorch", (0, 1, 2))
    assert (second.case.framework, second.certify.perturbations) == ("jax", (0,))
    for job in (first, second):
        assert job.kind == "certify"
        assert job.case.settings.precision == "float64"
        assert (job.case.optimizer.implementation, job.case.optimizer.form) == ("reference", "epsilon-hat")
        assert (job.weights, job.data) == (plan.candidate_task.job.weights, plan.candidate_task.job.data)


def test_only_references_get_the_variables_of_their_framework_and_share_one_folder(
    candidate: Candidate, plan: CertificationPlan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = (task.job for task in plan.reference_tasks)
    assert (first.variables, plan.candidate_task.job.variables, plan.float64_task.job.variables) == ({}, {}, {})
    shared = Path(second.folder).parent.parent / "shared"
    assert second.variables["JAX_COMPILATION_CACHE_DIR"] == str(shared / "jax")
    assert second.variables["XLA_FLAGS"] == "--xla_backend_optimization_level=0"
    known = frameworks.all_frameworks()
    changed_jax = replace(known["jax"], reference_variables={"XLA_FLAGS": ""})
    monkeypatch.setattr(frameworks, "all_frameworks", lambda: {**known, "jax": changed_jax})
    again = plan_certification(candidate, plan.references, tmp_path / "again")
    assert again.reference_key != plan.reference_key


def test_a_large_reference_is_compiled_for_speed(candidate: Candidate, plan: CertificationPlan, tmp_path: Path) -> None:
    sizes = candidate.job.case.sizes | {"batch": 10**9}
    job = replace(candidate.job, case=replace(candidate.job.case, sizes=sizes))
    large = plan_certification(replace(candidate, job=job), plan.references, tmp_path / "large")
    known = frameworks.framework("jax")
    flags = [each.reference_tasks[1].job.variables["XLA_FLAGS"] for each in (plan, large)]
    assert flags == [known.reference_variables["XLA_FLAGS"], known.large_reference_variables["XLA_FLAGS"]]
    assert large.reference_tasks[1].job.variables.keys() == plan.reference_tasks[1].job.variables.keys()


def test_the_candidate_runs_as_it_will_be_measured(candidate: Candidate, plan: CertificationPlan) -> None:
    job = plan.candidate_task.job
    assert (job.case.settings, job.case.optimizer, job.case.framework) == (
        candidate.job.case.settings,
        candidate.job.case.optimizer,
        "mxnet",
    )
    assert job.certify.perturbations == (0,)


def test_a_reference_implementation_of_the_optimizer_is_compared_with_the_canonical_form() -> None:
    declared = {"form": "epsilon-hat", "correction": "float32"}
    by_hand = reference_optimizer(Optimizer("adam", 1e-3, implementation="reference"), declared)
    assert (by_hand.form, by_hand.correction) == ("canonical", "float64")
    native = reference_optimizer(Optimizer("adam", 1e-3), declared)
    assert (native.implementation, native.form, native.correction) == ("reference", "epsilon-hat", "float32")


def test_the_difference_from_the_canonical_rule_is_stated() -> None:
    rule = Optimizer("adam", 1e-3, form="epsilon-hat", correction="float32")
    assert optimizer_form(rule) == (
        "As in the framework's own optimizer, epsilon is added to the root of the uncorrected second moment and bias correction is "
        "computed in float32."
    )
    assert optimizer_form(Optimizer("adam", 1e-3)) == ""


def test_candidates_of_the_same_form_share_a_reference_and_others_do_not(tmp_path: Path) -> None:
    def key(framework: str, folder: str) -> str:
        return plan_certification(
            subjects.candidate(framework, "lstm-imdb", "tiny", tmp_path / folder), REFERENCES, tmp_path
        ).reference_key

    assert key("mxnet", "once") == key("mxnet", "again")
    assert key("mxnet", "once") != key("pytorch", "once")


def test_the_key_depends_on_everything_that_decides_and_on_nothing_else(candidate: Candidate, tmp_path: Path) -> None:
    def key(changed_candidate: Candidate) -> str:
        return plan_certification(changed_candidate, REFERENCES, tmp_path).key

    job = candidate.job
    same = [
        replace(candidate, job=replace(job, folder="/elsewhere", round=3, spawned_ns=7)),
        candidate,
    ]
    other = [
        replace(candidate, inputs="other weights"),
        replace(candidate, installation=replace(candidate.installation, version="2")),
        replace(candidate, exporter=subjects.installation("pytorch")),
        replace(candidate, exporter=subjects.installation("jax")),
        replace(candidate, exporter=replace(subjects.installation("pytorch"), contents="an edited file")),
        replace(candidate, installation=replace(candidate.installation, packages={"numpy": "2"})),
        replace(candidate, installation=replace(candidate.installation, contents="an edited file")),
        replace(candidate, declared={}),
        replace(
            candidate, job=replace(job, case=replace(job.case, settings=replace(job.case.settings, mode="imperative")))
        ),
        replace(candidate, job=replace(job, case=replace(job.case, settings=replace(job.case.settings, threads=2)))),
        replace(
            candidate,
            job=replace(job, case=replace(job.case, optimizer=replace(job.case.optimizer, learning_rate=0.5))),
        ),
        replace(candidate, job=replace(job, case=replace(job.case, sizes=job.case.sizes | {"hidden": 17}))),
    ]
    assert {key(each) for each in same} == {key(candidate)}
    assert len({key(each) for each in [candidate, *other]}) == len(other) + 1


def test_the_key_depends_on_the_content_of_the_adversarial_batch(candidate: Candidate, tmp_path: Path) -> None:
    before = plan_certification(candidate, REFERENCES, tmp_path)
    folder = Path(candidate.job.data.adversarial)
    batch = {name: np.array(array) for name, array in tensors.read(folder).items()}
    batch["tokens"][0, 0] += 1
    tensors.write(folder, batch)
    after = plan_certification(candidate, REFERENCES, tmp_path)
    assert after.key != before.key
    assert after.reference_key != before.reference_key


@pytest.mark.parametrize(
    "part",
    [
        "certify.py", "batches.py", "network.py", "protocol.py", "tensors.py", "trial.py", "frameworks/base.py", "frameworks/mxnet/adapter.py",
        "frameworks/mxnet/optimizers.py", "workloads/lstm-imdb/mxnet.py", "workloads/lstm-imdb/network.py",
        "workloads/lstm-imdb/helpers/gates.py",
    ],
)  # fmt: skip
def test_the_hash_of_an_implementation_depends_on_every_file_it_uses(
    part: str, candidate: Candidate, tmp_path: Path
) -> None:
    worker = tmp_path / "worker"
    shutil.copytree(frameworks.WORKER, worker, ignore=shutil.ignore_patterns("__pycache__"))
    job = replace(candidate.job, workload_folder=str(worker / "workloads" / "lstm-imdb"))
    assert implementation_hash(job, worker) == implementation_hash(candidate.job)
    (worker / "workloads" / "lstm-imdb" / "helpers").mkdir()
    (worker / "workloads" / "lstm-imdb" / "helpers" / "gates.py").write_text("")
    before = implementation_hash(job, worker)
    (worker / "frameworks" / "pytorch" / "adapter.py").write_text("")
    (worker / "workloads" / "lstm-imdb" / "pytorch.py").write_text("")
    assert implementation_hash(job, worker) == before
    with (worker / part).open("a") as file:
        file.write("# changed\n")
    assert implementation_hash(job, worker) != before


def test_a_candidate_that_matches_is_certified_and_saved(plan: CertificationPlan) -> None:
    assert not has_reference(plan)
    filled(plan, {})
    found = conclude(plan)
    assert found.passed
    assert found.agreement == 0
    assert found.references == ("PyTorch 0", "JAX 0")
    assert found.trainable_scalars == 5346
    assert len(found.losses) == len(found.loss_limits) == found.steps
    assert all(0 < limit < 1e-2 * loss for loss, limit in zip(found.losses, found.loss_limits, strict=True))
    assert "epsilon" in found.declared
    assert record.find(plan.key) == found
    assert has_reference(plan)


def test_cached_references_are_reused(plan: CertificationPlan) -> None:
    filled(plan, {})
    conclude(plan)
    for task in plan.reference_tasks:
        shutil.rmtree(task.job.folder)
    assert conclude(plan).passed


@pytest.mark.parametrize("damage", ["truncated", "one bit"])
def test_a_damaged_reference_is_not_used(plan: CertificationPlan, damage: str) -> None:
    filled(plan, {})
    conclude(plan)
    for path in record.folder().rglob("tensors.bin"):
        content = path.read_bytes()
        path.write_bytes(content[:100] if damage == "truncated" else bytes([content[0] ^ 1]) + content[1:])
    assert not has_reference(plan)
    assert conclude(plan).passed


def test_a_candidate_that_differs_is_rejected_with_the_tensor_and_its_units(plan: CertificationPlan) -> None:
    runs = synthetic.dumps(network=plan.candidate.network)
    filled(plan, changed(runs, "grad/lstm.layer0.forward.w_hh", 1e-3))
    found = conclude(plan)
    assert not found.passed
    assert found.first == "the gradient of lstm.layer0.forward.w_hh"
    assert found.stage == "gradients"
    assert found.worst_units > found.limit


def test_nothing_is_certified_when_references_disagree(plan: CertificationPlan) -> None:
    runs = filled(plan, {})
    fill(plan.reference_tasks[1], [runs[0] | changed(runs, "loss", 1e-6)])
    found = conclude(plan)
    assert not found.passed
    assert "disagree in float64" in found.sentence
    assert record.find(plan.key) is None


@pytest.mark.parametrize("odd", [0, 1])
def test_a_third_reference_decides_which_of_two_is_wrong(plan: CertificationPlan, odd: int) -> None:
    runs = filled(plan, {})
    wrong = plan.reference_tasks[odd]
    shutil.rmtree(wrong.job.folder)
    fill(wrong, [run | changed(runs, "loss", 1e-3) for run in runs[: len(wrong.job.certify.perturbations)]])
    arbitrated = with_arbiter(plan, subjects.installation("tensorflow"))
    third, *others = arbitrated.reference_tasks
    assert [task.job.folder for task in others] == [task.job.folder for task in plan.reference_tasks]
    fill(third, runs)
    found = conclude(arbitrated)
    assert found.passed
    names = ["PyTorch 0", "JAX 0"]
    assert found.references == ("TensorFlow 0", names[1 - odd])
    assert found.sentence.endswith(CAUSES["loss"])
    assert (
        f" {names[odd]} disagrees in float64 with TensorFlow 0 and {names[1 - odd]}, which agree, so it is not used as a reference. "
        "The first difference is in the loss: relative error 1.0e-03, " in found.sentence
    )
    assert arbitrated.key != plan.key


def test_three_references_of_which_no_two_agree_certify_nothing(plan: CertificationPlan) -> None:
    runs = filled(plan, {})
    fill(plan.reference_tasks[1], [runs[0] | changed(runs, "loss", 1e-5)])
    arbitrated = with_arbiter(plan, subjects.installation("tensorflow"))
    fill(arbitrated.reference_tasks[0], [run | changed(runs, "loss", -1e-5) for run in runs])
    found = conclude(arbitrated)
    assert not found.passed
    assert "because TensorFlow 0, PyTorch 0 and JAX 0 disagree in float64, so one of them is wrong." in found.sentence
    assert record.find(arbitrated.key) is None


def test_the_error_of_a_missing_reference_is_reported(plan: CertificationPlan) -> None:
    filled(plan, {})
    folder = Path(plan.reference_tasks[1].job.folder)
    shutil.rmtree(folder)
    write_error(folder, "out-of-memory", "no memory left")
    with pytest.raises(UserError, match="no memory left"):
        conclude(plan)


def test_the_error_of_a_reference_that_stopped_half_way_is_reported(plan: CertificationPlan) -> None:
    filled(plan, {})
    first = Path(plan.reference_tasks[0].job.folder)
    shutil.rmtree(first / "perturbation2")
    write_error(first, "hung", "The worker sent no event for 600 s and was stopped.")
    with pytest.raises(UserError, match="sent no event for 600 s"):
        conclude(plan)


@pytest.mark.parametrize(("kind", "saved"), [("implementation", True), ("out-of-memory", False)])
def test_a_failed_candidate_is_not_certified_and_only_an_implementation_error_is_saved(
    plan: CertificationPlan, kind: str, saved: bool
) -> None:
    filled(plan, {})
    folder = Path(plan.candidate_task.job.folder)
    shutil.rmtree(folder)
    write_error(folder, kind, "Tensor head.bias is missing from the module.")
    found = conclude(plan)
    assert not found.passed
    assert found.sentence == "Tensor head.bias is missing from the module."
    assert (found.worst, found.worst_units, found.first, found.stage, found.tensors) == ("", 0.0, "", "", 0)
    assert (record.find(plan.key) is not None) == saved
    assert next_tasks(plan) == ()


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
        "another random draw of weights and batch. On the original one, the gradient of head.bias differed"
        if passed
        else "first seen in the gradient of head.bias: relative error 1.0e-03"
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
        "normal rounding of a log-likelihood of 0.7 nats over 900 steps, which changes gradients by about 4.2e-07. MXNet 0 cannot"
        if passed
        else "first seen in the gradient of head.bias: relative error 1.0e-03"
    )
    assert expected in found.sentence
    assert found.sentence.startswith("Same computation as far as float32 can show: all 51 tensors match") is passed
    assert found.float64_error is None


def test_a_framework_with_float64_runs_in_float64_whatever_its_loss(candidate: Candidate, tmp_path: Path) -> None:
    over = replace(candidate, has_float64=True, network=replace(candidate.network, recursion=900))
    plan = plan_certification(over, REFERENCES, tmp_path / "references")
    filled(plan, changed(synthetic.dumps(network=over.network), "grad/head.bias", 1e-4))
    assert plan.float64_task in next_tasks(plan)


def inaccurate(plan: CertificationPlan, definition: float, sums: float, small: float = 0.0) -> CertificationPlan:
    """Fill all folders for a candidate with an error of 1e-4 in float32, `definition` in float64, and `small` on the small batch.

    Noise of long sums causes `sums`.
    """
    runs = synthetic.dumps(network=plan.candidate.network)
    filled(plan, changed(runs, "output/logits", 1e-4))
    fill(plan.float64_task, [runs[0] | changed(runs, "output/logits", definition)])
    fill(plan.long_sums_task, [runs[0] | {key: runs[0][key] * (1 + sums) for key in runs[0]}])
    fill_small(plan, 0, small)
    return replace(plan, candidate=replace(plan.candidate, has_float64=True))


def fill_small(plan: CertificationPlan, number: int, error: float) -> None:
    """Fill a pair of the small batch, whose tensors are other ones, with this error of the candidate."""
    runs = synthetic.dumps(seed=1, network=plan.candidate.network)
    reference, own = plan.small_tasks[number]
    fill(reference, runs[: len(reference.job.certify.perturbations)])
    fill(own, [runs[0] | changed(runs, "output/logits", error)])


def test_the_small_batch_has_few_random_samples_one_step_and_the_settings_of_the_candidate(tmp_path: Path) -> None:
    large = replace(subjects.candidate("mxnet", "lstm-imdb", "tiny", tmp_path, batch=64), has_float64=True)
    plan = plan_certification(large, REFERENCES, tmp_path / "references")
    for number, (reference, own) in enumerate(plan.small_tasks):
        for task, settings in ((reference, plan.reference_tasks[0]), (own, plan.candidate_task)):
            assert task.job.case == replace(settings.job.case, sizes=settings.job.case.sizes | {"batch": 4})
            given = large.job.data
            assert task.job.data == protocol.Data(synthetic=given.synthetic, adversarial=given.adversarial)
            assert task.job.certify.steps == 1
            assert Path(task.job.folder).is_relative_to(Path(settings.job.folder) / "small")
        draw = (RANDOM_DRAWS[number - 1],)
        assert reference.job.certify.perturbations == (draw if number else (0, 1, 2))
        assert own.job.certify.perturbations == (draw if number else (0,))


def test_an_error_on_the_small_batch_is_not_excused_by_long_sums(plan: CertificationPlan) -> None:
    over = inaccurate(plan, 1e-12, 1e-3, small=1e-4)
    for number, _ in enumerate(RANDOM_DRAWS, 1):
        assert next_tasks(over) == plan.small_tasks[number]
        fill_small(plan, number, 1e-4)
    assert undecided(over) == ()
    found = conclude(over)
    assert not found.passed
    assert found.first == "the output logits"
    assert found.sentence.startswith(
        "Same computation in float64, but not in float32, as a small batch without long sums shows, first seen in the output logits"
    )
    assert found.sentence.endswith("Likely cause: a part of the network that computes in a lower precision.")
    assert found.losses == ()


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


def test_the_noise_of_a_likelihood_on_the_small_batch_is_that_of_the_loss(candidate: Candidate, tmp_path: Path) -> None:
    over = replace(candidate, has_float64=True, network=replace(candidate.network, recursion=900))
    plan = plan_certification(over, REFERENCES, tmp_path / "references")
    filled(plan, changed(synthetic.dumps(network=over.network), "grad/head.bias", 1e-4))
    task = next_tasks(plan)[-1]
    assert Path(task.job.folder) == Path(plan.small_tasks[0][0].job.folder) / "likelihood"
    assert task.job.certify.noise == pytest.approx(0.7 * 30 / 3 * 2.0**-24)
    assert task.job.certify.steps == 1


@pytest.mark.parametrize(
    ("key", "passed"),
    [
        ("grad/head.bias", False),
        ("loss", False),
        ("adversarial/loss1", False),
        ("adversarial/after1/head.bias", False),
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


def noisy(candidate: Candidate, amplified: float, errors: synthetic.Dump) -> CertificationPlan:
    """Return a plan whose references agree, with amplified noise, and whose candidate has the given changes."""
    plan = plan_certification(candidate, REFERENCES, Path(candidate.job.folder).parent / "references")
    runs = synthetic.dumps(network=candidate.network, amplified=amplified)
    for task, dumps in zip(plan.reference_tasks, (runs, runs[:1]), strict=True):
        fill(task, dumps)
    fill(plan.candidate_task, [runs[0] | errors])
    return plan


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
    [("grad/head.bias", "a part of the network that computes in a lower precision"), ("adversarial/loss1", "a clip")],
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
        "Different computation, as a small batch shows, where rounding hides less, first seen in "
    )
    assert cause in found.sentence
    assert found.losses == ()
    fill(plan.small_tasks[2][1], few[:1])
    again = conclude(replace(plan, key="another"))
    assert again.passed
    assert "On a small batch without long sums, the largest deviation" in again.sentence
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


def test_no_further_draw_of_the_small_batch_runs_where_float64_or_long_sums_have_decided(
    plan: CertificationPlan,
) -> None:
    assert undecided(inaccurate(plan, 1e-4, 1e-3, small=1e-4)) == ()
    assert undecided(inaccurate(plan, 1e-12, 1e-5, small=1e-4)) == ()


def test_tasks_of_the_reference_that_another_candidate_has_run_do_not_count_as_started(plan: CertificationPlan) -> None:
    runs = synthetic.dumps(network=plan.candidate.network)
    filled(plan, changed(runs, "output/logits", 1e-4))
    over = replace(plan, candidate=replace(plan.candidate, has_float64=True))
    fill(plan.long_sums_task, runs[:1])
    Path(plan.small_tasks[0][0].job.folder).mkdir(parents=True)
    assert next_tasks(over) == (plan.float64_task, *plan.small_tasks[0])


def test_a_candidate_with_inaccurate_sums_is_certified_by_its_float64_run(plan: CertificationPlan) -> None:
    found = conclude(inaccurate(plan, 1e-12, 1e-3))
    assert found.passed
    assert found.float64_error == pytest.approx(1e-12, rel=0.1)
    assert (
        "match the double-precision reference, to 1.0e-12 when computed in float64. In float32 the largest"
        in found.sentence
    )
    assert (
        "deviation (the output logits) is normal rounding in long sums (up to 160 terms). On a small " in found.sentence
    )
    assert found.sentence.endswith(") is at less than 1 % of the limit.")


def test_a_candidate_whose_float64_run_differs_is_rejected_whatever_its_sums(plan: CertificationPlan) -> None:
    found = conclude(inaccurate(plan, 1e-4, 1e-3))
    assert not found.passed
    assert found.sentence.startswith(
        "Different computation even in float64, first seen in the output logits: relative error 1.0e-04, "
    )


def test_a_matching_float64_run_allows_no_more_than_the_error_of_long_sums(plan: CertificationPlan) -> None:
    found = conclude(inaccurate(plan, 1e-12, 1e-5))
    assert not found.passed
    assert "Same computation in float64, but not in float32, first seen in the output logits" in found.sentence
    assert found.sentence.endswith("Likely cause: a part of the network that computes in a lower precision.")
    assert found.float64_error == pytest.approx(1e-12, rel=0.1)


def test_a_float64_run_that_lacks_a_tensor_is_rejected_with_its_name(plan: CertificationPlan) -> None:
    over = inaccurate(plan, 1e-12, 1e-3)
    runs = synthetic.dumps(network=plan.candidate.network)
    fill(plan.float64_task, [{key: array for key, array in runs[0].items() if key != "loss"}])
    found = conclude(over)
    assert not found.passed
    assert found.sentence.startswith("The loss is missing.")


def write_error(folder: Path, kind: str, message: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    event: dict[str, Any] = {"v": protocol.VERSION, "event": "error", "t_ns": 0, "kind": kind, "message": message}
    (folder / protocol.EVENTS).write_text(json.dumps(event) + "\n", encoding="utf-8")


def test_a_certificate_states_what_was_certified_with_what_and_how(plan: CertificationPlan) -> None:
    runs = synthetic.dumps(network=plan.candidate.network)
    filled(plan, changed(runs, "grad/head.bias", 1e-7))
    found, case = conclude(plan), plan.candidate_task.job.case
    assert (found.key, found.framework, found.version) == (plan.key, "mxnet", "0")
    assert (found.workload, found.preset) == ("lstm-imdb", "tiny")
    assert (found.settings, found.inputs) == (asdict(case.settings), plan.candidate.inputs)
    assert found.optimizer == json.loads(json.dumps(asdict(case.optimizer)))
    assert (found.method, found.steps, found.limit) == (VERSION, 5, LIMIT)
    assert (found.first, found.stage, found.float64_error) == ("", "", None)
    assert found.worst == "the gradient of head.bias"
    assert 0 < found.worst_units < LIMIT
    assert found.tensors == len(runs[0]) == 51
    assert found.resolution.keys() >= {"outputs", "loss", "gradients"}
    assert found.implementation == implementation_hash(plan.candidate_task.job)
    assert found.specification == specification_hash(plan.candidate_task.job)
    assert abs(datetime.now(UTC) - datetime.fromisoformat(found.created)) < timedelta(minutes=5)
    assert record.load_all() == [found]


def test_a_rejected_certificate_keeps_the_agreement_of_the_references(plan: CertificationPlan) -> None:
    runs = filled(plan, {})
    fill(plan.reference_tasks[1], [runs[0] | changed(runs, "loss", 1e-6)])
    assert conclude(plan).agreement == pytest.approx(1e-6, rel=1e-3)
    assert undecided(plan) == ()


def test_a_certificate_is_not_reused_when_the_limit_changes(
    candidate: Candidate, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = plan_certification(candidate, REFERENCES, tmp_path)
    stricter = replace(method_for("float32"), limit=100.0)
    monkeypatch.setattr("steelyard.certificates.plan.method_for", lambda _: stricter)
    after = plan_certification(candidate, REFERENCES, tmp_path)
    assert after.key != before.key
    assert after.reference_key == before.reference_key, "the tensors of the references can be reused"


@pytest.mark.parametrize(
    "change",
    [
        lambda each: replace(each, framework="tensorflow"),
        lambda each: replace(each, mode="other"),
        lambda each: replace(each, packages={"numpy": "9"}),
        lambda each: replace(each, contents="an edited file"),
    ],
)
def test_references_are_computed_again_when_one_of_them_changes(
    change: Any, candidate: Candidate, tmp_path: Path
) -> None:
    usual = plan_certification(candidate, REFERENCES, tmp_path).reference_key
    for place in (0, 1):
        others = [change(each) if place == number else each for number, each in enumerate(REFERENCES)]
        assert plan_certification(candidate, others, tmp_path).reference_key != usual
    assert plan_certification(candidate, REFERENCES[:1], tmp_path).reference_key != usual
    sampled = replace(candidate, scope=Scope(1, 8))
    assert plan_certification(sampled, REFERENCES, tmp_path).reference_key != usual


def test_every_process_of_a_certificate_has_its_noise_and_its_folder(candidate: Candidate, tmp_path: Path) -> None:
    plan = plan_certification(replace(candidate, scope=Scope(2, 8)), REFERENCES, tmp_path / "references")
    noise, own = 2.0**-20, Path(candidate.job.folder)
    first = tmp_path / "references" / "pytorch"
    expected = [
        (plan.reference_tasks[0], "pytorch", first, (0, 1, 2), noise),
        (plan.reference_tasks[1], "jax", tmp_path / "references" / "jax", (0,), noise),
        (plan.candidate_task, "mxnet", own, (0,), noise),
        (plan.float64_task, "mxnet", own / "float64", (0,), noise),
        (plan.long_sums_task, "pytorch", first / "sums", (3,), 160 * 2.0**-24),
    ]
    for number, pair in zip((4, 5, 6), plan.draw_tasks, strict=True):
        expected += [
            (pair[0], "pytorch", first / f"draw{number}", (number,), 2.0**-10),
            (pair[1], "mxnet", own / f"draw{number}", (number,), 2.0**-10),
        ]
    for task, framework, folder, perturbations, size in expected:
        job = task.job
        assert (task.environment, job.kind, job.case.framework, Path(job.folder)) == (
            framework,
            "certify",
            framework,
            folder,
        )
        assert job.certify == protocol.Certify(2, 8, perturbations, size)
        precision = "float32" if task in (plan.candidate_task, *(pair[1] for pair in plan.draw_tasks)) else "float64"
        assert job.case.settings.precision == precision
    assert plan.references == tuple(REFERENCES)


def test_references_use_one_thread_where_they_run_side_by_side_and_their_own_knobs(
    candidate: Candidate, tmp_path: Path
) -> None:
    settings = replace(candidate.job.case.settings, threads=3)
    job = replace(candidate.job, case=replace(candidate.job.case, settings=settings, version="1.9"))
    for scope, threads in ((Scope(), 1), (Scope(steps=1, sample=1000), 3)):  # at full size they run one after the other
        plan = plan_certification(replace(candidate, job=job, scope=scope), REFERENCES, tmp_path)
        for task, installation in zip(plan.reference_tasks, REFERENCES, strict=True):
            found = task.job.case
            known = frameworks.framework(installation.framework)
            assert (found.settings.threads, found.settings.mode, found.version) == (threads, installation.mode, "")
            assert found.settings.knobs == {name: knob.default for name, knob in known.knobs.items()}
        assert plan.candidate_task.job.case.settings.threads == 3


def test_a_missing_candidate_without_an_error_is_named_by_its_folder(plan: CertificationPlan) -> None:
    filled(plan, {})
    shutil.rmtree(plan.candidate_task.job.folder)
    assert conclude(plan).sentence == f"The process for {plan.candidate_task.job.folder} ended without saving tensors."


def test_the_last_error_of_a_process_counts(plan: CertificationPlan) -> None:
    filled(plan, {})
    folder = Path(plan.candidate_task.job.folder)
    shutil.rmtree(folder)
    write_error(folder, "crash", "The first.")
    first = (folder / protocol.EVENTS).read_text()
    write_error(folder, "crash", "The last.")
    (folder / protocol.EVENTS).write_text(first + (folder / protocol.EVENTS).read_text())
    assert conclude(plan).sentence == "The last."


def test_a_hash_differs_for_a_framework_of_the_users_own(candidate: Candidate, tmp_path: Path) -> None:
    folder = tmp_path / "frameworks" / "mine"
    (folder / "workloads").mkdir(parents=True)
    for name in ("framework.toml", "adapter.py"):
        shutil.copyfile(frameworks.BUILT_IN / "fake" / name, folder / name)
    (folder / "workloads" / "lstm-imdb.py").write_text("1")
    workload = Path(candidate.job.workload_folder)
    frameworks.use((str(folder.parent),))
    try:
        found = [implementation_of("mine", workload, "lstm-imdb")]
        for name in ("workloads/lstm-imdb.py", "adapter.py", "framework.toml"):
            with (folder / name).open("a") as file:
                file.write("# changed\n")
            found.append(implementation_of("mine", workload, "lstm-imdb"))
        (folder / "notes.txt").write_text("")
        assert implementation_of("mine", workload, "lstm-imdb") == found[-1]
    finally:
        frameworks.use(())
    assert len(set(found)) == 4
