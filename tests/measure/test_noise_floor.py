"""The noise floor of a machine: how it is measured, stored and read again."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path

import pytest

from measure.scripted_session import MACHINE, Screen, ScriptedSession, session
from steelyard.measure import noise_floor
from steelyard.results import record
from steelyard.statistics.calibration import UNCALIBRATED, calibrate


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STEELYARD_CACHE", str(tmp_path / "cache"))


def times(framework: str, number: int, attempt: int, source: str) -> float:
    return 10.0 * math.exp(0.001 * number**2 if attempt == 0 else 0.0)


def stored(tmp_path: Path) -> Path:
    return tmp_path / "cache" / "machines" / f"{MACHINE}.json"


def test_a_measured_floor_is_stored_with_its_ratios(tmp_path: Path) -> None:
    run = session(tmp_path / "run", times)
    floor = noise_floor.noise_floor(run)
    text = stored(tmp_path).read_text()
    found = json.loads(text)
    assert found["noise"] == floor.to_dict()
    assert found["log_ratios"] == pytest.approx([0.001 * (number + 1) ** 2 for number in range(1, 10)], abs=1e-6)
    assert found["variant"] == run.plan.variants[0].key
    assert len(text.splitlines()) > 10
    assert noise_floor.known_floor(MACHINE) == floor == calibrate(found["log_ratios"])
    assert run.messages == [f"Noise floor of this machine: {floor.s_d0:.2%} from round to round."]


def test_the_processes_have_folders_of_their_own_in_pairs(tmp_path: Path) -> None:
    run = session(tmp_path / "run", times)
    noise_floor.noise_floor(run)
    folders = [Path(job.folder).relative_to(run.folder) for job in run.started]
    assert [str(folder) for folder in folders] == [
        f"calibration/r{number:02d}.{side}" for number in range(1, 10) for side in (0, 1)
    ]
    assert all(job.schedule.inputs == ("cached",) and not job.schedule.evaluate for job in run.started)


def test_the_progress_counts_the_pairs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[tuple[object, ...]] = []
    stages: list[str] = []
    monkeypatch.setattr(Screen, "progress", lambda _, *said: shown.append(said))
    monkeypatch.setattr(Screen, "stage", lambda _, title: stages.append(title))
    run = session(tmp_path / "run", times)
    noise_floor.noise_floor(run)
    variant = run.plan.variants[0]
    assert shown[0] == (f"{variant.title} on {variant.group}, pair 1 of 9", 0, 9)
    assert shown[-1] == (f"{variant.title} on {variant.group}, pair 9 of 9", 8, 9)
    assert stages == ["Calibration: one framework against itself"]


@pytest.mark.parametrize("side", [0, 1])
def test_one_failed_process_of_a_pair_ends_the_calibration(side: int, tmp_path: Path) -> None:
    run = session(tmp_path / "run", lambda framework, number, attempt, source: None if attempt == side else 10.0)
    assert noise_floor.noise_floor(run) == UNCALIBRATED
    assert len(run.started) == 2
    assert record.read(run.folder).noise == UNCALIBRATED.to_dict()


def test_the_times_of_a_process_that_failed_later_are_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    complete = ScriptedSession.run_aside
    monkeypatch.setattr(ScriptedSession, "run_aside", lambda self, job: replace(complete(self, job), done=False))
    run = session(tmp_path / "run", times)
    assert noise_floor.noise_floor(run) == UNCALIBRATED


def test_the_case_with_the_cheapest_steps_is_measured(tmp_path: Path) -> None:
    run = session(tmp_path / "run", times)
    first, second = run.plan.groups[0].variants
    larger = replace(first, case=replace(first.case, sizes=first.case.sizes | {"batch": 64}))
    group = replace(run.plan.groups[0], variants=(larger, second))
    run = replace(run, plan=replace(run.plan, groups=(group,)))
    noise_floor.noise_floor(run)
    assert {job.case.id for job in run.started} == {second.case.id}


def test_one_contender_alone_needs_no_floor(tmp_path: Path) -> None:
    run = session(tmp_path / "run", times, frameworks=("fake",))
    assert noise_floor.noise_floor(run) == UNCALIBRATED
    assert not run.started


@pytest.mark.parametrize("text", ["{", "[]", "{}", '{"noise": {}}', '{"noise": 3}', '{"noise": null}'])
def test_a_damaged_floor_counts_as_none_and_is_measured_again(text: str, tmp_path: Path) -> None:
    stored(tmp_path).parent.mkdir(parents=True)
    stored(tmp_path).write_text(text)
    assert noise_floor.known_floor(MACHINE) is None
    assert noise_floor.noise_floor(session(tmp_path / "run", times)).measured


def test_a_known_floor_is_used_even_where_none_would_be_measured(tmp_path: Path) -> None:
    floor = noise_floor.noise_floor(session(tmp_path / "run", times))
    run: ScriptedSession = session(tmp_path / "again", times, calibrate=False)
    assert noise_floor.noise_floor(run) == floor
    assert not run.started
    assert record.read(run.folder).noise == floor.to_dict()
