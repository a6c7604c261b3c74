"""A search with scripted processes: who runs how often, what a disturbance and the time limit change, and what is chosen."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from steelyard.measure import search
from steelyard.plan import resolve, tuning
from steelyard.plan.options import Options

if TYPE_CHECKING:
    from steelyard.plan.run_plan import RunPlan
    from steelyard_worker.case import Case

WORKLOADS = str(Path(__file__).resolve().parent.parent / "workloads")
TIMES = (9000, 5000, 14000, 8000, 11000)


@dataclass(frozen=True)
class Stub:
    """What a search needs of a session if its processes are scripted."""

    plan: RunPlan
    folder: Path


@pytest.fixture
def tries(tmp_path: Path) -> search._Tries:
    known = resolve.plan(Options(workloads=("line",), frameworks=("fake",), workload_folders=(WORKLOADS,), guard=False))
    knobs = [f"step_us={','.join(map(str, TIMES))}"]
    plan = tuning.plan(known, "earlier", known.groups[0], "fake", None, 10.0, knobs=knobs)
    assert plan.search
    return search._Tries(Stub(plan, tmp_path), plan.search, plan.groups[0].cases[0], [])  # type: ignore[arg-type]


def step_us(case: Case) -> int:
    return int(case.settings.knobs["step_us"])


def script(
    monkeypatch: pytest.MonkeyPatch, disturbed: bool = False, failing: int = 0, fails_from: int = 1
) -> list[tuple[int, int, int]]:
    """Replace the processes: each takes as long as its setting says. Returns the list of (setting, number, attempt) to come.

    `failing`: the setting of which all processes fail from number `fails_from` on.
    """
    ran: list[tuple[int, int, int]] = []

    def process(session: Any, variant: Any, number: int, attempt: int, label: str) -> tuple[Any, bool]:
        del session, label
        us = step_us(variant.case)
        ran.append((us, number, attempt))
        job = SimpleNamespace(schedule=SimpleNamespace(inputs=("cached",)))
        fails = us == failing and number >= fails_from
        error = ("crash", "It broke.") if fails else None
        trial = SimpleNamespace(job=job, done=not fails, error=error, location_ns=lambda _: 1000.0 * us)
        return trial, disturbed

    monkeypatch.setattr(search, "_process", process)
    return ran


def test_the_faster_half_runs_again_until_one_is_left(tries: search._Tries, monkeypatch: pytest.MonkeyPatch) -> None:
    ran = script(monkeypatch)
    assert search._first_processes(tries) == 0
    search._halve(tries)
    counts = {us: sum(each == us for each, _, _ in ran) for us in (10000, *TIMES)}
    # Of five the faster three run twice, two of them four times, and then one is left.
    assert counts == {10000: 1, 9000: 2, 5000: 4, 14000: 1, 8000: 4, 11000: 1}


@pytest.mark.parametrize("fails_from", [1, 2])
def test_a_candidate_that_fails_is_out(fails_from: int, tries: search._Tries, monkeypatch: pytest.MonkeyPatch) -> None:
    ran = script(monkeypatch, failing=5000, fails_from=fails_from)
    search._first_processes(tries)
    search._halve(tries)
    assert [us for us, _, _ in ran].count(5000) == fails_from
    assert list(tries.reasons.values()) == ["It broke."]
    assert step_us(chosen(tries, lambda _: True)) == 8000


def test_the_usual_settings_must_run(tries: search._Tries, monkeypatch: pytest.MonkeyPatch) -> None:
    script(monkeypatch, failing=10000)
    with pytest.raises(search.UserError, match=r"^The usual settings cannot be measured: It broke\.$"):
        search._first_processes(tries)


@pytest.mark.parametrize("guard", [False, True])
def test_a_disturbed_process_is_followed_by_one_other(
    guard: bool, tries: search._Tries, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = tries.session.plan
    tries.session = replace(tries.session, plan=replace(plan, options=replace(plan.options, guard=guard)))
    ran = script(monkeypatch, disturbed=True)
    search._first_processes(tries)
    assert [attempt for us, _, attempt in ran if us == 5000] == ([0, 1] if guard else [0])


def test_the_time_limit_leaves_the_least(tries: search._Tries, monkeypatch: pytest.MonkeyPatch) -> None:
    tries.began_s -= 60 * tries.search.minutes
    ran = script(monkeypatch)
    left_out = search._first_processes(tries)
    search._halve(tries)
    assert [us for us, _, _ in ran] == [10000, 9000, 5000]
    assert left_out == len(TIMES) - 2


def chosen(tries: search._Tries, passes: Any) -> Any:
    def certify(session: Any) -> dict[str, dict[str, Any]]:
        base, candidate = session.plan.groups[0].cases
        assert step_us(base) == 10000
        return {candidate.id: {"passed": passes(candidate), "sentence": "Another gradient."}}

    return search._certified(tries, certify)


def test_what_is_not_certified_is_not_chosen(tries: search._Tries, monkeypatch: pytest.MonkeyPatch) -> None:
    script(monkeypatch)
    search._first_processes(tries)
    found = chosen(tries, lambda case: step_us(case) != 5000)
    assert step_us(found) == 8000
    outcomes = {tuple(each.settings.values()): (each.outcome, each.reason) for each in search._tried(tries, found)}
    assert outcomes == {
        (): ("usual", ""),
        ("9000",): ("left behind", ""),
        ("5000",): ("not certified", "Another gradient."),
        ("14000",): ("left behind", ""),
        ("8000",): ("chosen", ""),
        ("11000",): ("left behind", ""),
    }


def test_nothing_is_chosen_where_nothing_is_certified(tries: search._Tries, monkeypatch: pytest.MonkeyPatch) -> None:
    script(monkeypatch)
    search._first_processes(tries)
    assert chosen(tries, lambda _: False) is None
    assert len(tries.rejected) == len(TIMES)
