"""Which certificate the results of its processes lead to."""

from __future__ import annotations

import json
import shutil
from dataclasses import asdict, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import subjects
import synthetic
from planned import REFERENCES, changed, fill, filled, undecided, write_error

from steelyard.certificates import evidence as module_of_evidence
from steelyard.certificates import record, references
from steelyard.certificates.causes import CAUSES
from steelyard.certificates.conclusion import conclude, next_tasks
from steelyard.certificates.dumps import read
from steelyard.certificates.evidence import Evidence
from steelyard.certificates.method import LIMIT, VERSION, Scope, method_for
from steelyard.certificates.plan import CertificationPlan, plan_certification, with_arbiter
from steelyard.certificates.references import has_reference, reference_folder
from steelyard.certificates.sources import implementation_hash, specification_hash
from steelyard.errors import UserError
from steelyard_worker import protocol, records
from steelyard_worker.case import RateSchedule
from steelyard_worker.distances import sampled

if TYPE_CHECKING:
    from steelyard.certificates.plan import Candidate


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


def test_the_changes_of_every_trained_tensor_in_two_steps_are_recorded_with_what_is_allowed(
    plan: CertificationPlan,
) -> None:
    filled(plan, {})
    found, saved = conclude(plan), read(plan.candidate_task)
    trained = [each.name for each in plan.candidate.network.parameters if each.trainable and not each.zero_gradient]
    assert list(found.updates) == list(found.update_limits) == trained
    for name, changes in found.updates.items():
        whole = saved[f"after2/{name}"].astype("f8") - saved[f"after0/{name}"]
        assert changes == pytest.approx(sampled(whole, 16).reshape(-1).tolist(), rel=1e-6)
        assert any(changes)
    assert all(0 < limit < 1 for limit in found.update_limits.values())


def test_no_changes_are_recorded_whose_learning_rates_are_not_those_of_training(plan: CertificationPlan) -> None:
    """With a rate that changes, a certificate of two steps has the rate of training in the first one only."""
    filled(plan, {})
    evidence = Evidence(plan, references.load(plan))
    assert len(evidence.updates()[0]) > 0
    job = plan.candidate_task.job
    rule = replace(job.case.optimizer, schedule=RateSchedule("step", every=1, factor=0.5))
    changing = replace(plan.candidate_task, job=replace(job, case=replace(job.case, optimizer=rule)))
    real = replace(plan, candidate_task=changing)
    assert len(Evidence(real, evidence.references, evidence.known).updates()[0]) > 0
    short = replace(real, candidate=replace(plan.candidate, scope=Scope(2)))
    assert Evidence(short, evidence.references, evidence.known).updates() == ({}, {})


def test_a_conclusion_reads_the_tensors_of_a_candidate_a_few_times_however_many_there_are(
    plan: CertificationPlan, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every reading checks the whole index, so one for each tensor would take time with the square of their number."""
    filled(plan, {})
    evidence = Evidence(plan, references.load(plan))
    reads: list[Any] = []
    monkeypatch.setattr(module_of_evidence, "read", lambda task, *more: reads.append(task) or read(task, *more))
    assert len(evidence.updates()[0]) > 3
    assert len(evidence.losses()[0]) > 3
    assert reads.count(plan.candidate_task) <= 3


def test_cached_references_are_reused(plan: CertificationPlan) -> None:
    filled(plan, {})
    conclude(plan)
    for task in plan.reference_tasks:
        shutil.rmtree(task.job.folder)
    assert conclude(plan).passed


@pytest.mark.parametrize("damage", ["truncated", "one bit"])
def test_a_damaged_reference_is_not_used(
    plan: CertificationPlan, damage: str, capsys: pytest.CaptureFixture[str]
) -> None:
    filled(plan, {})
    conclude(plan)
    for path in record.folder().rglob("tensors.bin"):
        content = path.read_bytes()
        path.write_bytes(content[:100] if damage == "truncated" else bytes([content[0] ^ 1]) + content[1:])
    capsys.readouterr()
    assert not has_reference(plan)
    said = f"steelyard: {reference_folder(plan)} was changed or damaged after it was written, so it is not used.\n"
    assert capsys.readouterr().err == said
    assert conclude(plan).passed
    assert has_reference(plan), "it was made again"


def test_a_candidate_that_differs_is_rejected_with_the_tensor_and_its_units(plan: CertificationPlan) -> None:
    runs = synthetic.dumps(network=plan.candidate.network)
    filled(plan, changed(runs, "grad/lstm.layer0.forward.w_hh", 1e-3))
    found = conclude(plan)
    assert not found.passed
    assert found.first == 'the gradient of "lstm.layer0.forward.w_hh"'
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
        "The first difference is in the loss: error 7.0e-04 nats, " in found.sentence
    )
    assert arbitrated.key != plan.key


def test_three_references_of_which_no_two_agree_certify_nothing(plan: CertificationPlan) -> None:
    runs = filled(plan, {})
    fill(plan.reference_tasks[1], [runs[0] | changed(runs, "loss", 1e-5)])
    arbitrated = with_arbiter(plan, subjects.installation("tensorflow"))
    fill(arbitrated.reference_tasks[0], [run | changed(runs, "loss", -1e-5) for run in runs])
    found = conclude(arbitrated)
    assert not found.passed
    assert "because PyTorch 0 and JAX 0 disagree in float64, so one of them is wrong." in found.sentence
    assert "TensorFlow 0, which was computed as a third, differs from both: by " in found.sentence
    assert "probably wrong" not in found.sentence
    assert record.find(arbitrated.key) is None


def test_the_reference_that_is_much_farther_from_a_third_is_named(plan: CertificationPlan) -> None:
    """The third one computes a function in less precision; what is reported first is the mistake, not that."""
    runs = filled(plan, {})
    fill(plan.reference_tasks[1], [runs[0] | changed(runs, "output/logits", 1e-3)])
    arbitrated = with_arbiter(plan, subjects.installation("tensorflow"))
    slightly = "grad/lstm.layer0.forward.w_hh"
    fill(arbitrated.reference_tasks[0], [run | changed(runs, slightly, 2e-9) for run in runs])
    sentence = conclude(arbitrated).sentence
    assert "because PyTorch 0 and JAX 0 disagree in float64, so one of them is wrong." in sentence
    assert 'The first difference is in the output "logits": ' in sentence
    assert sentence.endswith("So JAX 0 is probably wrong.")
    assert "frozen" not in sentence


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


def test_tasks_of_the_reference_that_another_candidate_has_run_do_not_count_as_started(plan: CertificationPlan) -> None:
    runs = synthetic.dumps(network=plan.candidate.network)
    filled(plan, changed(runs, "output/logits", 1e-4))
    over = replace(plan, candidate=replace(plan.candidate, has_float64=True))
    fill(plan.long_sums_task, runs[:1])
    Path(plan.small_tasks[0][0].job.folder).mkdir(parents=True)
    assert next_tasks(over) == (plan.float64_task, *plan.small_tasks[0])


def test_a_certificate_states_what_was_certified_with_what_and_how(plan: CertificationPlan) -> None:
    runs = synthetic.dumps(network=plan.candidate.network)
    filled(plan, changed(runs, "grad/head.bias", 1e-7))
    found, case = conclude(plan), plan.candidate_task.job.case
    assert (found.key, found.framework, found.version) == (plan.key, "mxnet", "0")
    assert (found.workload, found.preset) == ("lstm-imdb", "tiny")
    assert (found.settings, found.inputs) == (asdict(case.settings), plan.candidate.inputs)
    assert found.optimizer == json.loads(records.to_line(case.optimizer))
    assert (found.method, found.steps, found.limit) == (VERSION, 5, LIMIT)
    assert (found.first, found.stage, found.float64_error) == ("", "", None)
    assert found.worst == 'the gradient of "head.bias"'
    assert 0 < found.worst_units < LIMIT
    assert found.tensors == len(runs[0]) == 57
    assert found.resolution.keys() >= {"outputs", "loss", "gradients"}
    assert found.implementation == implementation_hash(plan.candidate_task.job)
    assert found.specification == specification_hash(plan.candidate_task.job)
    assert abs(datetime.now(UTC) - datetime.fromisoformat(found.created)) < timedelta(minutes=5)
    assert record.load_all() == [found]


def test_a_rejected_certificate_keeps_the_agreement_of_the_references(plan: CertificationPlan) -> None:
    runs = filled(plan, {})
    fill(plan.reference_tasks[1], [runs[0] | changed(runs, "loss", 1e-6)])
    assert conclude(plan).agreement == pytest.approx(0.7e-6, rel=1e-3)
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
