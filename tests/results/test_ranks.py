"""What the other ranks of a trial recorded, and figures over all ranks."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
import recorded_trials

from steelyard.errors import UserError
from steelyard.results import ranks, record, trials, utilisation
from steelyard.results.quantities import PEAK_MEMORY, QUANTITIES
from steelyard_worker import protocol
from steelyard_worker.case import Settings
from steelyard_worker.strategy import SPREAD_ALONE, Spread

if TYPE_CHECKING:
    from pathlib import Path

    from steelyard.results.trials import Trial

STEP_NS = recorded_trials.STEP_NS


def events(memory: int = 1000, cpu_share: float = 1.0) -> list[dict[str, object]]:
    """Return the events of a rank with this peak memory, whose steps keep so many cores busy."""
    found = recorded_trials.events()
    for each in found:
        if each["event"] == "samples":
            each["cpu_ns"] = round(cpu_share * each["elapsed_ns"])
        if each["event"] == "memory":
            each["peak_resident_bytes"] = memory
            each["phases"] = [{"name": "import", "resident_bytes": memory // 2, "device_bytes": None}]
    return found


def spread_trial(folder: Path, spread: Spread | None = SPREAD_ALONE) -> Path:
    """Write a trial of two ranks: 1000 and 3000 bytes, one core and half a core busy."""
    job = recorded_trials.job(folder, spread=spread)
    job = replace(job, case=replace(job.case, strategy="alone:2"))
    recorded_trials.write(folder, job, events())
    recorded_trials.write(folder / "rank1", job, events(3000, 0.5))
    (folder / "rank1" / "losses.f32").unlink()  # a part of a network may have no losses
    return folder


def test_figures_are_those_of_all_ranks(tmp_path: Path) -> None:
    found = trials.read(spread_trial(tmp_path / "t"))
    assert found.others is not None
    assert len(found.others) == 1
    assert PEAK_MEMORY.read(found, "process") == 4000
    assert QUANTITIES["memory of import"].read(found, "process") == 2000
    assert QUANTITIES["memory of build"].read(found, "process") is None
    assert ranks.peak_of_each(found) == [1000, 3000]
    assert utilisation.busy_cores(found, "cached") == pytest.approx(1.5)


@pytest.mark.parametrize("spread", [None, replace(SPREAD_ALONE, launcher="")])
def test_a_single_process_has_no_other_ranks(tmp_path: Path, spread: Spread | None) -> None:
    found = trials.read(spread_trial(tmp_path / "t", spread))
    assert found.others == ()
    assert PEAK_MEMORY.read(found, "process") == 1000
    assert utilisation.busy_cores(found, "cached") == pytest.approx(1.0)


def test_memory_of_devices_counts_only_if_every_rank_counts_it(tmp_path: Path) -> None:
    first = trials.read(spread_trial(tmp_path / "t"))
    assert first.others
    (other,) = first.others
    one = replace(first, peak_device_bytes=10)
    assert (ranks.peak_bytes(one), ranks.peak_of_each(one)) == (4000, [1000, 3000])
    both = replace(one, others=(replace(other, peak_device_bytes=20),))
    assert (ranks.peak_bytes(both), ranks.peak_of_each(both)) == (30, [10, 20])


def _cut(folder: Path) -> None:
    (folder / protocol.SAMPLES).write_bytes(b"")


def _garble(folder: Path) -> None:
    (folder / protocol.EVENTS).write_text("not JSON\n{}\n")


def _negative(folder: Path) -> None:
    path = folder / protocol.EVENTS
    path.write_text(path.read_text().replace("3000", "-3000"))


def _no_end(folder: Path) -> None:
    path = folder / protocol.EVENTS
    path.write_text("".join(path.read_text().splitlines(keepends=True)[:-1]))


def _other_steps(folder: Path) -> None:
    path = folder / protocol.EVENTS
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    changed = [each | {"phase": "warm-up"} if each.get("phase") == "counted" else each for each in lines]
    path.write_text("".join(json.dumps(each) + "\n" for each in changed))


@pytest.mark.parametrize("damage", [_cut, _garble, _negative, _no_end, _other_steps, shutil.rmtree])
def test_a_rank_that_cannot_be_used_leaves_the_figures_out_and_is_named(tmp_path: Path, damage: object) -> None:
    home = spread_trial(tmp_path / trials.FOLDER / "t")
    damage(home / "rank1")  # type: ignore[operator]
    found: Trial
    (found,), damaged = trials.read_all(tmp_path)
    assert found.others is None
    assert PEAK_MEMORY.read(found, "process") is None
    assert utilisation.busy_cores(found, "cached") is None
    assert ranks.peak_of_each(found) is None
    assert found.location_ns("cached") == STEP_NS
    assert len(damaged) == 1
    assert str(home) in damaged[0]


def test_a_strategy_that_is_no_strategy_is_a_damaged_job(tmp_path: Path) -> None:
    home = spread_trial(tmp_path / "t")
    path = home / trials.JOB
    path.write_text(path.read_text().replace("alone:2", "alone:two"))
    with pytest.raises(UserError, match="cannot be read"):
        trials.read(home)


@pytest.mark.parametrize(
    ("strategy", "threads", "expected"), [("single", 3, 3), ("single:1", 3, 3), ("ddp:2", 3, 6), ("ddp:2", 0, 8)]
)
def test_the_threads_of_a_case_are_those_of_all_its_parts(strategy: str, threads: int, expected: int) -> None:
    case = recorded_trials.case(strategy=strategy, settings=Settings("scripted", threads=threads))
    known = record.RunRecord(plan=None, created="", state="", command="", host={"cores_usable": 8})  # type: ignore[arg-type]
    assert known.threads_of(case) == expected
