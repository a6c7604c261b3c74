"""Cases, jobs and trial folders for tests, as a worker would have written them."""

from __future__ import annotations

import json
from array import array
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from steelyard.results.events import Block
from steelyard.results.trials import Evaluation, Trial
from steelyard_worker import protocol
from steelyard_worker.case import Case, Optimizer, Settings
from steelyard_worker.protocol import Data, Job, Schedule

if TYPE_CHECKING:
    from pathlib import Path

STEP_NS = 10_000_000
# Column of the index, the text that someone has put there, and what an error says of it.
ALTERED_ROWS = [
    ("points.processes_ns", "garbage", "is no JSON: Expecting value"),
    ("points.processes_ns", '["x", null]', "[0] must be a number, but it is 'x'"),
    ("points.processes_ns", "[1000000.0, null]", "[1] must be a number, but it is 'None'"),
    ("points.processes_ns", "[-1, 0]", "must be 2 or more times above 0, but it is '[-1, 0]'"),
    ("points.processes_ns", "[1000000.0, 0]", "must be 2 or more times above 0"),
    ("points.processes_ns", "[NaN, 1000000.0]", "[0] must be a finite number, but it is 'nan'"),
    ("points.processes_ns", "[1000000.0, 1e999]", "[1] must be a finite number, but it is 'inf'"),
    ("points.processes_ns", "[true, true]", "[0] must be a number, but it is 'True'"),
    ("points.processes_ns", "[]", "must be 2 or more times above 0, but it is '[]'"),
    ("points.processes_ns", "[1000000.0]", "must be 2 or more times above 0"),
    ("points.processes_ns", '{"a": 1}', "must be a list"),
    ("points.processes_ns", "[" * 100_000, "it is nested too deeply"),
    ("points.input", "garbage", "must be pipeline or cached, but it is 'garbage'"),
    ("runs.host", "[", "is no JSON: Expecting value"),
    ("runs.host", "[]", "must be an object"),
    ("runs.host", '{"cores_usable": "two"}', ".cores_usable must be a whole number"),
    ("runs.environments", '{"fake": {"packages": []}}', ".fake lacks the field 'external'"),
    ("runs.created", "yesterday", "is no time: Invalid isoformat string: 'yesterday'"),
]


def case(framework: str = "fake", **more: Any) -> Case:
    """Return a case of the smallest workload; `more` replaces fields."""
    values: dict[str, Any] = {
        "workload": "line",
        "preset": "small",
        "sizes": {"features": 8, "classes": 3, "batch": 16},
        "specification": "0123456789abcdef",
        "data": {},
        "optimizer": Optimizer("sgd", 0.1),
        "framework": framework,
        "settings": Settings("scripted"),
    }
    return Case(**{**values, **more})


def job(folder: Path, number: int = 1, attempt: int = 0, framework: str = "fake", **more: Any) -> Job:
    """Return the job of one attempt of one case at one round."""
    return Job(
        kind="measure",
        case=case(framework),
        workload_folder="/workloads/line",
        weights="/weights",
        data=Data("/synthetic"),
        folder=str(folder),
        round=number,
        attempt=attempt,
        schedule=Schedule(inputs=("cached",)),
        **more,
    )


def events(blocks: tuple[int, ...] = (1, 5, 10), ending: str = "done") -> list[dict[str, Any]]:
    """Return the events of a process; `blocks`: steps per block; `ending`: done, error, or nothing."""
    found: list[dict[str, Any]] = [
        {"event": "hello", "python": "3.11.0", "pid": 1, "executable": "python", "method": 1, "worker_hash": "0"},
        {"event": "phase", "name": "import", "elapsed_ns": 5},
        {"event": "applied", "applied": {"mode": "scripted"}, "libraries": {"numpy": "2"}},
    ]
    first = 0
    for place, steps in enumerate(blocks):
        phase = ("first", "warm-up")[place] if place < 2 else "counted"
        found.append(_block(first, steps, phase))
        first += steps
    found.append({"event": "memory", "peak_resident_bytes": 1000, "peak_device_bytes": None})
    if ending == "error":
        found.append({"event": "error", "kind": "crash", "message": "It broke."})
    elif ending == "done":
        found.append({"event": "done"})
    return [{"v": protocol.VERSION, "t_ns": place, **event} for place, event in enumerate(found)]


def write_graph(
    folder: Path, stages: list[dict[str, Any]], rules: list[dict[str, Any]], error: str = "", done: bool = True
) -> Path:
    """Write the folder of a process that counted a graph: `stages` are the values of its events; not `done`: it was killed."""
    counted = [{"event": "graph", "unit": "nodes", "passes": "", **stage} for stage in stages]
    ends = [{"event": "error", "kind": "unsupported", "message": error}] if error else [{"event": "done"}][: int(done)]
    found = [{"v": protocol.VERSION, "t_ns": place, **event} for place, event in enumerate([*counted, *ends])]
    write(folder, job(folder), found)
    (folder / "rules.json").write_text(json.dumps({"operations": rules}))
    return folder


def _block(first: int, steps: int, phase: str) -> dict[str, Any]:
    return {
        "event": "samples",
        "input": "cached",
        "phase": phase,
        "steps": steps,
        "start_ns": first * STEP_NS,
        "elapsed_ns": steps * STEP_NS,
        "first_step": first,
    }


def write(folder: Path, job: Job, events: list[dict[str, Any]]) -> Path:
    """Write a trial folder with job, events, samples and losses; returns the folder."""
    folder.mkdir(parents=True)
    (folder / "job.json").write_text(json.dumps(asdict(job)))
    (folder / protocol.EVENTS).write_text("".join(json.dumps(event) + "\n" for event in events))
    steps = sum(event["steps"] for event in events if event["event"] == "samples")
    (folder / protocol.SAMPLES).write_bytes(array("q", [STEP_NS * (number + 1) for number in range(steps)]).tobytes())
    (folder / protocol.LOSSES).write_bytes(array("f", [1.0 / (number + 1) for number in range(steps)]).tobytes())
    return folder


def training(
    folder: Path, scores: tuple[float | None, ...] = (0.5, 0.8, 0.7), pause: int = 0, speed: float = 1.0
) -> Trial:
    """Return a trial of three epochs of two steps: a step of epoch n takes n / `speed` seconds; `pause`: seconds between epochs."""
    folder.mkdir(parents=True)
    blocks, stamps, now, first, second = [], array("q"), 10**11, 0, round(10**9 / speed)
    for epoch, steps in ((1, 1), (1, 1), (2, 2), (3, 2)):
        blocks.append(Block("pipeline", "counted", steps, now, steps * epoch * second, first, epoch=epoch))
        stamps.extend(now + (step + 1) * epoch * second for step in range(steps))
        now, first = now + steps * epoch * second + pause * 10**9, first + steps
    (folder / protocol.SAMPLES).write_bytes(stamps.tobytes())
    (folder / protocol.LOSSES).write_bytes(array("f", [6, 5, 4, 3, 2, 1]).tobytes())
    evaluations = [
        Evaluation(2 * epoch, {"accuracy": score}, 7 * 10**9, epoch)
        for epoch, score in enumerate(scores, 1)
        if score is not None
    ]
    return Trial(folder, job(folder), blocks=tuple(blocks), evaluations=tuple(evaluations), done=True)
