"""The jobs that are made from a plan: what a measuring process measures, and when it trains and evaluates."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from measure.scripted_session import ScriptedSession, session
from steelyard.measure import jobs
from steelyard_worker.protocol import Job


def run_with(folder: Path, prepared: str = "", **options: object) -> ScriptedSession:
    return session(folder / "run", lambda *_: 10.0, prepared=prepared, **options)


def measuring(run: ScriptedSession, number: int = 1, attempt: int = 0) -> Job:
    variant = run.plan.variants[0]
    folder = jobs.trial_folder(run.folder, number, attempt, variant)
    return jobs.measuring(run.plan, variant, run.inputs_of(variant.case), number, attempt, folder)


def test_a_job_has_everything_that_its_process_needs(tmp_path: Path) -> None:
    run = run_with(tmp_path, "/prepared")
    (group,), variant = run.plan.groups, run.plan.variants[0]
    job = measuring(run, 3, 1)
    assert (job.kind, job.case, job.round, job.attempt) == ("measure", variant.case, 3, 1)
    assert job.workload_folder == run.plan.workload_folders["line"]
    data = replace(run.inputs_of(variant.case).data, evaluation_limit=group.evaluation_limit)
    assert group.evaluation_limit > 0
    assert (job.weights, job.data) == ("/weights", data)
    assert job.folder == str(run.folder / "trials" / f"r03.1-{variant.file_name}")
    assert job.metric == group.metric == "accuracy"
    certifying = jobs.certifying(run.plan, variant, run.inputs_of(variant.case), tmp_path / "c")
    assert (certifying.kind, certifying.case, certifying.folder) == ("certify", variant.case, str(tmp_path / "c"))
    assert (certifying.weights, certifying.data, certifying.metric) == (job.weights, job.data, "accuracy")
    assert certifying.workload_folder == job.workload_folder


@pytest.mark.parametrize(("number", "evaluated"), [(1, True), (2, False)])
def test_with_an_adaptive_warm_up_only_the_first_round_trains_and_evaluates(
    number: int, evaluated: bool, tmp_path: Path
) -> None:
    run = run_with(tmp_path, "/prepared")
    schedule = measuring(run, number).schedule
    assert schedule.inputs == ("pipeline", "cached")
    assert schedule.evaluate is evaluated
    assert run.plan.groups[0].train_steps > 0
    assert schedule.train_steps == (run.plan.groups[0].train_steps if evaluated else 0)


def test_a_network_without_a_metric_is_not_evaluated(tmp_path: Path) -> None:
    run = run_with(tmp_path, "/prepared")
    groups = tuple(replace(group, metric="none") for group in run.plan.groups)
    schedule = measuring(replace(run, plan=replace(run.plan, groups=groups))).schedule
    assert (schedule.evaluate, schedule.train_steps) == (False, 0)


def test_with_an_adaptive_warm_up_the_cached_batch_is_measured_in_the_first_rounds_only(tmp_path: Path) -> None:
    run = run_with(tmp_path, "/prepared")
    inputs = [measuring(run, number).schedule.inputs for number in range(1, 6)]
    assert inputs == [("pipeline", "cached")] * jobs.ROUNDS_OF_ALL_INPUTS + [("pipeline",)] * 2
    assert measuring(run_with(tmp_path / "without"), 9).schedule.inputs == ("cached",)


@pytest.mark.parametrize(("protocol", "source"), [("sequential", "pipeline"), ("fixed:5+20", "cached")])
def test_a_process_that_tries_settings_measures_the_first_input_alone_and_evaluates_nothing(
    protocol: str, source: str, tmp_path: Path
) -> None:
    run = run_with(tmp_path, "/prepared", protocol=protocol)
    variant = run.plan.variants[0]
    inputs = run.inputs_of(variant.case)
    found = jobs.measuring(run.plan, variant, inputs, 1, 0, tmp_path / "s", inputs=jobs.FIRST).schedule
    assert (found.inputs, found.evaluate, found.train_steps) == ((source,), False, 0)
    profiling = jobs.profiling(run.plan, variant, inputs, 2, tmp_path / "p")
    assert (profiling.kind, profiling.round, profiling.attempt) == ("profile", 2, 0)
    assert (profiling.schedule.inputs, profiling.schedule.evaluate) == ((source,), False)


def test_a_job_has_the_ratio_that_decides_how_many_steps_it_counts(tmp_path: Path) -> None:
    run = run_with(tmp_path)
    variant = run.plan.variants[0]
    found = jobs.measuring(run.plan, variant, run.inputs_of(variant.case), 2, 0, tmp_path / "trial", noise_ratio=3.5)
    assert found.schedule.noise_ratio == 3.5


def test_certificates_run_with_openmp_threads_that_do_not_spin(tmp_path: Path) -> None:
    run = run_with(tmp_path)
    variant = run.plan.variants[0]
    found = jobs.certifying(run.plan, variant, run.inputs_of(variant.case), tmp_path / "c")
    assert found.variables == {"OMP_WAIT_POLICY": "PASSIVE"}
    assert measuring(run).variables == {}


def test_processes_in_which_nothing_is_timed_leave_each_other_room_on_a_gpu(tmp_path: Path) -> None:
    run = run_with(tmp_path)
    variant = run.plan.variants[0]
    of_jax = replace(variant, case=replace(variant.case, framework="jax"))
    inputs = run.inputs_of(variant.case)
    expected = {"OMP_WAIT_POLICY": "PASSIVE", "XLA_PYTHON_CLIENT_PREALLOCATE": "false"}
    assert jobs.certifying(run.plan, of_jax, inputs, tmp_path / "c").variables == expected
    assert jobs.counting(run.plan, of_jax, inputs, tmp_path / "g").variables == expected
    assert jobs.measuring(run.plan, of_jax, inputs, 1, 0, tmp_path / "m").variables == {}


def test_with_a_fixed_warm_up_every_round_evaluates(tmp_path: Path) -> None:
    run = run_with(tmp_path, "/prepared", protocol="fixed:5+20")
    for number in (1, 2):
        schedule = measuring(run, number).schedule
        assert schedule.evaluate is ("pipeline" in schedule.inputs)
        assert (schedule.warmup.count, schedule.counted.count) == (5, 20)


def test_without_data_only_the_cached_batch_is_measured_and_nothing_is_evaluated(tmp_path: Path) -> None:
    schedule = measuring(run_with(tmp_path)).schedule
    assert (schedule.inputs, schedule.evaluate, schedule.train_steps) == (("cached",), False, 0)
