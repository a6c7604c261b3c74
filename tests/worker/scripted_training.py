"""Trainings of the smallest network in the fake framework, with its scripted clock."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np

from steelyard.catalog import frameworks
from steelyard.plan.protocols import protocol
from steelyard.results import trials
from steelyard_worker import measure, network, tensors, timing
from steelyard_worker.case import Case, Optimizer, Settings
from steelyard_worker.frameworks.fake.adapter import Adapter
from steelyard_worker.protocol import EVENTS, Data, EventWriter, Job

LINE = Path(__file__).parents[1] / "workloads" / "line"
SIZES = {"features": 8, "classes": 3, "batch": 16}
STEPS = 4  # whole batches of 70 samples
STEP_NS = 10_000_000
TEST_BATCHES = 2
FAULT_STEP = 11


def points(folder: Path) -> Data:
    """Store points of three classes that a line separates: 70 for training, 40 for testing."""
    generator = np.random.default_rng(1)
    centres, arrays = 2 * generator.standard_normal((3, 8)), {}
    for split, count in (("train", 70), ("test", 40)):
        label = generator.integers(0, 3, count, np.int32)
        arrays[f"{split}/point"] = (centres[label] + generator.standard_normal((count, 8))).astype(np.float32)
        arrays[f"{split}/label"] = label
    order = np.stack([generator.permutation(70)[:16] for _ in range(40)]).astype(np.int32)
    tensors.write(folder / "prepared", arrays)
    tensors.write(folder / "order", {"order": order})
    return Data("", str(folder / "prepared"), str(folder / "order"))


def trained(
    name: str,
    folder: Path,
    data: Data,
    compiling: tuple[int, ...] = (),
    step_us: int = STEP_NS // 1000,
    spawned_ns: int = 1,
    fault: str = "none",
    **schedule: Any,
) -> trials.Trial:
    """Measure `line` in the fake framework by a protocol; `compiling`: the steps that compile, from 1. `fault`: of
    the fake framework, from step FAULT_STEP on.

    `schedule`: replaces fields of the protocol's.
    """
    settings = frameworks.framework("fake").complete(
        Settings("scripted", knobs={"step_us": step_us, "fault": fault, "fault_step": FAULT_STEP})
    )
    case = Case("line", "small", SIZES, "", {}, Optimizer("sgd", 0.1), "fake", settings)
    planned = replace(protocol(name).schedule, **{"evaluate": True, **schedule})
    folder.mkdir()
    adapter, described = Adapter(settings), network.describe(LINE, SIZES)
    weights = {each.name: np.zeros(each.shape, np.float32) for each in described.parameters}
    tensors.write(folder / "weights", weights)
    job = Job(
        "measure", case, str(LINE), str(folder / "weights"), data, str(folder), schedule=planned, spawned_ns=spawned_ns
    )
    (folder / trials.JOB).write_text(json.dumps(asdict(job)))
    trainer = adapter.trainer(
        network.load_implementation(LINE, "line", "fake"), SIZES, described, weights, case.optimizer
    )
    adapter.compilations = lambda: sum(trainer._steps >= step for step in compiling)  # type: ignore[method-assign]
    events = EventWriter(folder / EVENTS, adapter.scripted_clock)
    recorder = timing.Recorder(folder, events)
    measure.measure(job, described, adapter, trainer, events, recorder)
    recorder.close()
    events.write("done")
    events.close()
    found = trials.read(folder)
    found.check_files()
    return found
