"""Which processes a certificate needs, and what its key depends on."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest
import subjects
import synthetic
from planned import REFERENCES, changed, filled

from steelyard.catalog import frameworks
from steelyard.certificates import kernels
from steelyard.certificates.conclusion import next_tasks
from steelyard.certificates.method import RANDOM_DRAWS, Scope
from steelyard.certificates.plan import CertificationPlan, plan_certification, reference_optimizer
from steelyard.certificates.sentences import optimizer_form
from steelyard.certificates.sources import implementation_hash, implementation_of
from steelyard_worker import protocol, tensors
from steelyard_worker.case import Optimizer, Settings

if TYPE_CHECKING:
    from steelyard.certificates.plan import Candidate


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
    assert (first.variables, plan.candidate_task.job.variables, plan.float64_task.job.variables) == (
        {},
        kernels.VARIABLES,
        {},
    )
    shared = Path(second.folder).parent.parent / "shared"
    assert second.variables["JAX_COMPILATION_CACHE_DIR"] == str(shared / "jax")
    assert second.variables["XLA_FLAGS"] == "--xla_backend_optimization_level=0"
    known = frameworks.all_frameworks()
    changed_jax = replace(known["jax"], reference_variables={"XLA_FLAGS": ""})
    monkeypatch.setattr(frameworks, "all_frameworks", lambda: {**known, "jax": changed_jax})
    again = plan_certification(candidate, plan.references, tmp_path / "again")
    assert again.reference_key != plan.reference_key


def test_only_references_have_the_knobs_of_references_and_these_decide_their_key(
    candidate: Candidate, plan: CertificationPlan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = (task.job.case.settings for task in plan.reference_tasks)
    known = frameworks.all_frameworks()
    defaults = {
        name: {key: knob.default for key, knob in each.knobs.items() if not knob.later} for name, each in known.items()
    }
    assert first.knobs == defaults["pytorch"] | {"lstm": "loop"} != defaults["pytorch"]
    assert second.knobs == defaults["jax"]
    of_pytorch = subjects.candidate("pytorch", "lstm-imdb", "tiny", tmp_path)
    tasks = plan_certification(of_pytorch, plan.references, tmp_path / "own")
    for task in (tasks.candidate_task, tasks.float64_task):
        assert task.job.case.settings.knobs["lstm"] == defaults["pytorch"]["lstm"]
    for task in (plan.long_sums_task, *(pair[0] for pair in (*plan.small_tasks, *plan.draw_tasks))):
        assert task.job.case.settings.knobs == first.knobs
    changed = replace(known["pytorch"], reference_knobs={"lstm": "cell"})
    monkeypatch.setattr(frameworks, "all_frameworks", lambda: {**known, "pytorch": changed})
    assert plan_certification(candidate, plan.references, tmp_path / "again").reference_key != plan.reference_key


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
        "certify.py",
        "batches.py",
        "network.py",
        "protocol.py",
        "tensors.py",
        "trial.py",
        "frameworks/base.py",
        "frameworks/mxnet/adapter.py",
        "frameworks/mxnet/optimizers.py",
        "workloads/lstm-imdb/mxnet.py",
        "workloads/lstm-imdb/network.py",
        "workloads/lstm-imdb/helpers/gates.py",
    ],
)
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


def test_few_random_samples_fill_the_batch_for_one_step_with_the_settings_of_the_candidate(tmp_path: Path) -> None:
    large = replace(subjects.candidate("mxnet", "lstm-imdb", "tiny", tmp_path, batch=64), has_float64=True)
    plan = plan_certification(large, REFERENCES, tmp_path / "references")
    for number, (reference, own) in enumerate(plan.small_tasks):
        for task, settings in ((reference, plan.reference_tasks[0]), (own, plan.candidate_task)):
            assert task.job.case == settings.job.case
            assert task.job.certify.distinct == 4
            given = large.job.data
            assert task.job.data == protocol.Data(synthetic=given.synthetic, adversarial=given.adversarial)
            assert task.job.certify.steps == 1
            assert Path(task.job.folder).is_relative_to(Path(settings.job.folder) / "small4")
        draw = (RANDOM_DRAWS[number - 1],)
        assert reference.job.certify.perturbations == (draw if number else (0, 1, 2))
        assert own.job.certify.perturbations == (draw if number else (0,))


def test_candidates_with_other_small_batches_do_not_share_what_a_reference_saves_of_them(tmp_path: Path) -> None:
    """A batch that three ranks share is a multiple of three, so the reference has six samples, and four for one process."""
    alone = replace(subjects.candidate("pytorch", "lstm-imdb", "tiny", tmp_path, batch=64), has_float64=True)
    spread = replace(alone, job=replace(alone.job, case=replace(alone.job.case, strategy="ddp:3")))
    plans = [plan_certification(each, REFERENCES, tmp_path / "references") for each in (alone, spread)]
    references = [plan.small_tasks[0][0].job for plan in plans]
    assert [job.certify.distinct for job in references] == [4, 6]
    assert references[0].folder != references[1].folder
    assert plans[0].reference_tasks == plans[1].reference_tasks


def test_the_noise_of_a_likelihood_on_the_small_batch_is_that_of_the_loss(candidate: Candidate, tmp_path: Path) -> None:
    over = replace(candidate, has_float64=True, network=replace(candidate.network, recursion=900))
    plan = plan_certification(over, REFERENCES, tmp_path / "references")
    filled(plan, changed(synthetic.dumps(network=over.network), "grad/head.bias", 1e-4))
    task = next_tasks(plan)[-1]
    assert Path(task.job.folder) == Path(plan.small_tasks[0][0].job.folder) / "likelihood"
    assert task.job.certify.noise == pytest.approx(0.7 * 30 / 3 * 2.0**-24)
    assert task.job.certify.steps == 1


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
        (plan.sign_changes_task, "pytorch", first / "signs", (8,), 200 * 2.0**-24),
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
            assert (found.settings.threads, found.settings.mode, found.version) == (threads, installation.mode, "")
            usual = frameworks.framework(installation.framework).complete(Settings(installation.mode))
            assert found.settings.knobs.keys() == usual.knobs.keys()
        assert plan.candidate_task.job.case.settings.threads == 3


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


def test_in_a_network_with_many_batch_norms_the_few_samples_are_a_batch_by_themselves(tmp_path: Path) -> None:
    deep = replace(subjects.candidate("mxnet", "inceptionv3", "tiny", tmp_path, batch=32), has_float64=True)
    plan = plan_certification(deep, REFERENCES, tmp_path / "references")
    assert plan.normalised_tasks == ()
    for task in (task for pair in plan.small_tasks for task in pair):
        assert (task.job.case.batch, task.job.certify.distinct) == (2, 0)
