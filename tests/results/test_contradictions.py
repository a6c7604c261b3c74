"""A record that contradicts itself is found, and what a busy machine or another strategy does to a record is no contradiction."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import recorded_trials
from hypothesis import given
from hypothesis import strategies as st

from steelyard.results import round_results, trials
from steelyard.results.contradictions import contradiction
from steelyard.results.events import Block, Watched
from steelyard.results.trials import Trial
from steelyard_worker.case import Settings
from steelyard_worker.strategy import Spread

SECOND = 10**9
STARTED = 100 * SECOND


def _trial(
    blocks: list[Block], kind: str = "", watched: bool = True, threads: int = 1, cores: int = 2, **more: Any
) -> Trial:
    """Return a finished trial; its process is started one second before its first block, and ends a second after the last."""
    spread = Spread(kind, "", "ranks", shares="batch") if kind else None
    settings = Settings("scripted", threads=threads)
    job = recorded_trials.job(Path("/run/r01.0-fake"), spread=spread)
    job = replace(job, case=replace(job.case, settings=settings, strategy=f"{kind}:2" if kind else "single"))
    last = blocks[-1].start_ns + blocks[-1].elapsed_ns
    values = {"spawned_ns": STARTED - SECOND, "ended_ns": last + SECOND, "behind_ns": 0, "cores": cores} | more
    seen = Watched(**values) if watched else None
    return Trial(job.folder, job, blocks=tuple(blocks), applied={"threads": threads}, watched=seen, done=True)  # type: ignore[arg-type]


def _blocks(sent: tuple[int | None, ...], cores: float = 0.9, pace: float = 1.0, late_ns: int = 10**6) -> list[Block]:
    """Return a first step, ten steps of warm-up and counted blocks, with the bytes that each sends per step.

    A step takes 0.1 s, and `cores` are busy. `pace`: of the clock that times the steps.
    """
    found, first = [], 0
    for place, each in enumerate(sent):
        steps, phase = ((1, "first"), (10, "warm-up"))[place] if place < 2 else (50, "counted")
        begin, took = STARTED + first * SECOND // 10, steps * SECOND // 10
        found.append(
            Block(
                "cached",
                phase,
                steps,
                STARTED + round(pace * (begin - STARTED)),
                round(pace * took),
                first,
                cpu_ns=round(cores * took),
                sent_bytes=each and each * steps,
                received_bytes=each and each * steps,
                t_ns=begin + took + late_ns,
            )
        )
        first += steps
    return found


def test_a_right_record_has_no_contradiction() -> None:
    assert contradiction(_trial(_blocks((200_000,) * 5), "processes")) == ""
    assert contradiction(_trial(_blocks((None,) * 5))) == ""


@pytest.mark.parametrize(
    "sent",
    [
        (900_000, 200_000, 0, 0, 0),  # as two ranks did that no longer exchanged gradients after step 10
        (200_000, 200_000, 200_000, 90_000, 200_000),  # in some blocks only half as much
        (900_000, 90_000, 0, 0, 0),  # exchanged in a part of the warm-up
    ],
)
def test_ranks_that_stop_exchanging_contradict_their_first_steps(sent: tuple[int, ...]) -> None:
    found = contradiction(_trial(_blocks(sent), "processes"))
    assert "bytes per step at the beginning, where losses are compared with the certificate" in found
    assert "Its ranks no longer exchange what they did." in found


def test_received_bytes_are_looked_at_as_well() -> None:
    blocks = _blocks((200_000,) * 4)
    blocks[3] = replace(blocks[3], received_bytes=0)
    assert contradiction(_trial(blocks, "processes")).startswith("The first rank received 200,000 bytes per step")


@pytest.mark.parametrize("kind", ["local", "alone", "asynchronous", "devices"])
def test_strategies_that_do_not_exchange_in_every_step_are_left_out(kind: str) -> None:
    assert contradiction(_trial(_blocks((200_000, 200_000, 0, 0)), kind)) == ""


@pytest.mark.parametrize(
    "sent",
    [
        (5_000_000, 200_000, 200_000, 200_000),  # the first step also carries the weights
        (5_000, 5_000, 0, 0),  # nothing but what ranks agree on
        (0, 0, 0, 0),  # through shared memory
        (None, None, None, None),
    ],
)
def test_what_is_no_change_of_the_exchange_is_no_contradiction(sent: tuple[int | None, ...]) -> None:
    assert contradiction(_trial(_blocks(sent), "processes")) == ""


def test_parts_of_a_network_exchange_as_much_as_their_batch_is_long() -> None:
    trial = _trial(_blocks((200_000, 200_000, 50_000, 200_000)), "pipeline")
    assert contradiction(trial)
    case = replace(trial.job.case, sizes=trial.job.case.sizes | {"lengths": "own"})
    spread = Spread("pipeline", "", "ranks", shares="network")
    assert contradiction(replace(trial, job=replace(trial.job, case=case, spread=spread))) == ""


def test_a_clock_at_half_speed_contradicts_the_cpu_time_of_one_thread() -> None:
    """One thread that computes, and Python's own, which prepares the next step meanwhile, are busy for two cores at most."""
    found = contradiction(_trial(_blocks((None,) * 5, cores=2.4), cores=4))
    assert "more than 1 thread and Python's own can use in that time. One of the two is wrong." in found
    assert contradiction(_trial(_blocks((None,) * 5, cores=1.9), cores=4)) == ""
    assert contradiction(_trial(_blocks((None,) * 5, cores=2.4), threads=2, cores=4)) == ""


def test_no_block_uses_more_than_the_cores_of_the_machine() -> None:
    found = contradiction(_trial(_blocks((None,) * 5, cores=2.5), threads=0))
    assert "more than 2 cores can use in that time" in found


def test_the_clock_of_steps_is_compared_with_that_of_events() -> None:
    found = contradiction(_trial(_blocks((None,) * 5, pace=0.5, cores=0.4)))
    assert found.startswith("The clock that timed the steps fell 2.5 s ")
    assert "behind the clock of the events" in found


def test_the_clock_of_events_is_compared_with_that_of_the_launcher() -> None:
    found = contradiction(_trial(_blocks((None,) * 5), behind_ns=5 * SECOND))
    assert found.startswith("The clock of the process was 5.0 s behind that of steelyard when it ended")


def test_a_block_lies_in_the_life_of_its_process() -> None:
    found = contradiction(_trial(_blocks((None,) * 5), ended_ns=STARTED + 3 * SECOND))
    assert "was timed from 2.1 to 7.1 s after the start of the process, which ran for 4.0 s." in found


def test_steps_use_no_more_cpu_time_than_the_system_counted() -> None:
    found = contradiction(_trial(_blocks((None,) * 5), cpu_ns=SECOND))
    assert found.startswith("The steps of the process report 14.5 s of CPU time together, but the system counted 1.0 s")


def test_a_record_without_the_figures_is_not_checked() -> None:
    """Records of earlier versions have no event of the launcher, and scripted clocks have none either."""
    assert contradiction(_trial(_blocks((None,) * 5, cores=9, pace=0.1), watched=False)) == ""


@given(
    cores=st.floats(0, 1.0),
    stopped=st.lists(st.integers(0, 10**12), min_size=5, max_size=5),
    late=st.lists(st.integers(0, 4 * 10**8), min_size=5, max_size=5),
)
def test_a_process_that_is_stopped_or_slowed_down_is_never_a_contradiction(
    cores: float, stopped: list[int], late: list[int]
) -> None:
    """Each block begins later by the time that the process stood still, and is written down after some time."""
    shift, blocks = 0, []
    for block, still, wrote in zip(_blocks((None,) * 5, cores), stopped, late, strict=True):
        shift += still
        begin = block.start_ns + shift
        blocks.append(replace(block, start_ns=begin, t_ns=begin + block.elapsed_ns + wrote))
        shift += wrote
    ended = blocks[-1].t_ns + SECOND
    assert contradiction(_trial(blocks, ended_ns=ended)) == ""


def test_a_trial_with_a_contradiction_counts_as_failed(tmp_path: Path) -> None:
    folder = tmp_path / "r01.0-fake"
    events = recorded_trials.events()
    seen = {"spawned_ns": 0, "ended_ns": SECOND, "behind_ns": 0, "cores": 1, "cpu_ns": None}
    wrong = [event | {"cpu_ns": 3 * event["elapsed_ns"]} if event["event"] == "samples" else event for event in events]
    recorded_trials.write(
        folder, recorded_trials.job(folder), [*wrong, {"v": 2, "event": "watched", "t_ns": 99, **seen}]
    )
    trial = trials.read(folder)
    results = round_results.collect([trial], {})
    error = results.failed[trial.job.case.id].error
    assert error
    assert error[0] == "contradiction"
    assert "more than 1 core can use in that time" in error[1]
    assert not results.has(trial.job.case.id, 1)


@pytest.mark.parametrize("wrong", [{"cores": 0}, {"spawned_ns": -1}, {"behind_ns": "late"}, {"ended_ns": None}])
def test_a_damaged_event_of_the_launcher_is_named(tmp_path: Path, wrong: dict[str, Any]) -> None:
    folder = tmp_path / "r01.0-fake"
    seen = {"spawned_ns": 0, "ended_ns": SECOND, "behind_ns": 0, "cores": 1} | wrong
    events = [*recorded_trials.events(), {"v": 2, "event": "watched", "t_ns": 99, **seen}]
    recorded_trials.write(folder, recorded_trials.job(folder), events)
    with pytest.raises(trials.UserError, match=f"watched.{next(iter(wrong))} must be"):
        trials.read(folder)
