"""Which processes a certificate needs, what its key depends on, and what is concluded from folders."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import subjects
import synthetic

from steelyard.catalog import frameworks
from steelyard.certificates import reference
from steelyard.certificates.method import DRAWS
from steelyard.certificates.reference import Proceedings, conclude, further_tasks, has_reference, jobs_for
from steelyard.certificates.sources import implementation_hash
from steelyard.errors import UserError
from steelyard_worker import protocol, tensors
from steelyard_worker.protocol import Optimizer

if TYPE_CHECKING:
    from steelyard.certificates.reference import Subject, Task

PEERS = [subjects.peer("pytorch"), subjects.peer("jax")]


@pytest.fixture
def subject(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Subject:
    monkeypatch.setenv("STEELYARD_CACHE", str(tmp_path / "cache"))
    return subjects.subject("mxnet", "lstm-imdb", "tiny", tmp_path)


@pytest.fixture
def proceedings(subject: Subject, tmp_path: Path) -> Proceedings:
    return jobs_for(subject, PEERS, tmp_path / "references")


def fill(task: Task, runs: list[synthetic.Dump]) -> None:
    """Write what the worker would have written for the variants of a task."""
    for variant, run in zip(task.job.certify.variants, runs, strict=True):
        tensors.write(Path(task.job.folder) / f"variant{variant}", run)


def filled(proceedings: Proceedings, candidate: synthetic.Dump) -> list[synthetic.Dump]:
    """Fill the references with synthetic dumps that agree, and the candidate with the given changes to them."""
    runs = synthetic.dumps(network=proceedings.subject.network)
    first, second = proceedings.references
    fill(first, runs)
    fill(second, runs[:1])
    fill(proceedings.candidate, [runs[0] | candidate])
    return runs


def changed(runs: list[synthetic.Dump], key: str, relative: float) -> synthetic.Dump:
    return {key: runs[0][key] + synthetic.shift(runs[0][key], relative, np.random.default_rng(0))}


def test_references_compute_in_float64_by_the_strict_rule_in_the_form_the_framework_declares(
    proceedings: Proceedings,
) -> None:
    first, second = (task.job for task in proceedings.references)
    assert (first.framework, first.certify.variants) == ("pytorch", (0, 1, 2))
    assert (second.framework, second.certify.variants) == ("jax", (0,))
    for job in (first, second):
        assert job.task == "certify"
        assert job.settings.precision == "float64"
        assert (job.optimizer.implementation, job.optimizer.form) == ("reference", "epsilon-hat")
        assert (job.weights, job.data) == (proceedings.candidate.job.weights, proceedings.candidate.job.data)


def test_the_candidate_runs_as_it_will_be_measured(subject: Subject, proceedings: Proceedings) -> None:
    job = proceedings.candidate.job
    assert (job.settings, job.optimizer, job.framework) == (subject.job.settings, subject.job.optimizer, "mxnet")
    assert job.certify.variants == (0,)


def test_a_strict_rule_is_held_against_the_canonical_form() -> None:
    declared = {"form": "epsilon-hat", "correction": "float32"}
    strict = reference.reference_optimizer(Optimizer("adam", 1e-3, implementation="reference"), declared)
    assert (strict.form, strict.correction) == ("canonical", "float64")
    native = reference.reference_optimizer(Optimizer("adam", 1e-3), declared)
    assert (native.implementation, native.form, native.correction) == ("reference", "epsilon-hat", "float32")


def test_the_difference_from_the_canonical_rule_is_stated() -> None:
    rule = Optimizer("adam", 1e-3, form="epsilon-hat", correction="float32")
    said = reference.form_sentence(rule)
    assert "epsilon is added to the root of the uncorrected second moment" in said
    assert "bias correction is computed in float32" in said
    assert reference.form_sentence(Optimizer("adam", 1e-3)) == ""


def test_candidates_of_the_same_form_share_a_reference_and_others_do_not(tmp_path: Path) -> None:
    def key(framework: str, folder: str) -> str:
        return jobs_for(
            subjects.subject(framework, "lstm-imdb", "tiny", tmp_path / folder), PEERS, tmp_path
        ).reference_key

    assert key("mxnet", "once") == key("mxnet", "again")
    assert key("mxnet", "once") != key("pytorch", "once")


def test_the_key_follows_everything_that_decides_and_nothing_else(subject: Subject, tmp_path: Path) -> None:
    def key(changed_subject: Subject) -> str:
        return jobs_for(changed_subject, PEERS, tmp_path).key

    job = subject.job
    same = [
        replace(subject, job=replace(job, folder="/elsewhere", trial="again", spawned_ns=7)),
        subject,
    ]
    other = [
        replace(subject, inputs="other weights"),
        replace(subject, peer=replace(subject.peer, version="2")),
        replace(subject, peer=replace(subject.peer, packages={"numpy": "2"})),
        replace(subject, declared={}),
        replace(subject, job=replace(job, settings=replace(job.settings, mode="imperative"))),
        replace(subject, job=replace(job, settings=replace(job.settings, threads=2))),
        replace(subject, job=replace(job, optimizer=replace(job.optimizer, learning_rate=0.5))),
        replace(subject, job=replace(job, sizes=job.sizes | {"hidden": 17})),
    ]
    assert {key(each) for each in same} == {key(subject)}
    assert len({key(each) for each in [subject, *other]}) == len(other) + 1


@pytest.mark.parametrize(
    "part",
    [
        "certify.py", "batches.py", "network.py", "tensors.py", "trial.py", "frameworks/base.py", "frameworks/named_tensors.py",
        "frameworks/mxnet/adapter.py", "frameworks/mxnet/framework.toml", "frameworks/mxnet/optimizers.py", "workloads/lstm-imdb/mxnet.py", "workloads/lstm-imdb/network.py",
    ],
)  # fmt: skip
def test_the_hash_of_an_implementation_follows_every_file_that_takes_part(
    part: str, subject: Subject, tmp_path: Path
) -> None:
    worker = tmp_path / "worker"
    shutil.copytree(frameworks.WORKER, worker, ignore=shutil.ignore_patterns("__pycache__"))
    job = replace(subject.job, workload_folder=str(worker / "workloads" / "lstm-imdb"))
    before = implementation_hash(job, worker)
    assert before == implementation_hash(subject.job)
    (worker / "frameworks" / "pytorch" / "adapter.py").write_text("")
    assert implementation_hash(job, worker) == before
    with (worker / part).open("a") as file:
        file.write("# changed\n")
    assert implementation_hash(job, worker) != before


def test_a_candidate_that_agrees_is_certified_and_kept(proceedings: Proceedings) -> None:
    assert not has_reference(proceedings)
    filled(proceedings, {})
    found = conclude(proceedings)
    assert found.passed
    assert found.agreement == 0
    assert found.references == ("PyTorch 0", "JAX 0")
    assert found.trainable_scalars == 5346
    assert "epsilon" in found.declared
    assert reference.record.find(proceedings.key) == found
    assert has_reference(proceedings)


def test_a_candidate_is_concluded_from_references_that_are_kept(proceedings: Proceedings) -> None:
    filled(proceedings, {})
    conclude(proceedings)
    for task in proceedings.references:
        shutil.rmtree(task.job.folder)
    assert conclude(proceedings).passed


def test_a_damaged_reference_is_not_used(proceedings: Proceedings) -> None:
    filled(proceedings, {})
    conclude(proceedings)
    for path in reference.record.folder().rglob("tensors.bin"):
        path.write_bytes(path.read_bytes()[:100])
    assert not has_reference(proceedings)
    assert conclude(proceedings).passed


def test_a_candidate_that_errs_is_rejected_with_the_tensor_and_its_units(proceedings: Proceedings) -> None:
    runs = synthetic.dumps(network=proceedings.subject.network)
    filled(proceedings, changed(runs, "grad/lstm.layer0.forward.w_hh", 1e-3))
    found = conclude(proceedings)
    assert not found.passed
    assert found.first == "the gradient of lstm.layer0.forward.w_hh"
    assert found.stage == "gradients"
    assert found.worst_units > found.limit


def test_references_that_disagree_certify_nothing(proceedings: Proceedings) -> None:
    runs = filled(proceedings, {})
    fill(proceedings.references[1], [runs[0] | changed(runs, "loss", 1e-6)])
    found = conclude(proceedings)
    assert not found.passed
    assert "disagree in float64" in found.sentence
    assert reference.record.find(proceedings.key) is None


def test_a_missing_reference_is_said_with_the_reason(proceedings: Proceedings) -> None:
    filled(proceedings, {})
    folder = Path(proceedings.references[1].job.folder)
    shutil.rmtree(folder)
    write_error(folder, "out-of-memory", "no memory left")
    with pytest.raises(UserError, match="no memory left"):
        conclude(proceedings)


def test_a_reference_that_stopped_half_way_is_said_with_the_reason(proceedings: Proceedings) -> None:
    filled(proceedings, {})
    first = Path(proceedings.references[0].job.folder)
    shutil.rmtree(first / "variant2")
    write_error(first, "hung", "The worker said nothing for 600 s and was stopped.")
    with pytest.raises(UserError, match="said nothing for 600 s"):
        conclude(proceedings)


@pytest.mark.parametrize(("kind", "kept"), [("implementation", True), ("out-of-memory", False)])
def test_a_refused_candidate_is_not_certified_and_only_its_own_fault_is_kept(
    proceedings: Proceedings, kind: str, kept: bool
) -> None:
    filled(proceedings, {})
    folder = Path(proceedings.candidate.job.folder)
    shutil.rmtree(folder)
    write_error(folder, kind, "Tensor head.bias is missing from the module.")
    found = conclude(proceedings)
    assert not found.passed
    assert found.sentence == "Tensor head.bias is missing from the module."
    assert (reference.record.find(proceedings.key) is not None) == kept
    assert further_tasks(proceedings) == ()


def test_nothing_further_runs_for_a_candidate_within_rounding(proceedings: Proceedings) -> None:
    filled(proceedings, {})
    able = replace(proceedings, subject=replace(proceedings.subject, exact=True))
    assert further_tasks(able) == further_tasks(proceedings) == ()
    runs = synthetic.dumps(network=proceedings.subject.network)
    filled(proceedings, changed(runs, "grad/head.bias", 1e-3))
    assert [task.job.settings.precision for task in further_tasks(able)] == ["float64", "float64"]
    drawn = further_tasks(proceedings)
    assert [task.job.settings.precision for task in drawn] == ["float64", "float32"]
    assert drawn[0].job.certify == drawn[1].job.certify
    assert drawn[0].job.certify.noise > 1000 * proceedings.candidate.job.certify.noise


@pytest.mark.parametrize(
    ("off", "passed", "ran"), [((1e-3, 0.0), True, 2), ((0.0, 1e-3), True, 1), ((1e-3, 1e-3), False, 3)]
)
def test_without_float64_a_tie_of_one_draw_is_forgiven_and_a_mistake_of_all_is_not(
    proceedings: Proceedings, off: tuple[float, float], passed: bool, ran: int
) -> None:
    runs = synthetic.dumps(network=proceedings.subject.network)
    filled(proceedings, changed(runs, "grad/head.bias", 1e-3))
    for number, error in zip(DRAWS, (*off, 1e-3), strict=True):
        pair = further_tasks(proceedings)
        if pair:
            assert [task.job.certify.variants for task in pair] == [(number,), (number,)]
            for task, run in zip(pair, (runs[0], runs[0] | changed(runs, "grad/head.bias", error)), strict=True):
                tensors.write(Path(task.job.folder) / f"variant{number}", run)
    assert further_tasks(proceedings) == ()
    assert sum(Path(reference.job.folder).is_dir() for reference, _ in proceedings.draws) == ran
    found = conclude(proceedings)
    assert found.passed is passed
    said = "At first the gradient of head.bias was off" if passed else "The gradient of head.bias is off by 1.0e-03"
    assert said in found.sentence


def test_another_draw_that_breaks_down_is_told_and_decides_nothing_for_good(proceedings: Proceedings) -> None:
    runs = synthetic.dumps(network=proceedings.subject.network)
    filled(proceedings, changed(runs, "grad/head.bias", 1e-3))
    write_error(Path(proceedings.draws[0][1].job.folder), "crash", "TypeError: the input type must be same.")
    assert further_tasks(proceedings) == ()
    found = conclude(proceedings)
    assert not found.passed
    assert found.sentence.endswith("What was to settle it broke down: TypeError: the input type must be same.")
    assert reference.record.find(proceedings.key) is None


@pytest.mark.parametrize(("off", "passed"), [(1e-4, True), (1e-3, False)])
def test_without_float64_a_likelihood_is_granted_what_its_precision_loses_and_no_more(
    subject: Subject, tmp_path: Path, off: float, passed: bool
) -> None:
    over = replace(subject, network=replace(subject.network, recursion=900))
    proceedings = jobs_for(over, PEERS, tmp_path / "references")
    runs = filled(proceedings, changed(synthetic.dumps(network=over.network), "grad/head.bias", off))
    (task,) = further_tasks(proceedings)
    assert task.job.settings.precision == "float64"
    assert task.job.certify.noise == pytest.approx(0.7 * 30 / 3 * 2.0**-24)
    fill(task, [{key: array * (1 + 1e-4) for key, array in runs[0].items()}])
    drawn = further_tasks(proceedings)
    assert [each.job.certify.variants for each in drawn] == ([] if passed else [DRAWS[:1]] * 2)
    found = conclude(proceedings)
    assert found.passed is passed
    said = (
        "loses of a log-likelihood of 0.7 nats over 900 steps"
        if passed
        else "The gradient of head.bias is off by 1.0e-03"
    )
    assert said in found.sentence
    assert found.exact is None


def test_a_framework_with_float64_is_held_to_it_whatever_its_loss(subject: Subject, tmp_path: Path) -> None:
    over = replace(subject, exact=True, network=replace(subject.network, recursion=900))
    proceedings = jobs_for(over, PEERS, tmp_path / "references")
    filled(proceedings, changed(synthetic.dumps(network=over.network), "grad/head.bias", 1e-4))
    assert further_tasks(proceedings) == (proceedings.exact, proceedings.sums)


def sloppy(proceedings: Proceedings, definition: float, sums: float) -> Proceedings:
    """Fill everything for a candidate off by 1e-4 in float32: by `definition` in float64, where long sums lose `sums`."""
    runs = synthetic.dumps(network=proceedings.subject.network)
    filled(proceedings, changed(runs, "output/logits", 1e-4))
    fill(proceedings.exact, [runs[0] | changed(runs, "output/logits", definition)])
    fill(proceedings.sums, [runs[0] | {key: runs[0][key] * (1 + sums) for key in runs[0]}])
    return replace(proceedings, subject=replace(proceedings.subject, exact=True))


def test_a_candidate_that_sums_without_care_is_certified_by_its_float64_run(proceedings: Proceedings) -> None:
    found = conclude(sloppy(proceedings, 1e-12, 1e-3))
    assert found.passed
    assert found.exact == pytest.approx(1e-12, rel=0.1)
    assert "in float64" in found.sentence
    assert "what sums of 160 terms may lose" in found.sentence


def test_a_float64_run_that_differs_rejects_whatever_long_sums_may_lose(proceedings: Proceedings) -> None:
    found = conclude(sloppy(proceedings, 1e-4, 1e-3))
    assert not found.passed
    assert found.sentence.startswith("Computed in float64, the output logits is off by 1.0e-04 (")


def test_a_float64_run_does_not_excuse_more_than_long_sums_may_lose(proceedings: Proceedings) -> None:
    found = conclude(sloppy(proceedings, 1e-12, 1e-5))
    assert not found.passed
    assert "The same function in float64, but not in float32" in found.sentence


def write_error(folder: Path, kind: str, message: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    event: dict[str, Any] = {"v": protocol.VERSION, "event": "error", "t_ns": 0, "kind": kind, "message": message}
    (folder / protocol.EVENTS).write_text(json.dumps(event) + "\n", encoding="utf-8")
