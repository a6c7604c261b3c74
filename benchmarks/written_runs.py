"""Run folders of scripted times, written with the real recorder: a million steps, or many contenders."""

from __future__ import annotations

import json
import time
from array import array
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from steelyard import host
from steelyard.inputs.case_inputs import CaseInputs
from steelyard.measure import jobs
from steelyard.measure.launch import worker_hash
from steelyard.plan import resolve
from steelyard.plan.options import Options
from steelyard.results import record, trials
from steelyard_worker import tensors
from steelyard_worker.protocol import EVENTS, METHOD, PREDICTIONS, Data, EventWriter
from steelyard_worker.timing import Block, Recorder

if TYPE_CHECKING:
    from steelyard.plan.run_plan import RunPlan, Variant

WORKLOADS = Path(__file__).parents[1] / "tests" / "workloads"
FRAMEWORKS = ("fake", "dummy")
ROUNDS, BLOCKS, STEPS = 5, 100, 1000  # of a million steps in all
STEP_NS = 10_000_000
PHASES = (("first", 1, 1), ("warm-up", 4, 5), ("counted", 10, 25))  # with the blocks of each, and the steps of a block


class Losses:
    """A trainer that has done its steps; their handles are their losses."""

    def step(self, batch: Any) -> Any:
        """Do nothing: the steps are done."""

    def synchronise(self) -> None:
        """Do nothing."""

    def losses(self, handles: Any) -> Any:
        """Return the handles."""
        return handles


@dataclass(frozen=True)
class Process:
    """The measured blocks of one process. `raw`: samples and losses of each block as bytes."""

    variant: Variant
    number: int
    blocks: list[Block]
    raw: list[tuple[bytes, bytes]]


def plan_of(frameworks: tuple[str, ...], knobs: tuple[str, ...] = ()) -> RunPlan:
    """Return the plan of these scripted frameworks on the smallest workload."""
    return resolve.plan(
        Options(workloads=("line",), frameworks=frameworks, knobs=knobs, workload_folders=(str(WORKLOADS),))
    )


def a_million_steps() -> tuple[RunPlan, list[Process]]:
    """Return the plan of a run, and its processes with a million counted steps in all."""
    plan = plan_of(FRAMEWORKS)
    return plan, [_process(variant, number) for number in range(1, ROUNDS + 1) for variant in plan.variants]


def _process(variant: Variant, number: int) -> Process:
    random = np.random.default_rng([number, len(variant.key), ord(variant.case.framework[0])])
    made = _blocks(random, STEP_NS, 0, BLOCKS, STEPS)
    return Process(
        variant, number, made, [(block.stamps_ns.tobytes(), np.asarray(block.handles).tobytes()) for block in made]
    )


def new_folder(plan: RunPlan, folder: Path) -> Path:
    """Create the folder of a run of which every contender has passed."""
    folder.mkdir()
    record.write(folder, record.new(plan, "steelyard run", worker_hash()))
    machine = host.describe()
    record.update(folder, machine=machine.fingerprint(), host=asdict(machine), state="complete")
    passed = {variant.case.id: {"passed": True, "sentence": "Not checked here."} for variant in plan.variants}
    (folder / record.CERTIFICATES).write_text(json.dumps(passed), encoding="utf-8")
    return folder


def prepare(plan: RunPlan, folder: Path, variant: Variant, number: int) -> Path:
    """Create the folder of a process with its job."""
    trial = jobs.trial_folder(folder, number, 0, variant)
    trial.mkdir(parents=True)
    inputs = CaseInputs(Path("weights"), Data("synthetic"), "", {}, "")
    job = jobs.measuring(plan, variant, inputs, number, 0, trial)
    (trial / trials.JOB).write_text(json.dumps(asdict(job)), encoding="utf-8")
    return trial


def keep(trial: Path, blocks: list[Block]) -> None:
    """Do what a worker does to store counted blocks."""
    events = EventWriter(trial / EVENTS, time.perf_counter_ns)
    recorder = Recorder(trial, events)
    for block in blocks:
        recorder.keep(Losses(), block, "cached", "counted")
    events.write("done")
    recorder.close()
    events.close()


def million(root: Path) -> Path:
    """Write a run of a million counted steps."""
    plan, processes = a_million_steps()
    folder = new_folder(plan, root / "20260102-030405-million")
    for process in processes:
        keep(prepare(plan, folder, process.variant, process.number), process.blocks)
    return folder


def many_contenders(root: Path, contenders: int, rounds: int) -> Path:
    """Write a run of contenders whose steps differ by 2 % from one to the next; all measure both inputs."""
    knobs = (f"step_us={','.join(str(10_000 + 200 * place) for place in range(contenders))}",)
    plan = plan_of(("fake",), knobs)
    folder = new_folder(plan, root / "20260102-030405-contenders")
    for place, variant in enumerate(plan.variants):
        for number in range(1, rounds + 1):
            _measured(prepare(plan, folder, variant, number), place, number)
    return folder


def _measured(trial: Path, place: int, number: int) -> None:
    """Write the events of a process: both inputs with all phases, one evaluation, and the memory of each phase."""
    random = np.random.default_rng([place, number])
    now_ns, step_ns = 1_000_000_000 * number, STEP_NS * (1 + 0.02 * place) * random.normal(1, 0.003)
    events = EventWriter(trial / EVENTS, lambda: now_ns)
    recorder = Recorder(trial, events)
    events.write("hello", method=METHOD)
    events.write("applied", applied={"mode": "scripted"}, libraries={"numpy": "2.0.0"})
    for phase in ("import", "build", "first-step"):
        events.write("phase", name=phase, elapsed_ns=10**8, since_spawn_ns=10**9)
    for source in ("pipeline", "cached"):
        for phase, blocks, steps in PHASES:
            for block in _blocks(random, step_ns, now_ns, blocks, steps):
                now_ns = block.start_ns + block.elapsed_ns
                recorder.keep(Losses(), block, source, phase)
    _evaluated(trial, events)
    size = (300 + place) * 2**20
    phases = [{"name": phase, "resident_bytes": size, "device_bytes": None} for phase, _, _ in PHASES]
    events.write("memory", peak_resident_bytes=size, peak_device_bytes=None, phases=phases)
    events.write("done")
    recorder.close()
    events.close()


def _blocks(random: np.random.Generator, step_ns: float, start_ns: int, blocks: int, steps: int) -> list[Block]:
    """Draw consecutive blocks from `start_ns` on: 1 % noise, and one step in a thousand twice as long."""
    times = step_ns * random.normal(1, 0.01, (blocks, steps)) * (1 + (random.random((blocks, steps)) < 1e-3))
    stamps = start_ns + np.cumsum(times.astype(np.int64).ravel()).reshape(blocks, steps)
    starts = [start_ns, *stamps[:-1, -1].tolist()]
    losses = random.random((blocks, steps)).astype(np.float32)
    return [
        Block(start, int(row[-1]) - start, int(row[-1]) - start, array("q", row.tobytes()), loss)
        for start, row, loss in zip(starts, stamps, losses, strict=True)
    ]


def _evaluated(trial: Path, events: EventWriter) -> None:
    truth = np.repeat(np.array([0, 1], np.int32), 10)
    tensors.write(trial / PREDICTIONS, {"truth": truth, "predicted": np.roll(truth, 2)})
    events.write("evaluated", steps=20, elapsed_ns=10**8, samples=20)
