"""Run folders written with the real recorder but scripted times: any contender and any fault, within milliseconds."""

from __future__ import annotations

import json
from array import array
from contextlib import closing
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

import numpy as np
from recorded_profiles import INPUTS, write_scripted

from steelyard import analysis
from steelyard.measure import jobs
from steelyard.plan import resolve
from steelyard.plan.options import Options
from steelyard.results import record, trials
from steelyard.results.quantities import STEP_TIME
from steelyard.results.store import Store
from steelyard.statistics.conditions import Conditions
from steelyard_worker import tensors
from steelyard_worker.case import INFERENCE
from steelyard_worker.protocol import EVENTS, METHOD, PREDICTIONS, EventWriter
from steelyard_worker.timing import Block, Recorder

WORKLOADS = Path(__file__).parents[1] / "workloads"
MACHINE = {
    "cpu_model": "Test Processor",
    "cores_usable": 2,
    "cores_logical": 2,
    "memory_bytes": 8 * 2**30,
    "system": "Linux",
    "virtualised": "yes",
}


@dataclass(frozen=True)
class Script:
    """The behaviour of one contender. `spike` multiplies one counted step of the first round.

    In a profile two thirds of a step are operations, `operations` of them, and a tenth is a copy.
    """

    step_ms: float = 10.0
    scatter: float = 0.01
    process_scatter: float = 0.003
    rounds: int = 5
    first_step_ms: float = 50.0
    failure: tuple[str, str] | None = None
    passed: bool | None = True
    sentence: str = "Every tensor agrees with the reference."
    spike: float = 1.0
    asynchronous: bool = False
    applied: dict = field(default_factory=dict)
    warnings: tuple[str, ...] = ()
    memory: dict[str, int | None] = field(default_factory=dict)  # of phases, bytes
    operations: int = 10
    profile_failure: tuple[str, str] | None = None


def options(**more):
    """Return options, by default for two scripted contenders on the smallest workload."""
    given = {"workloads": ("line",), "frameworks": ("fake", "dummy"), "workload_folders": (str(WORKLOADS),)}
    return Options(**{**given, **more})


def unstated(published):
    """Return what a study is held against as if its documents stated no settings, so that a run has none that differ."""
    tables = tuple(
        replace(table, statements=tuple(replace(each, conditions=(Conditions(),)) for each in table.statements))
        for table in published.tables
    )
    return replace(published, tables=tables)


def write_run(
    root, scripts, wanted=None, sources=("pipeline", "cached"), published=None, stands_for=None, stated=True, **head
):
    """Write a run of these scripts (environment name, or part of a variant's key -> Script); returns its folder.

    `published`: what its study is held against; `stands_for`: the published cell that each group stands for, by name. Not
    `stated`: as if the documents stated no settings.
    """
    planned = resolve.plan(wanted or options(frameworks=tuple(scripts))).with_inputs(lambda case: "feed0123")
    groups = [
        replace(group, stands_for=(stands_for or {}).get(group.name, group.stands_for)) for group in planned.groups
    ]
    known = published or planned.published
    planned = replace(planned, groups=tuple(groups), published=known if stated else unstated(known))
    folder = root / "20260102-030405-test"
    folder.mkdir(parents=True)
    record.write(folder, record.new(planned, "steelyard run -f fake -f dummy", "00112233"))
    made = {
        name: {
            "version": "1.2.3",
            "python": f"/envs/{name}/bin/python",
            "python_version": "3.11.7",
            "packages": {"numpy": "2.0.0"},
            "external": True,
        }
        for name in planned.environments
    }
    known = {
        "state": "complete",
        "machine": "0123456789abcdef",
        "host": MACHINE,
        "environments": made,
        "peak": {"float32": {"numpy": 100.0}},
        "inputs": {
            group.name: {"origin": "digits, checked.", "identity": "feed0123", "meta": {}} for group in planned.groups
        },
    }
    ids = {variant.key: variant.case.id for variant in planned.variants}
    for name in ("above_peak", "fewer_multiplications"):
        head[name] = {ids[key]: reason for key, reason in head.get(name, {}).items()}
    record.update(folder, **{**known, **head})
    store = Store(root)
    with closing(store):
        store.add_run(folder)
        proofs = {}
        for place, variant in enumerate(planned.variants):
            script = next(script for name, script in scripts.items() if name in variant.key)
            if script.passed is not None:
                proofs[variant.case.id] = {
                    "key": "recorded",
                    "passed": script.passed,
                    "sentence": script.sentence,
                    "worst_units": 9.0,
                    "checks": [{"name": "logits", "error": 1e-7}],
                }
            for number in range(1, script.rounds + 1):
                store.add_trial(folder.name, _process(planned, folder, variant, number, script, sources, place))
            for number in range(1, planned.profiles + 1):
                write_scripted(planned, folder, variant, number, script)
            if script.failure:
                store.add_trial(folder.name, _failed(planned, folder, variant, script))
    (folder / record.CERTIFICATES).write_text(json.dumps(proofs), encoding="utf-8")
    _write_rounds(folder, planned, max(script.rounds for script in scripts.values()))
    return folder


def view_of(folder, quantity=STEP_TIME):
    """Return the view of a run folder, ranked by a quantity."""
    return analysis.view(folder, quantity)


def _process(planned, folder, variant, number, script, sources, place):
    home = _home(planned, folder, variant, number)
    draw = np.random.default_rng([place, number])
    now = [1_000_000_000 * number]
    events = EventWriter(home / EVENTS, lambda: now[0])
    recorder = Recorder(home, events)
    speed = script.step_ms * 1e6 * draw.normal(1, script.process_scatter)
    _begin(events, script)
    infers = variant.case.task == INFERENCE
    kept = _NoLosses() if infers else _Losses()
    for source in sources:
        for phase, blocks, steps in (("first", 1, 1), ("warm-up", 4, 5), ("counted", 4, 25)):
            for part in range(blocks):
                took = speed * draw.normal(1, script.scatter, steps)
                if phase == "first":
                    took[:] = script.first_step_ms * 1e6
                if phase == "counted" and number == part + 1 == 1:
                    took[7] *= script.spike
                recorder.keep(kept, _block(now, took, recorder.steps, script, draw), source, phase)
    if infers:
        alone = speed * np.linspace(1, 2, 201)
        recorder.keep(kept, _block(now, alone, recorder.steps, script, draw), "cached", "latency")
    elif planned.group(variant.group).metric == "accuracy":
        _evaluated(home, events)
    peak = (300 + 10 * place) * 2**20
    phases = [{"name": name, "resident_bytes": size, "device_bytes": None} for name, size in script.memory.items()]
    events.write("memory", peak_resident_bytes=peak, peak_device_bytes=None, phases=phases)
    for name in script.warnings:
        events.write("warning", name=name)
    events.write("done")
    recorder.close()
    events.close()
    return trials.read(home)


def _evaluated(home, events):
    truth = np.repeat(np.array([0, 1], np.int32), 10)
    predicted = np.where(np.isin(np.arange(20), (3, 12, 15)), 1 - truth, truth)  # 17 of 20 are right
    tensors.write(home / PREDICTIONS, {"truth": truth, "predicted": predicted})
    events.write("evaluated", steps=20, elapsed_ns=10**8, samples=20)


def _begin(events, script):
    events.write("hello", method=METHOD)
    events.write(
        "applied",
        applied={"mode": "scripted", "threads": 2, **script.applied},
        libraries={"numpy": "2.0.0", "blas": {"name": "openblas"}},
    )
    for name, milliseconds in (("import", 800.0), ("build", 120.0), ("first-step", script.first_step_ms)):
        more = {"since_spawn_ns": int((1000 + script.first_step_ms) * 1e6)} if name == "first-step" else {}
        events.write("phase", name=name, elapsed_ns=int(milliseconds * 1e6), **more)


def _block(now, took, taken, script, draw):
    start = now[0]
    ends = start + np.cumsum(took.astype(np.int64))
    now[0] = int(ends[-1]) + 1000
    stamps = (
        np.linspace(start, start + (ends[-1] - start) // 3, len(took)).astype(np.int64) if script.asynchronous else ends
    )
    losses = 0.3 + 2 * np.exp(-(taken + np.arange(len(took))) / 40) + 1e-7 * draw.normal(size=len(took))
    elapsed = int(ends[-1]) - start
    return Block(start, elapsed, 2 * elapsed, array("q", stamps.tobytes()), losses.tolist())


def _failed(planned, folder, variant, script):
    home = _home(planned, folder, variant, script.rounds + 1)
    events = EventWriter(home / EVENTS, lambda: 0)
    events.write("hello", method=METHOD)
    events.write("error", kind=script.failure[0], message=script.failure[1])
    events.close()
    return trials.read(home)


def _home(planned, folder, variant, number):
    home = jobs.trial_folder(folder, number, 0, variant)
    home.mkdir(parents=True)
    job = jobs.measuring(planned, variant, INPUTS, number, 0, home)
    if planned.group(variant.group).protocol.searches_batch:
        place = planned.group(variant.group).variants.index(variant)
        schedule = replace(job.schedule, batch=96 - 8 * place, failed_batch=104 - 8 * place)
        job = replace(job, schedule=schedule)
    (home / trials.JOB).write_text(json.dumps(asdict(job)), encoding="utf-8")
    return home


def _write_rounds(folder, planned, rounds):
    lines = [
        {
            "group": group.name,
            "round": number,
            "attempt": attempt,
            "kept": attempt == 1 or number != 2,
            "reasons": ["other processes used 0.60 cores"] if (number, attempt) == (2, 0) else [],
            "severity": 12.0 if (number, attempt) == (2, 0) else 0.0,
            "host_noise": {
                "seconds": 20.0,
                "samples": 20,
                "own_cores": 1.7,
                "foreign_cores": 0.6 if (number, attempt) == (2, 0) else 0.02,
                "steal_share": 0.004,
            },
        }
        for number in range(1, rounds + 1)
        for group in planned.groups
        for attempt in ((0, 1) if number == 2 else (0,))
    ]
    (folder / record.ROUNDS).write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")


class _Losses:
    def losses(self, handles):
        return np.array(handles, np.float32)


class _NoLosses:
    def losses(self, handles):
        return np.zeros(0, np.float32)
