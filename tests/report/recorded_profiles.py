"""Profiles of written runs: the folder that `steelyard explain` leaves, with scripted operations."""

from __future__ import annotations

import json
from array import array
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np

from steelyard.inputs.case_inputs import CaseInputs
from steelyard.measure import jobs
from steelyard.profiles import recorded
from steelyard.results import record, trials
from steelyard_worker import tensors
from steelyard_worker.measure import Block, Recorder
from steelyard_worker.protocol import EVENTS, LOG, METHOD, PROFILE, Data, EventWriter

RULES = [{"class": "matrix product", "names": ["^product$"]}, {"class": "optimizer", "names": ["^update$"]}]
STEPS = 4


def write_profile(run, name, product_ms, update_ms, gap_ms=1.0, slow_down=1.0):
    """Write the profile of the variant with this name: of each step a product, an update and a gap; returns its folder."""
    plan = record.read(run).plan
    (variant,) = (each for each in plan.variants if name in each.key)
    folder = recorded.folder_of(run, variant.file_name)
    (folder / PROFILE).mkdir(parents=True)
    job = jobs.profiling(
        plan, variant, CaseInputs(Path("weights"), Data("synthetic", "prepared"), "", {}, ""), 1, folder
    )
    job = replace(job, schedule=replace(job.schedule, inputs=("pipeline",)))
    (folder / trials.JOB).write_text(json.dumps(asdict(job)), encoding="utf-8")
    recorded.write_rules(folder, {"operations": RULES})
    (folder / LOG).write_text("")
    step_ns = round((product_ms + update_ms + gap_ms) * 1e6)
    starts = np.arange(STEPS, dtype=np.int64) * step_ns
    arrays = {
        "thread": np.zeros(2 * STEPS, np.int32),
        "name": np.tile(np.array([0, 1], np.int32), STEPS),
        "start_ns": np.stack([starts, starts + round(product_ms * 1e6)], 1).ravel(),
        "duration_ns": np.tile(np.array([product_ms * 1e6, update_ms * 1e6], np.int64), STEPS),
        "waits_ns": np.zeros((0, 2), np.int64),
    }
    tensors.write(folder / PROFILE / recorded.TRACED, arrays, {"names": ["product", "update"]})
    _write_events(folder, step_ns, slow_down)
    return folder


def _write_events(folder, step_ns, slow_down):
    events = EventWriter(folder / EVENTS, lambda: 0)
    recorder = Recorder(folder, events)
    events.write("hello", method=METHOD)
    for phase, factor in (("plain", slow_down), ("profiled", 1.0), ("plain", slow_down)):
        took = round(STEPS * step_ns / factor)
        stamps = array("q", (round(took * (each + 1) / STEPS) for each in range(STEPS)))
        recorder.keep(_Losses(), Block(0, took, took, stamps, [0.5] * STEPS), "pipeline", phase)
    events.write("profiled", steps=STEPS, elapsed_ns=STEPS * step_ns, cpu_ns=1, events=2 * STEPS, files=[], read_s=0.1)
    events.write("done")
    recorder.close()
    events.close()


class _Losses:
    def losses(self, handles):
        return np.array(handles, np.float32)
