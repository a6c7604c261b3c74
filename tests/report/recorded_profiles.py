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
from steelyard_worker.protocol import EVENTS, LOG, METHOD, PROFILE, Data, EventWriter
from steelyard_worker.timing import Block, Recorder

INPUTS = CaseInputs(Path("weights"), Data("synthetic", "prepared"), "", {}, "")
RULES = [{"class": "matrix product", "names": ["^product$"]}, {"class": "optimizer", "names": ["^update$"]}]
STEPS = 4


def write_profile(run, name, product_ms, update_ms, gap_ms=1.0, slow_down=1.0):
    """Write the profile of the variant with this name: of each step a product, an update and a gap; returns its folder."""
    plan = record.read(run).plan
    (variant,) = (each for each in plan.variants if name in each.key)
    folder = recorded.folder_of(run, variant.file_name)
    product_ns, update_ns = round(product_ms * 1e6), round(update_ms * 1e6)
    operations = [("product", 0, product_ns), ("update", product_ns, update_ns)]
    step_ns = round((product_ms + update_ms + gap_ms) * 1e6)
    _write_job(plan, variant, folder, 1)
    write_steps(folder, step_ns, operations, RULES, slow_down)
    return folder


def write_steps(folder, step_ns, operations, rules, slow_down=1.0):
    """Write what a process leaves that profiled four equal steps, of (name, start, duration) each; times in ns."""
    names = sorted({name for name, _, _ in operations})
    starts = np.arange(STEPS)[:, None] * step_ns + [start for _, start, _ in operations]
    arrays = {
        "thread": np.zeros(starts.size, np.int32),
        "name": np.tile([names.index(name) for name, _, _ in operations], STEPS).astype(np.int32),
        "start_ns": starts.ravel().astype(np.int64),
        "duration_ns": np.tile([duration for _, _, duration in operations], STEPS).astype(np.int64),
        "waits_ns": np.zeros((0, 2), np.int64),
    }
    tensors.write(folder / PROFILE / recorded.TRACED, arrays, {"names": names})
    recorded.write_rules(folder, {"operations": rules})
    (folder / LOG).write_text("", encoding="utf-8")
    events = EventWriter(folder / EVENTS, lambda: 0)
    recorder = Recorder(folder, events)
    events.write("hello", method=METHOD)
    for phase, factor in (("plain", slow_down), ("profiled", 1.0), ("plain", slow_down)):
        took = round(STEPS * step_ns / factor)
        stamps = array("q", (round(took * (each + 1) / STEPS) for each in range(STEPS)))
        recorder.keep(_Losses(), Block(0, took, took, stamps, [0.5] * STEPS), "pipeline", phase)
    events.write(
        "profiled", steps=STEPS, elapsed_ns=STEPS * step_ns, cpu_ns=1, events=starts.size, files=[], read_s=0.1
    )
    events.write("done")
    recorder.close()
    events.close()


def write_scripted(plan, run, variant, number, script):
    """Write a profile of a scripted contender: operations of equal length one after the other, a copy, then nothing."""
    folder = recorded.folder_of(run, variant.file_name, number)
    _write_job(plan, variant, folder, number)
    if script.profile_failure:
        kind, message = script.profile_failure
        events = EventWriter(folder / EVENTS, lambda: 0)
        events.write("hello", method=METHOD)
        events.write("error", kind=kind, message=message)
        events.close()
        return
    step_ns = int(script.step_ms * 1e6 * (1 + 0.001 * number))
    length = step_ns * 2 // 3 // script.operations
    operations = [("product", place * length, length) for place in range(script.operations)]
    operations.append(("copy", script.operations * length, step_ns // 10))
    rules = [{"class": "matrix product", "names": ["product"]}, {"class": "copies and layout", "names": ["copy"]}]
    write_steps(folder, step_ns, operations, rules)


def _write_job(plan, variant, folder, number):
    (folder / PROFILE).mkdir(parents=True)
    job = jobs.profiling(plan, variant, INPUTS, number, folder)
    job = replace(job, schedule=replace(job.schedule, inputs=("pipeline",)))
    (folder / trials.JOB).write_text(json.dumps(asdict(job)), encoding="utf-8")


class _Losses:
    def losses(self, handles):
        return np.array(handles, np.float32)
