"""Tests of rounds: repetition of disturbed rounds, contenders that drop out, the input that decides, and time limits."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from measure.scripted_session import NOISY, QUIET, ScriptedSession, measure, session, steady, write_trial
from steelyard.measure import peak, rounds
from steelyard.plan import spreading
from steelyard.results import record, round_results
from steelyard.results.quantities import THROUGHPUT

if TYPE_CHECKING:
    from pathlib import Path

    from steelyard.measure.launch import Watch
    from steelyard.results.trials import Trial
    from steelyard_worker.protocol import Job


def test_a_disturbed_round_is_repeated_as_a_whole_and_its_first_attempt_does_not_count(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = session(tmp_path / "run", steady, rounds="3-3")
    results = measure(run, monkeypatch, QUIET, NOISY)
    for framework in ("fake", "dummy"):
        assert run.runs_of(framework) == [(1, 0), (2, 0), (2, 1), (3, 0)]
    assert [(note["round"], note["attempt"], note["kept"]) for note in run.noted_rounds()] == [
        (1, 0, True),
        (2, 0, False),
        (2, 1, True),
        (3, 0, True),
    ]
    for case in run.plan.groups[0].cases:
        assert results.finished[case.id][2].job.attempt == 1
    assert "is repeated because the machine was disturbed" in run.messages[0]


def test_a_round_is_attempted_at_most_three_times_and_the_last_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = session(tmp_path / "run", steady, rounds="2-2")
    ever_worse = [replace(NOISY, foreign_cores=0.06 * 3**attempt) for attempt in range(6)]
    results = measure(run, monkeypatch, *ever_worse)
    assert run.runs_of("fake") == [(1, 0), (1, 1), (1, 2), (2, 0), (2, 1), (2, 2)]
    assert [note["kept"] for note in run.noted_rounds()] == [False, False, True] * 2
    assert all(note["reasons"] for note in run.noted_rounds())
    assert {trial.job.attempt for each in results.finished.values() for trial in each.values()} == {2}


def test_a_machine_that_is_always_disturbed_repeats_one_round_and_no_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = session(tmp_path / "run", steady, rounds="3-3")
    measure(run, monkeypatch, *[NOISY] * 9)
    assert run.runs_of("fake") == [(1, 0), (1, 1), (2, 0), (3, 0)]
    assert all(note["reasons"] for note in run.noted_rounds()), "the report names them all the same"


def test_a_resumed_run_knows_how_disturbed_the_machine_usually_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = session(tmp_path / "run", steady, rounds="1-1")
    run.note_round(group="other", round=1, attempt=0, kept=True, reasons=["x"], severity=10.0, host_noise={})
    measure(run, monkeypatch, NOISY)
    assert run.runs_of("fake") == [(1, 0)]


def test_without_the_guard_a_disturbed_round_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = session(tmp_path / "run", steady, rounds="2-2", guard=False)
    measure(run, monkeypatch, NOISY, NOISY)
    assert run.runs_of("fake") == [(1, 0), (2, 0)]


def test_a_disturbed_round_with_a_failed_process_is_not_repeated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(framework: str, number: int, attempt: int, source: str) -> float | None:
        return None if framework == "dummy" else 10.0

    run = session(tmp_path / "run", failing, rounds="2-2")
    results = measure(run, monkeypatch, NOISY)
    assert run.runs_of("dummy") == [(1, 0)]
    assert len(results.failed) == 1


def test_a_resumed_run_repeats_a_round_that_was_to_be_repeated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = session(tmp_path / "run", steady, rounds="2-2")
    results = measure(run, monkeypatch)
    run.note_round(group="line:small", round=2, attempt=0, kept=False, reasons=["x"], severity=2.0, host_noise={})
    run.started.clear()
    rounds.measure(run, results)
    assert run.runs_of("fake") == run.runs_of("dummy") == [(2, 1)]


TWO_OF_FAKE = ("fake.step_us=1,2",)


def _script(monkeypatch: pytest.MonkeyPatch, first: float, second: float, dummy: float, unsteady: str) -> None:
    """Script the milliseconds of both variants of Fake and of Dummy; `unsteady` is never decided against one as fast."""

    def scripted(run: ScriptedSession, job: Job, turn: Watch | None = None) -> Trial:
        del turn
        run.started.append(job)
        name = "dummy" if job.case.framework == "dummy" else ("", "first", "second")[job.case.settings.knobs["step_us"]]
        milliseconds = {"first": first, "second": second, "dummy": dummy}[name]
        return write_trial(job, lambda *_: milliseconds * (1 + 0.2 * (job.round % 2) * (name == unsteady)))

    monkeypatch.setattr(ScriptedSession, "run", scripted)


def test_a_decided_contender_drops_out_and_the_others_continue(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = session(tmp_path / "run", steady, knobs=TWO_OF_FAKE)
    _script(monkeypatch, 10.0, 10.0, 40.0, unsteady="second")
    measure(run, monkeypatch)
    assert run.runs_of("dummy") == [(1, 0), (2, 0), (3, 0)]
    undecided = [job.round for job in run.started if job.case.framework == "fake"]
    assert undecided == sorted([*range(1, 13)] * 2), "undecided variants run until the last round"


def test_the_fastest_does_not_end_the_rounds_of_the_others_if_it_is_in_no_verdict(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both others are decided against it, which says nothing of the pair that the page compares."""
    run = session(tmp_path / "run", steady, knobs=TWO_OF_FAKE)
    _script(monkeypatch, 10.0, 10.0, 1.0, unsteady="second")
    measure(run, monkeypatch, not_certified=("dummy",))
    assert run.runs_of("dummy") == [(1, 0), (2, 0), (3, 0)]
    undecided = [job.round for job in run.started if job.case.framework == "fake"]
    assert undecided == sorted([*range(1, 13)] * 2)
    assert {run.plan.by_id[key].case.framework for key in run.rankings[-1].order} == {"fake"}, "as on the page"


def test_a_contender_in_no_verdict_accompanies_the_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = session(tmp_path / "run", steady, knobs=TWO_OF_FAKE)
    _script(monkeypatch, 10.0, 10.0, 10.5, unsteady="second")
    measure(run, monkeypatch, not_certified=("dummy",))
    assert len(run.runs_of("dummy")) > 3, "it could still be as fast as the others"


def test_no_round_is_run_for_a_contender_in_no_verdict_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = session(tmp_path / "run", steady, knobs=TWO_OF_FAKE)
    _script(monkeypatch, 10.0, 40.0, 10.0, unsteady="dummy")
    measure(run, monkeypatch, not_certified=("dummy",))
    assert run.runs_of("dummy") == [(1, 0), (2, 0), (3, 0)]
    assert run.runs_of("fake") == [(1, 0), (1, 0), (2, 0), (2, 0), (3, 0), (3, 0)]


@pytest.mark.parametrize("not_certified", [("dummy",), ("fake", "dummy")])
def test_without_two_certified_contenders_all_are_ranked(
    not_certified: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Such as a process alone beside ranks that exchange nothing: what these bring is measured, though in no verdict."""
    run = session(tmp_path / "run", _undecidable)
    measure(run, monkeypatch, not_certified=not_certified)
    assert len(run.runs_of("fake")) == len(run.runs_of("dummy")) == 12


def test_no_further_round_starts_when_every_pair_is_decided(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = session(tmp_path / "run", steady)
    measure(run, monkeypatch)
    assert run.runs_of("fake") == [(1, 0), (2, 0), (3, 0)]
    (verdict,) = run.rankings[-1].verdicts
    assert verdict.kind == "better"


def test_rounds_are_decided_by_the_rule_of_the_group(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As the verdicts of the page are; it says which pairs are planned."""
    monkeypatch.setattr(spreading, "usable_cores", lambda: 8)
    strategies: dict[str, Any] = {"frameworks": ("fake",), "strategies": ("single:1", "copies:2"), "threads": (1,)}
    run = session(tmp_path / "run", steady, **strategies)
    measure(run, monkeypatch)
    (group,) = run.plan.groups
    rule = run.rankings[-1].plan
    assert rule == group.decision(run.plan.options.delta)
    assert len(rule.planned) == 1


def _undecidable(framework: str, number: int, attempt: int, source: str) -> float:
    """Return times between a clear difference and practical equality, whatever the number of rounds."""
    return 10.0 * (1 + (0.2 * (number % 2) if framework == "fake" else 0.0))


def test_the_time_limit_ends_the_rounds_after_the_first_ones(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = session(tmp_path / "run", _undecidable, minutes=1e-9)
    measure(run, monkeypatch)
    assert run.runs_of("fake") == [(1, 0), (2, 0), (3, 0)]
    assert "The time limit of 1e-09 minutes is reached." in run.messages[-1]


@pytest.mark.parametrize("minutes", [0.0, 60.0])
def test_all_rounds_run_without_a_time_limit_or_within_it(
    minutes: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = session(tmp_path / "run", _undecidable, minutes=minutes)
    measure(run, monkeypatch)
    assert run.runs_of("fake") == [(number, 0) for number in range(1, 13)]
    assert not any("time limit" in message for message in run.messages)


@pytest.mark.parametrize(("prepared", "leader"), [("/prepared", "fake"), ("", "dummy")])
def test_the_pipeline_decides_if_there_is_data_and_otherwise_the_cached_batch(
    prepared: str, leader: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def times(framework: str, number: int, attempt: int, source: str) -> float:
        ahead = (framework == "fake") == (source == "pipeline")
        return (10.0 if ahead else 12.0) * (1 + 0.0005 * (number % 3))

    run = session(tmp_path / "run", times, prepared=prepared, rounds="3-3")
    measure(run, monkeypatch)
    found = run.rankings[-1]
    assert run.plan.by_id[found.leader or ""].case.framework == leader
    assert rounds.primary_input(run, run.plan.groups[0]) == ("pipeline" if prepared else "cached")


def test_a_group_can_be_ranked_by_a_quantity_where_more_is_better(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = session(tmp_path / "run", steady, rounds="3-3")
    results = measure(run, monkeypatch)
    (group,) = run.plan.groups
    by_time = rounds.rank(run, group, results).ranking
    by_throughput = rounds.rank(run, group, results, THROUGHPUT).ranking
    assert by_time.order == by_throughput.order
    assert by_throughput.verdicts[0].ratio == pytest.approx(by_time.verdicts[0].ratio)


@pytest.fixture
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Set an empty cache, without measurements of this machine."""
    monkeypatch.setenv("STEELYARD_CACHE", str(tmp_path / "cache"))


def _at_gflops(run: ScriptedSession, framework: str) -> float:
    """Return the milliseconds per step at which a framework would reach 500 GFLOP/s."""
    (group,) = run.plan.groups
    flops = group.training_flops * group.cases[0].batch
    return flops / 500e9 * 1e3


@pytest.mark.usefixtures("own_cache")
@pytest.mark.parametrize(("gflops", "too_fast"), [(100.0, True), (1000.0, False)])
def test_a_speed_above_the_measured_peak_is_recorded_as_an_error(
    gflops: float, too_fast: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Fake reaches 500 GFLOP/s, Dummy a thousandth of that; the machine's matrix product reaches `gflops`."""
    from steelyard.measure import gemm

    measured = []
    monkeypatch.setattr(gemm, "measure_peak", lambda *_: measured.append(1) or gflops)
    monkeypatch.setattr(peak.bandwidth, "measure", lambda *_: 10.0)
    run = session(tmp_path / "run", lambda *_: None, rounds="1-1")
    fast = max(1e-6, _at_gflops(run, "fake"))
    results = round_results.RoundResults()
    from measure.scripted_session import write_trial

    for variant in run.plan.variants:
        from steelyard.measure import jobs

        folder = jobs.trial_folder(run.folder, 1, 0, variant)
        job = jobs.measuring(run.plan, variant, run.inputs_of(variant.case), 1, 0, folder)
        milliseconds = fast if variant.case.framework == "fake" else 1000 * fast
        results.add(write_trial(job, lambda *_, ms=milliseconds: ms))
    found = peak.check(run, results)
    (fake,) = [v.case.id for v in run.plan.variants if v.case.framework == "fake"]
    assert (found.keys() == {fake}) is too_fast
    assert not too_fast or "more than this machine can do" in found[fake]
    assert record.read(run.folder).above_peak == found
    threads = run.plan.variants[0].case.settings.threads
    assert record.read(run.folder).peak == {f"float32, {threads} threads": {"numpy": gflops}}
    assert len(measured) == (2 if too_fast else 1), "a peak is measured again before a speed is called an error"
