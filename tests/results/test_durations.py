"""Where the time of a run went."""

import pytest

from steelyard.results import durations
from steelyard.results.durations import CERTIFICATES, ENVIRONMENTS, PROCESSES, ROUNDS, TOTAL, Durations, sentence


def test_a_stage_counts_however_it_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    now = iter([10.0, 14.0, 20.0, 21.5, 30.0, 31.0])
    monkeypatch.setattr(durations.time, "monotonic", lambda: next(now))
    found = Durations()
    with found.of(ROUNDS):
        pass
    with pytest.raises(OSError, match="disk"), found.of(ROUNDS):
        raise OSError("disk")
    with found.of(CERTIFICATES):
        pass
    assert found.seconds == {ROUNDS: 5.5, CERTIFICATES: 1.0}
    assert found.added_to({ROUNDS: 4.5, ENVIRONMENTS: 2.0}) == {ROUNDS: 10.0, CERTIFICATES: 1.0, ENVIRONMENTS: 2.0}


def test_a_part_of_a_stage_can_be_counted_as_another() -> None:
    found = Durations({CERTIFICATES: 50.0})
    found.move(20.0, CERTIFICATES, ENVIRONMENTS)
    found.move(1.0, CERTIFICATES, ENVIRONMENTS)
    assert found.seconds == {CERTIFICATES: 29.0, ENVIRONMENTS: 21.0}


def test_the_sentence_has_every_stage_once_and_the_idle_time() -> None:
    times = {TOTAL: 150.0, ENVIRONMENTS: 77.2, CERTIFICATES: 3.0, ROUNDS: 100.0, PROCESSES: 88.0}
    assert (
        sentence(times)
        == "Time: 2 min 30 s (environments 1 min 17 s, certificates 3 s, rounds 1 min 40 s, 12 s of it idle)."
    )
    assert sentence({}) == ""


def test_processes_of_other_machines_are_not_taken_for_idle_time() -> None:
    assert sentence({TOTAL: 150.0, ROUNDS: 100.0}) == "Time: 2 min 30 s (rounds 1 min 40 s)."
