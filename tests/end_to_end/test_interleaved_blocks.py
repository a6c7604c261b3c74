"""Contenders of a round take turns, as a user runs them."""

from __future__ import annotations

import json
import os
import subprocess
import time
from typing import TYPE_CHECKING, Any

import pytest
from finished_runs import LINE

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from finished_runs import Steelyard

pytestmark = pytest.mark.end_to_end

PATIENCE_S = 120
FAST, SLOW = 100000, 120000
# Steps of a tenth of a second on the scripted clock: two blocks of five each on a quiet machine.
TWO = (*LINE, "-f", "fake", "--knob", f"fake.step_us={FAST},{SLOW}", "--rounds", "2", "--no-certify")


def _trials(data_folder: Path, number: int) -> dict[int, list[dict[str, Any]]]:
    """Return the events of the trials of a round, by their step time."""
    found = {}
    for folder in data_folder.glob(f"runs/*/trials/r{number:02d}.0-*"):
        knobs = json.loads((folder / "job.json").read_text())["case"]["settings"]["knobs"]
        lines = (folder / "events.jsonl").read_text().splitlines()
        found[knobs["step_us"]] = [json.loads(line) for line in lines]
    return found


def _waits(data_folder: Path) -> list[Path]:
    return [path for path in data_folder.glob("runs/*/trials/*/events.jsonl") if b'"waits"' in path.read_bytes()]


def test_blocks_of_contenders_are_interleaved(steelyard: Steelyard, data_folder: Path) -> None:
    assert steelyard("run", *TWO).returncode == 0
    for number in (1, 2):
        trials = _trials(data_folder, number)
        assert set(trials) == {FAST, SLOW}
        counted = sorted(
            (event["t_ns"], step_us)
            for step_us, events in trials.items()
            for event in events
            if event["event"] == "samples" and event["phase"] == "counted"
        )
        # On a busy machine one may need a block more than the other; its blocks lie evenly between those of the other then.
        order = [step_us for _, step_us in counted]
        total = {step_us: order.count(step_us) for step_us in (FAST, SLOW)}
        assert min(total.values()) >= 2
        for done in range(1, len(order)):
            shares = [order[:done].count(step_us) / total[step_us] for step_us in (FAST, SLOW)]
            assert max(shares) - min(shares) <= 1 / min(total.values())


def test_other_protocols_have_no_turns(steelyard: Steelyard, data_folder: Path) -> None:
    assert steelyard("run", *TWO, "--protocol", "fixed:5+20").returncode == 0
    assert _waits(data_folder) == []


def test_a_contender_alone_does_not_wait(steelyard: Steelyard, data_folder: Path) -> None:
    assert steelyard("run", *LINE, "-f", "fake", "--rounds", "2", "--no-certify").returncode == 0
    assert _waits(data_folder) == []


def test_a_contender_that_waits_ends_with_the_command(
    command: list[str], environ_for: Callable[..., dict[str, str]], data_folder: Path
) -> None:
    """A stopped process cannot end by itself; the kernel ends it when the command is killed."""
    process = subprocess.Popen(
        [*command, "run", *TWO],
        env=environ_for(data_folder, PYTHONWARNINGS=""),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        pid = _waiting(data_folder)
    finally:
        process.kill()
        process.wait()
    limit = time.monotonic() + PATIENCE_S
    while not _gone(pid):
        assert time.monotonic() < limit
        time.sleep(0.05)


def _waiting(data_folder: Path) -> int:
    """Return the id of a process once it waits."""
    limit = time.monotonic() + PATIENCE_S
    while time.monotonic() < limit:
        for path in data_folder.glob("runs/*/trials/*/events.jsonl"):
            lines = path.read_text().splitlines()
            if lines and '"waits"' in lines[-1]:
                return int(json.loads(lines[0])["pid"])
        time.sleep(0.002)
    raise AssertionError("no contender waits")


def _gone(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return False
