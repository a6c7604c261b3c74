"""Which variants run in which round, what ends the rounds, and what is noted and said about them."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from measure.scripted_session import (
    NOISY,
    QUIET,
    Sampler,
    Screen,
    ScriptedSession,
    measure,
    session,
    steady,
    write_trial,
)
from steelyard.host.noise import HostNoise
from steelyard.measure import attempts, jobs, peak, rounds
from steelyard.results import record, round_results
from steelyard_worker.network import Parameter

if TYPE_CHECKING:
    from pathlib import Path

    from steelyard.results.round_results import RoundResults


def undecidable(framework: str, number: int, attempt: int, source: str) -> float:
    return 10.0 * (1 + (0.05 if framework == "fake" else -0.05) * (-1) ** number)


def test_a_fixed_protocol_runs_every_variant_in_every_round_whatever_is_decided(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = session(tmp_path / "run", steady, protocol="fixed:5+20", rounds="5-5")
    measure(run, monkeypatch)
    assert run.runs_of("fake") == run.runs_of("dummy") == [(number, 0) for number in range(1, 6)]


def test_a_case_that_failed_does_not_run_again_and_alone_the_other_stops_after_the_first_rounds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def times(framework: str, number: int, attempt: int, source: str) -> float | None:
        return None if (framework, number) == ("dummy", 2) else undecidable(framework, number, attempt, source)

    run = session(tmp_path / "run", times)
    measure(run, monkeypatch)
    assert run.runs_of("dummy") == [(1, 0), (2, 0)]
    assert run.runs_of("fake") == [(1, 0), (2, 0), (3, 0)]


@pytest.mark.parametrize("prepared", ["", "/prepared"])
def test_one_contender_alone_runs_the_first_rounds(
    prepared: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = session(tmp_path / "run", steady, frameworks=("fake",), prepared=prepared)
    measure(run, monkeypatch)
    assert run.runs_of("fake") == [(1, 0), (2, 0), (3, 0)]


def test_one_contender_alone_runs_no_round_beyond_the_first_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = session(tmp_path / "run", steady, frameworks=("fake",), rounds="1-5")
    measure(run, monkeypatch)
    assert run.runs_of("fake") == [(1, 0)]


def test_the_ranking_is_shown_after_each_round_and_returned(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[tuple[str, dict[str, str]]] = []
    started: list[tuple[int, str]] = []
    monkeypatch.setattr(Screen, "ranking", lambda _, group, ranking, titles: shown.append((group, titles)))
    monkeypatch.setattr(Screen, "trial", lambda _, number, variant: started.append((number, variant.case.framework)))
    monkeypatch.setattr(attempts, "Sampler", Sampler())
    run = session(tmp_path / "run", steady, rounds="3-3")
    rankings = rounds.measure(run, round_results.RoundResults())
    (group,) = run.plan.groups
    assert shown == [(group.name, group.titles)] * 3
    assert [(job.round, job.case.framework) for job in run.started] == started
    assert rankings.keys() == {group.name}
    assert rankings[group.name].rounds_run == 3
    assert rankings[group.name].verdicts[0].kind == "better"


@pytest.mark.parametrize(("delta", "kind"), [(0.02, "better"), (0.5, "equal")])
def test_the_delta_of_the_options_decides(
    delta: float, kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = session(tmp_path / "run", steady, rounds="3-3", delta=delta)
    measure(run, monkeypatch)
    assert run.rankings[-1].verdicts[0].kind == kind


def with_minutes(run: ScriptedSession, minutes: float) -> ScriptedSession:
    """Return the session of a study with this time limit."""
    return replace(run, plan=replace(run.plan, study=replace(run.plan.study, minutes=minutes)))


def test_the_time_limit_is_that_of_the_study_unless_the_user_gives_one(tmp_path: Path) -> None:
    assert rounds.minutes_of(with_minutes(session(tmp_path / "a", steady), 7.0)) == 7.0
    assert rounds.minutes_of(with_minutes(session(tmp_path / "b", steady, minutes=3.0), 7.0)) == 3.0
    assert rounds.minutes_of(with_minutes(session(tmp_path / "c", steady, minutes=0.0), 7.0)) == float("inf")
    assert rounds.minutes_of(with_minutes(session(tmp_path / "d", steady), 0.0)) == float("inf")


@pytest.mark.parametrize(("seconds_per_round", "last"), [(20.2, 6), (19.9, 7)])
def test_no_round_starts_after_the_minutes_of_the_limit(
    seconds_per_round: float, last: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two minutes are allowed. The clock advances by the time of a round when its second process ends."""
    run = with_minutes(session(tmp_path / "run", undecidable), 2.0)
    clock = SimpleNamespace(monotonic=lambda: 1000.0 + seconds_per_round * (len(run.started) // 2))
    monkeypatch.setattr(rounds, "time", clock)
    measure(run, monkeypatch)
    assert max(job.round for job in run.started) == last
    assert run.messages[-1] == (
        "The time limit of 2 minutes is reached. For more rounds, use "
        f"steelyard run --resume run --runs {tmp_path}; --minutes 0 removes the limit."
    )


def test_a_repeated_round_is_announced_with_its_reasons_and_noted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    noisy = replace(NOISY, steal_share=0.2)
    run = session(tmp_path / "run", steady, rounds="1-1")
    measure(run, monkeypatch, noisy)
    first, second = run.noted_rounds()
    assert len(first["reasons"]) == 2
    assert first["severity"] == pytest.approx(20.0), "20 % of steal, of which 1 % is allowed"
    assert run.messages == [
        f"Round 1 of line:small is repeated because the machine was disturbed: {'; '.join(first['reasons'])}."
    ]
    assert (first["group"], first["round"], first["attempt"], first["kept"]) == ("line:small", 1, 0, False)
    assert first["host_noise"]["foreign_cores"] == noisy.foreign_cores
    assert (second["attempt"], second["kept"], second["reasons"]) == (1, True, [])
    assert second["host_noise"]["foreign_cores"] == QUIET.foreign_cores


def test_a_round_whose_trials_ran_at_different_frequencies_is_repeated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Changing(Sampler):
        def summary(self, since_ns: int = 0, until_ns: int | None = None) -> HostNoise:
            if until_ns is None:
                return QUIET
            spans.append((since_ns, until_ns))
            return replace(QUIET, frequency_mhz=3000.0 if len(spans) == 1 else 2000.0)

    spans: list[tuple[int, int]] = []
    run = session(tmp_path / "run", steady, rounds="1-1")
    monkeypatch.setattr(attempts, "Sampler", Changing())
    rounds.measure(run, round_results.RoundResults())
    assert [note["kept"] for note in run.noted_rounds()] == [False, True]
    assert all(until > since >= 10**12 for since, until in spans)
    assert len(spans) == 4


def test_an_earlier_attempt_is_never_overwritten(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = session(tmp_path / "run", steady, rounds="1-1")
    for attempt, variant in ((0, run.plan.variants[0]), (1, run.plan.variants[1])):
        jobs.trial_folder(run.folder, 1, attempt, variant).mkdir(parents=True)
    measure(run, monkeypatch)
    assert run.runs_of("fake") == run.runs_of("dummy") == [(1, 2)]


def test_a_resumed_run_repeats_what_failed_and_keeps_what_is_done(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = True

    def times(framework: str, number: int, attempt: int, source: str) -> float | None:
        return None if broken and (framework, number) == ("dummy", 2) else steady(framework, number, attempt, source)

    run = session(tmp_path / "run", times, rounds="2-2")
    results = measure(run, monkeypatch)
    assert len(results.failed) == 1
    broken = False
    run.started.clear()
    rounds.measure(run, results)
    assert [(job.case.framework, job.round, job.attempt) for job in run.started] == [("dummy", 2, 1)]


def test_the_order_of_a_round_depends_on_the_seed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    orders = set()
    for seed in range(8):
        run = session(tmp_path / f"run{seed}", steady, rounds="4-4", protocol="fixed:5+20", seeds=(seed,))
        measure(run, monkeypatch)
        orders.add(tuple(job.case.framework for job in run.started))
    assert len(orders) > 1


@pytest.fixture
def own_peak(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[tuple[Any, ...]]:
    """Set an empty cache, and a machine whose matrix product reaches 100 GFLOP/s; returns what was measured."""
    monkeypatch.setenv("STEELYARD_CACHE", str(tmp_path / "cache"))
    measured: list[tuple[Any, ...]] = []
    monkeypatch.setattr(peak.gemm, "measure_peak", lambda *asked: measured.append(asked) or 100.0)
    monkeypatch.setattr(peak.bandwidth, "measure", lambda *_: 10.0)
    return measured


def one_round(run: ScriptedSession, milliseconds: float) -> RoundResults:
    """Return the results of one round in which every process took this time per step."""
    results = round_results.RoundResults()
    for variant in run.plan.variants:
        folder = jobs.trial_folder(run.folder, 1, 0, variant)
        job = jobs.measuring(run.plan, variant, run.inputs_of(variant.case), 1, 0, folder)
        results.add(write_trial(job, lambda *_: milliseconds))
    return results


@pytest.mark.parametrize(("threads", "precision", "expected"), [(3, "float32", 3), (0, "float64", 2)])
def test_the_message_about_an_impossible_speed_is_a_sentence(
    threads: int, precision: str, expected: int, tmp_path: Path, own_peak: list[tuple[Any, ...]]
) -> None:
    run = session(tmp_path / "run", steady, frameworks=("fake",), threads=(threads,), precisions=(precision,))
    (group,) = run.plan.groups
    groups = (replace(group, training_flops=10**9),)
    run = replace(run, plan=replace(run.plan, groups=groups))
    # 16 samples of 1 GFLOP in 80 ms are 200 GFLOP/s.
    found = peak.check(run, one_round(run, 80.0))
    (sentence,) = found.values()
    assert sentence == (
        f"200 GFLOP/s is more than this machine can do (its best {precision} matrix product reaches 100), so the measured time or "
        "the number of operations is wrong."
    )
    assert own_peak[0] == (expected, precision)
    assert record.read(run.folder).peak == {f"{precision}, {expected} threads": {"numpy": 100.0}}


@pytest.mark.parametrize("fast", ["pipeline", "cached"])
def test_the_faster_of_the_two_inputs_is_checked(fast: str, tmp_path: Path, own_peak: list[tuple[Any, ...]]) -> None:
    run = session(tmp_path / "run", steady, frameworks=("fake",), prepared="/prepared")
    groups = (replace(run.plan.groups[0], training_flops=10**9),)
    run = replace(run, plan=replace(run.plan, groups=groups))
    results = round_results.RoundResults()
    (variant,) = run.plan.variants
    folder = jobs.trial_folder(run.folder, 1, 0, variant)
    job = jobs.measuring(run.plan, variant, run.inputs_of(variant.case), 1, 0, folder)
    results.add(write_trial(job, lambda framework, number, attempt, source: 80.0 if source == fast else 800.0))
    assert peak.check(run, results).keys() == {variant.case.id}


def on_gpu(run: ScriptedSession, **knobs: bool) -> ScriptedSession:
    """Return the session with its only case on a GPU, where 16 samples of 1 GFLOP take 1 ms: 16 TFLOP/s."""
    (group,) = run.plan.groups
    (variant,) = group.variants
    settings = replace(variant.case.settings, device="cuda", knobs=knobs)
    moved = replace(variant, case=replace(variant.case, settings=settings))
    groups = (replace(group, training_flops=10**9, variants=(moved,)),)
    return replace(run, plan=replace(run.plan, groups=groups))


@pytest.mark.parametrize(
    ("tf_per_s", "convolves", "knobs", "recorded"),
    [
        (20.0, False, {}, ""),
        (15.0, False, {}, "above_peak"),
        (15.0, True, {}, "fewer_multiplications"),
        (3.9, True, {}, "above_peak"),
        (3.9, True, {"tf32": True}, ""),
        (None, False, {}, ""),
    ],
)
def test_a_speed_on_a_gpu_is_compared_with_the_peak_of_the_gpu(
    tf_per_s: float | None,
    convolves: bool,
    knobs: dict[str, bool],
    recorded: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    run = on_gpu(session(tmp_path / "run", steady, frameworks=("fake",)), **knobs)
    kernel = Parameter("conv", (8, 3, 3, 3) if convolves else (8, 3, 1, 1), "conv", "")
    monkeypatch.setattr(peak.workloads, "described", lambda *_: SimpleNamespace(parameters=[kernel]))
    monkeypatch.setattr(peak.gpu, "peak_gflops", lambda: tf_per_s and 1000 * tf_per_s)
    peak.check(run, one_round(run, 1.0))
    known, (case,) = record.read(run.folder), run.plan.by_id
    found = {name for name in ("above_peak", "fewer_multiplications") if case in getattr(known, name)}
    assert found == ({recorded} if recorded else set())


def test_speeds_on_other_devices_are_not_compared_with_the_processor(
    tmp_path: Path, own_peak: list[tuple[Any, ...]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(peak.gpu, "peak_gflops", lambda: None)
    run = on_gpu(session(tmp_path / "run", steady, frameworks=("fake",)))
    assert peak.check(run, one_round(run, 1.0)) == {}
    assert own_peak == []
    assert record.read(run.folder).peak == {}


def test_without_a_finished_round_no_peak_is_measured(tmp_path: Path, own_peak: list[tuple[Any, ...]]) -> None:
    run = session(tmp_path / "run", steady)
    assert peak.check(run, round_results.RoundResults()) == {}
    assert own_peak == []


@pytest.mark.parametrize(("threads", "expected"), [(3, 3), (0, 2), (None, None)])
def test_a_case_uses_its_threads_or_every_core(threads: int | None, expected: int | None, tmp_path: Path) -> None:
    run = session(tmp_path / "run", steady, threads=() if threads is None else (threads,))
    variant = run.plan.variants[0]
    assert record.read(run.folder).threads_of(variant.case) == (expected or variant.case.settings.threads)
