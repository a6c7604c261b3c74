"""The search for the largest batch that trains: its steps, its result, and what becomes of processes that do not fit."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from measure.scripted_session import ScriptedSession, measure, session, write_trial
from steelyard.catalog import frameworks
from steelyard.measure import largest_batch
from steelyard.measure.largest_batch import MOST, SHARE, search, search_below
from steelyard.plan import estimate
from steelyard.plan.memory import PROCESS_BYTES
from steelyard.results import trials
from steelyard.results.quantities import LARGEST_BATCH, THROUGHPUT

if TYPE_CHECKING:
    from steelyard.measure.launch import Watch
    from steelyard.results.trials import Trial
    from steelyard_worker.protocol import Job


@pytest.mark.parametrize("first", [1, 8, 64, 4096])
@pytest.mark.parametrize("most", [1, 2, 3, 7, 8, 9, 15, 16, 17, 23, 100, 128, 1000])
def test_the_result_is_known_to_an_eighth_of_the_power_of_two_below_it(most: int, first: int) -> None:
    tried: list[int] = []

    def fits(batch: int) -> bool:
        tried.append(batch)
        return batch <= most

    passed, failed = search(fits, first)
    assert max(passed) <= most < failed
    assert failed - max(passed) <= max(1, (1 << most.bit_length() - 1) // SHARE)
    assert len(tried) == len(set(tried)), "no batch is tried twice"
    assert len(tried) <= abs(first.bit_length() - most.bit_length()) + 5


def test_if_not_even_one_sample_fits_the_search_ends_with_nothing() -> None:
    assert search(lambda _: False, 16) == ([], 1)


def test_if_everything_fits_the_search_ends_as_well() -> None:
    passed, failed = search(lambda _: True, 2**18)
    assert (max(passed), failed) == (MOST, 0)


@dataclass(frozen=True)
class Limited(ScriptedSession):
    """Processes of a framework fit up to its batch in `fitting`; those of the rounds, up to its batch in `again`."""

    fitting: dict[str, int] = field(default_factory=dict)
    again: dict[str, int] = field(default_factory=dict)
    crashing: int = 0

    def run(self, job: Job, turn: Watch | None = None) -> Trial:
        del turn
        self.started.append(job)
        return self._trial(job, self.fitting if job.kind == "probe" else self.fitting | self.again)

    def _trial(self, job: Job, fitting: dict[str, int]) -> Trial:
        batch = job.schedule.batch
        trial = write_trial(job, self.times if batch <= fitting[job.case.framework] else lambda *_: None)
        if not trial.done:
            events = Path(job.folder) / "events.jsonl"
            kind = "crash" if batch == self.crashing else "out-of-memory"
            events.write_text(events.read_text().replace('"crash"', f'"{kind}"'))
        return trials.read(Path(job.folder))


def limited(folder: Path, **more: object) -> Limited:
    """Return a session of Fake and Dummy, in which a step takes 10 ms."""
    made = session(folder, lambda *_: 10.0, protocol="largest-batch:3", memory_limits=("1 GB",))
    return Limited(**{**vars(made), **more})


def test_a_row_is_measured_at_its_largest_batch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = limited(tmp_path / "run", fitting={"fake": 100, "dummy": 21})
    results = measure(run, monkeypatch)
    found = {trial.job.case.framework: trial for trial in (rounds[1] for rounds in results.finished.values())}
    assert {name: trial.batch for name, trial in found.items()} == {"fake": 96, "dummy": 20}
    assert {name: trial.job.schedule.failed_batch for name, trial in found.items()} == {"fake": 104, "dummy": 22}
    assert LARGEST_BATCH.read(found["fake"], "cached") == 96
    assert THROUGHPUT.read(found["fake"], "cached") == pytest.approx(96 / 0.01)
    probes = sorted((run.folder / "probes").glob("*fake*/job.json"))
    tried = {json.loads(path.read_text())["schedule"]["batch"] for path in probes}
    assert {64, 128, 96, 112, 104} <= tried
    assert all(json.loads(path.read_text())["kind"] == "probe" for path in probes)
    assert [each.job.kind for each in trials.read_all(run.folder)[0]] == ["measure", "measure"]


def test_a_batch_that_fits_once_but_not_again_is_not_the_result(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = limited(tmp_path / "run", fitting={"fake": 100, "dummy": 4}, again={"fake": 90})
    results = measure(run, monkeypatch)
    (fake,) = [rounds[1] for rounds in results.finished.values() if rounds[1].job.case.framework == "fake"]
    assert (fake.batch, fake.job.schedule.failed_batch) == (88, 96)
    assert list((run.folder / "probes").glob("*fake*-batch96-again/events.jsonl"))
    assert list((run.folder / "probes").glob("*fake*-batch80/events.jsonl"))
    assert any("a batch of 96 fitted once, but not again" in message for message in run.messages)


@pytest.mark.parametrize("again", [1, 2, 3, 5, 15, 16, 31, 33, 63, 64, 65, 95, 99])
def test_a_search_that_goes_on_below_a_batch_is_as_exact(again: int) -> None:
    """Of a probe 100 samples fit, of the process that counts only `again`; nothing is tried twice."""
    tried: list[int] = []

    def fits(batch: int) -> bool:
        tried.append(batch)
        return batch <= 100

    passed, failed = search(fits, 16)
    counted = []
    while max(passed) > again:
        counted.append(max(passed))
        passed, failed = search_below(fits, counted[-1], [each for each in passed if each < counted[-1]])
    assert failed - max(passed) <= max(1, (1 << max(passed).bit_length() - 1) // SHARE)
    assert max(passed) <= again < failed
    assert len(tried) == len(set(tried))


def test_a_search_that_goes_on_below_ends_with_nothing_where_one_sample_does_not_fit() -> None:
    assert search_below(lambda _: False, 16, []) == ([], 1)
    assert search_below(lambda _: False, 1, []) == ([], 1)


def test_a_search_that_goes_on_below_leaves_what_passed_before_as_it_was() -> None:
    before = [16, 24]
    passed, failed = search_below(lambda batch: batch <= 25, 27, before)
    assert (max(passed), failed) == (25, 27), "24 and 27 are more than an eighth of 16 apart"
    assert before == [16, 24]


def test_a_search_that_is_stopped_tries_nothing_more() -> None:
    tried: list[int] = []

    def fits(batch: int) -> bool:
        tried.append(batch)
        return batch <= 100

    search(fits, 64, lambda: len(tried) == 3)
    assert tried == [64, 128, 96]
    search(fits, 1024, lambda: len(tried) == 5)
    assert tried[3:] == [1024, 512]


def test_the_row_says_why_where_no_batch_fits_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = limited(tmp_path / "run", fitting={"fake": 3, "dummy": 4}, again={"fake": 0})
    (failed,) = measure(run, monkeypatch).failed.values()
    assert (failed.job.case.framework, failed.batch, failed.error) == ("fake", 1, ("out-of-memory", "It broke."))


def test_if_nothing_fits_the_row_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    results = measure(limited(tmp_path / "run", fitting={"fake": 0, "dummy": 4}), monkeypatch)
    (failed,) = results.failed.values()
    assert (failed.job.case.framework, failed.batch, failed.error) == ("fake", 1, ("out-of-memory", "It broke."))


def test_a_crash_ends_the_search_and_is_the_result(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = limited(tmp_path / "run", fitting={"fake": 100, "dummy": 300}, crashing=128)
    results = measure(run, monkeypatch)
    (failed,) = results.failed.values()
    assert (failed.job.case.framework, failed.batch, failed.error) == ("fake", 128, ("crash", "It broke."))


def test_the_search_begins_where_the_estimate_ends(tmp_path: Path) -> None:
    run = limited(tmp_path / "run", fitting={})
    (variant, _) = run.plan.variants
    from steelyard.measure import jobs

    folder = jobs.trial_folder(run.folder, 1, 0, variant)
    job = jobs.measuring(run.plan, variant, run.inputs_of(variant.case), 1, 0, folder)
    first = [
        largest_batch._first(run, replace(job, case=replace(job.case, memory_limit=limit)))
        for limit in (1000, PROCESS_BYTES + 10**5, 100 * 10**9)
    ]
    assert first[0] == 1
    assert 1 < first[1] < first[2] <= MOST
    assert all(each & (each - 1) == 0 for each in first), "powers of two"


def test_a_search_takes_longer_than_one_process(tmp_path: Path) -> None:
    plan = limited(tmp_path / "run", fitting={}).plan
    starts = [frameworks.framework(each.case.framework).start_s(each.case.settings.mode) for each in plan.variants]
    assert estimate.estimate(plan)["rounds"] > 7 * sum(starts)
