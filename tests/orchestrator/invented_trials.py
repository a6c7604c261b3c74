"""Jobs and trial folders made up for tests: what a worker would have left, without a worker."""

from __future__ import annotations

import json
from array import array
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from steelyard_worker import protocol
from steelyard_worker.protocol import Data, Job, Optimizer, Plan, Settings

if TYPE_CHECKING:
    from pathlib import Path

STEP_NS = 10_000_000


def job(folder: Path, number: int = 1, attempt: int = 0, arm: str = "fake/scripted", plan: Plan | None = None) -> Job:
    """Return the job of one attempt of one cell at one round."""
    return Job(
        task="measure", trial=f"{number}.{attempt}/line:small/{arm}", framework=arm.partition("/")[0], workload="line",
        workload_folder="/workloads/line", preset="small", sizes={"features": 8, "classes": 3, "batch": 16},
        settings=Settings("scripted"), optimizer=Optimizer("sgd", 0.1), weights="/weights", data=Data("/synthetic"),
        folder=str(folder), plan=plan or Plan(inputs=("cached",)),
    )  # fmt: skip


def events(blocks: tuple[int, ...] = (1, 5, 10), ending: str = "done") -> list[dict[str, Any]]:
    """Return what a process with blocks of so many steps says; `ending`: done, error, or nothing."""
    said = [
        {"event": "hello", "python": "3.11.0", "pid": 1, "executable": "python", "method": 1, "worker_hash": "0"},
        {"event": "phase", "name": "import", "elapsed_ns": 5},
        {"event": "applied", "applied": {"mode": "scripted"}, "libraries": {"numpy": "2"}},
    ]
    first = 0
    for place, steps in enumerate(blocks):
        phase = ("first", "warm-up")[place] if place < 2 else "counted"
        said.append(_block(first, steps, phase))
        first += steps
    said.append({"event": "memory", "peak_resident_bytes": 1000, "peak_device_bytes": None})
    if ending == "error":
        said.append({"event": "error", "kind": "crash", "message": "It broke."})
    elif ending == "done":
        said.append({"event": "done"})
    return [{"v": protocol.VERSION, "t_ns": place, **event} for place, event in enumerate(said)]


def _block(first: int, steps: int, phase: str) -> dict[str, Any]:
    return {
        "event": "samples", "input": "cached", "phase": phase, "steps": steps, "start_ns": first * STEP_NS,
        "elapsed_ns": steps * STEP_NS, "first_step": first,
    }  # fmt: skip


def write(folder: Path, made: Job, said: list[dict[str, Any]]) -> Path:
    """Write a trial folder: job, events, samples and losses; returns it."""
    folder.mkdir(parents=True)
    (folder / "job.json").write_text(json.dumps(asdict(made)))
    (folder / protocol.EVENTS).write_text("".join(json.dumps(event) + "\n" for event in said))
    steps = sum(event["steps"] for event in said if event["event"] == "samples")
    (folder / protocol.SAMPLES).write_bytes(array("q", [STEP_NS * (number + 1) for number in range(steps)]).tobytes())
    (folder / protocol.LOSSES).write_bytes(array("f", [1.0 / (number + 1) for number in range(steps)]).tobytes())
    return folder
