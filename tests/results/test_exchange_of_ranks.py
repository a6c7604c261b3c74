"""What ranks exchanged, from their records: bytes of counted steps, an all-reduce by itself, stale gradients."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
import recorded_trials

from steelyard.errors import UserError
from steelyard.results import communication, trials
from steelyard_worker import protocol
from steelyard_worker.strategy import Spread

if TYPE_CHECKING:
    from pathlib import Path

    from steelyard.results.trials import Trial

COPIES = Spread("processes", "", "ranks")
NAME = "a-variant"
MEGABYTE = 1_000_000


def block(milliseconds: float, calls: int = 10, phase: str = "counted", sent: int | None = None) -> dict[str, Any]:
    """Return the event of a block whose all-reduces of a megabyte take so long each."""
    return {
        "event": "all-reduce",
        "collective": "sum",
        "phase": phase,
        "bytes": MEGABYTE,
        "processes": 2,
        "calls": calls,
        "elapsed_ns": round(milliseconds * 1e6 * calls),
        "sent_bytes": None if sent is None else sent * calls,
    }


def write(run: Path, *of_ranks: list[dict[str, Any]], spread: Spread = COPIES) -> None:
    """Write the folder of the ranks that measured an exchange."""
    folder = communication.folder_of(run, NAME)
    job = recorded_trials.job(folder, spread=spread)
    job = replace(job, kind="communication", case=replace(job.case, strategy=f"copies:{len(of_ranks)}"))
    for rank, events in enumerate(of_ranks):
        home = folder / f"rank{rank}" if rank else folder
        stamped = [{"v": protocol.VERSION, "t_ns": place, **event} for place, event in enumerate(events)]
        recorded_trials.write(home, job, stamped)


def done(*events: dict[str, Any]) -> list[dict[str, Any]]:
    return [*events, {"event": "done"}]


def test_an_all_reduce_is_the_median_of_the_counted_blocks(tmp_path: Path) -> None:
    blocks = [block(50, phase="warm-up"), block(2), block(4), block(9)]
    write(tmp_path, done(*blocks), done(*blocks))
    found = communication.read(tmp_path, NAME)
    assert found and found.all_reduce and not found.stale
    assert (found.all_reduce.ns, found.all_reduce.low_ns, found.all_reduce.high_ns) == (4e6, 2e6, 9e6)
    assert found.all_reduce.sent_bytes == ()


@pytest.mark.parametrize(("ranks", "factor"), [(2, 1.0), (4, 1.5), (8, 1.75)])
def test_bus_bandwidth_is_that_of_nccl_tests(ranks: int, factor: float) -> None:
    found = communication.AllReduce("sum", MEGABYTE, ranks, 1e6, 1e6, 1e6, ())
    assert found.bus_gbps == pytest.approx(factor)


def test_bytes_are_of_each_rank(tmp_path: Path) -> None:
    write(tmp_path, done(block(2, sent=100), block(2, 30, sent=140)), done(block(2, sent=7), block(2, 30, sent=7)))
    found = communication.read(tmp_path, NAME)
    assert found and found.all_reduce
    assert found.all_reduce.sent_bytes == (130, 7)


def test_stale_gradients_are_those_of_all_ranks(tmp_path: Path) -> None:
    asynchronous = replace(COPIES, kind="asynchronous")
    events = [done({"event": "staleness", "steps": 100, "missed": missed}) for missed in ([10, 60, 30], [0, 90, 0, 10])]
    write(tmp_path, *events, spread=asynchronous)
    found = communication.read(tmp_path, NAME)
    assert found and found.stale and not found.all_reduce
    assert found.stale.missed == (10, 150, 30, 10)
    assert found.stale.updates == 200
    assert found.stale.mean == pytest.approx((150 + 2 * 30 + 3 * 10) / 200)


def test_staleness_is_not_that_of_some_ranks_alone(tmp_path: Path) -> None:
    counted = done({"event": "staleness", "steps": 100, "missed": [10]})
    write(tmp_path, counted, counted[:1], spread=replace(COPIES, kind="asynchronous"))
    with pytest.raises(UserError, match="another rank"):
        communication.read(tmp_path, NAME)


def test_nothing_measured_an_interruption_and_a_failure_are_told_apart(tmp_path: Path) -> None:
    assert communication.read(tmp_path, NAME) is None
    write(tmp_path / "a", [block(2)], [block(2)])
    assert communication.read(tmp_path / "a", NAME) is None
    write(tmp_path / "b", [{"event": "error", "kind": "unsupported", "message": "It cannot."}], done())
    with pytest.raises(UserError, match=r"^It cannot\.$"):
        communication.read(tmp_path / "b", NAME)


@pytest.mark.parametrize("damage", [{"calls": 0}, {"bytes": "many"}, {"elapsed_ns": -1}, {"processes": None}])
def test_a_damaged_record_is_named(tmp_path: Path, damage: dict[str, Any]) -> None:
    write(tmp_path, done(block(2) | damage), done(block(2)))
    with pytest.raises(UserError, match=NAME):
        communication.read(tmp_path, NAME)


def spread_trial(folder: Path, *sent: int | None) -> Trial:
    """Return a trial whose ranks sent so many bytes in every counted step, and received twice as many."""
    job = recorded_trials.job(folder, spread=COPIES)
    job = replace(job, case=replace(job.case, strategy=f"copies:{len(sent)}"))
    for rank, size in enumerate(sent):
        events = recorded_trials.events()
        for each in events:
            if each["event"] == "samples":
                one = None if size is None else size * each["steps"]
                each |= {"sent_bytes": one, "received_bytes": one and 2 * one}
        recorded_trials.write(folder / f"rank{rank}" if rank else folder, job, events)
    return trials.read(folder)


def test_bytes_of_a_step_are_those_of_counted_blocks(tmp_path: Path) -> None:
    trial = spread_trial(tmp_path / "a", 1000, 3000)
    assert communication.sent_per_step(trial, "cached") == [1000, 3000]
    assert communication.received_per_step(trial, "cached") == [2000, 6000]
    assert communication.sent_per_step(trial, "pipeline") is None


def test_bytes_that_one_rank_did_not_see_are_unknown(tmp_path: Path) -> None:
    assert communication.sent_per_step(spread_trial(tmp_path / "a", 1000, None), "cached") is None


def test_a_rank_that_sent_nothing_is_known(tmp_path: Path) -> None:
    assert communication.sent_per_step(spread_trial(tmp_path / "a", 0, 0), "cached") == [0, 0]
