"""What a process of an inference case times, and what it records; a scripted predictor has a clock of its own."""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import recorded_trials

from steelyard.results import trials
from steelyard.results.quantities import OF_EPOCHS, PROCESS
from steelyard_worker import certify, inference, network, protocol, tensors, timing
from steelyard_worker import trial as process
from steelyard_worker.case import INFERENCE, NO_OPTIMIZER
from steelyard_worker.frameworks.fake.adapter import Adapter
from steelyard_worker.protocol import Data, EventWriter, Length, Refusal, Schedule
from steelyard_worker.ranks import Ranks

LINE = Path(__file__).parents[1] / "workloads" / "line"
SIZES = {"features": 8, "classes": 3, "batch": 16}
PASS_NS = 5_000_000


@dataclass
class Scripted:
    """An adapter and a predictor: a pass takes 5 ms, but its call returns at once; `calls` notes what was asked of it."""

    now_ns: int = 0
    pending: int = 0
    value: float = 2.0
    calls: list[str] = field(default_factory=list)

    def scripted_clock(self) -> int:
        return self.now_ns

    def compilations(self) -> int:
        return 0

    def pipeline(self, predictor: Any, source: Any, workers: int) -> Any:
        del predictor, workers
        step = 0
        while True:
            yield source.batch(step)
            step += 1

    def put(self, batch: Any) -> Any:
        return batch

    def infer(self, batch: Any) -> Any:
        self.calls.append("infer")
        self.pending += 1
        return {"logits": np.full((16, 3), self.value * batch["point"][0, 0], np.float32)}

    def synchronise(self) -> None:
        self.calls.append("synchronise")
        self.now_ns += self.pending * PASS_NS
        self.pending = 0

    def outputs(self, batch: Any) -> Any:
        self.calls.append("outputs")
        return self.infer(batch)


def run(folder: Path, scripted: Scripted, inputs: tuple[str, ...] = ("cached",), **limits: Any) -> trials.Trial:
    """Run the process of an inference and read its trial."""
    points = np.arange(10 * 16 * 8, dtype=np.float32).reshape(160, 8) + 1
    tensors.write(folder / "synthetic", {"point": points[:16]})
    tensors.write(folder / "prepared", {"train/point": points})
    tensors.write(folder / "order", {"order": np.arange(160, dtype=np.int32).reshape(10, 16)})
    data = Data(*(str(folder / name) for name in ("synthetic", "prepared", "order")))
    job = recorded_trials.job(folder)
    job = replace(
        job,
        case=replace(job.case, task=INFERENCE, optimizer=NO_OPTIMIZER),
        data=data,
        schedule=Schedule(inputs=inputs, **limits),
    )
    events = EventWriter(folder / protocol.EVENTS, scripted.scripted_clock)
    recorder = timing.Recorder(folder, events)
    described = network.describe(LINE, SIZES)
    with closing(events), closing(recorder):
        inference.measure_inference(job, described, scripted, scripted, events, recorder)  # type: ignore[arg-type]
    return trials.replay(folder, job, protocol.read_events(folder / protocol.EVENTS))


def test_throughput_is_that_of_blocks_and_latency_that_of_single_batches(tmp_path: Path) -> None:
    trial = run(tmp_path, Scripted())
    assert trial.location_ns("cached") == PASS_NS
    assert len(trial.latencies_ns) == 500
    assert set(trial.latencies_ns) == {PASS_NS}


def test_within_a_block_there_is_no_synchronisation_and_outputs_are_read_only_before_anything_but_the_first_batch(
    tmp_path: Path,
) -> None:
    scripted = Scripted()
    trial = run(tmp_path, scripted)
    counted = [block for block in trial.blocks if block.phase == "counted"]
    text = " ".join(scripted.calls)
    for block in counted:
        assert f"synchronise {' '.join(['infer'] * block.steps)} synchronise" in text
    assert text.endswith(" ".join(["synchronise infer synchronise"] * 500))
    assert scripted.calls.count("outputs") == 1
    assert scripted.calls[:5] == ["synchronise", "infer", "synchronise", "outputs", "infer"]


@dataclass
class Remembering(Scripted):
    """Needs no time for a batch object that it has seen before: for any, or for the last one only."""

    last_only: bool = False
    seen: list[Any] = field(default_factory=list)

    def put(self, batch: Any) -> Any:
        return dict(batch)

    def infer(self, batch: Any) -> Any:
        if not any(batch is each for each in self.seen):
            self.pending += 1
            self.seen = [batch] if self.last_only else [*self.seen, batch]
        self.now_ns += 1
        return {"logits": np.ones((16, 3), np.float32)}


def test_work_that_is_remembered_for_a_batch_object_makes_no_latency_shorter(tmp_path: Path) -> None:
    lengths = {"warmup": Length("steps", 5), "counted": Length("steps", 10)}  # adaptive ones would never be long enough
    trial = run(tmp_path, Remembering(), latency_most=30, **lengths)
    assert set(trial.latencies_ns) == {PASS_NS + 1}


def test_work_that_is_remembered_for_the_last_batch_makes_no_cached_pass_shorter(tmp_path: Path) -> None:
    trial = run(tmp_path, Remembering(last_only=True), latency_most=30)
    assert trial.location_ns("cached") == PASS_NS + 1


def test_placing_a_batch_is_no_part_of_its_latency(tmp_path: Path) -> None:
    class Placing(Scripted):
        def put(self, batch: Any) -> Any:
            self.now_ns += 3 * PASS_NS
            return batch

    trial = run(tmp_path, Placing(), latency_most=30)
    trial.check_files()
    assert set(trial.latencies_ns) == {PASS_NS}


@pytest.mark.parametrize(
    ("limits", "count"),
    [
        ({"latency_s": 1.0}, 200),
        ({"latency_s": 1.0, "latency_most": 150}, 150),
        ({"latency_s": 0.01}, 20),
        ({"latency_s": 0.01, "latency_fewest": 30}, 30),
    ],
)
def test_as_many_batches_are_timed_alone_as_the_schedule_allows(tmp_path: Path, limits: Any, count: int) -> None:
    assert len(run(tmp_path, Scripted(), **limits).latencies_ns) == count


def test_the_outputs_of_the_first_batches_are_recorded_as_fingerprints(tmp_path: Path) -> None:
    trial = run(tmp_path, Scripted(), ("pipeline", "cached"))
    expected = {
        f"inference{number}/logits": certify.fingerprint(np.full((16, 3), 2.0 * (128 * (number - 1) + 1)))
        for number in range(1, 6)
    }
    assert trial.outputs == pytest.approx(expected)


def test_a_cached_batch_is_checked_once(tmp_path: Path) -> None:
    assert list(run(tmp_path, Scripted()).outputs) == ["inference1/logits"]


def test_the_pipeline_goes_on_after_the_checked_batches(tmp_path: Path) -> None:
    trial = run(tmp_path, Scripted(), ("pipeline", "cached"))
    assert {block.input for block in trial.blocks if block.phase == "counted"} == {"pipeline", "cached"}
    assert {block.input for block in trial.blocks if block.phase == "latency"} == {"cached"}


def test_outputs_that_are_not_finite_end_the_process_with_their_name(tmp_path: Path) -> None:
    with pytest.raises(Refusal, match=r"The output logits of batch 1 has values that are not finite\.") as caught:
        run(tmp_path, Scripted(value=float("nan")))
    assert caught.value.kind == "nan-output"
    assert caught.value.kind in protocol.ERROR_KINDS


def test_an_inference_has_no_losses_and_its_files_are_complete(tmp_path: Path) -> None:
    trial = run(tmp_path, Scripted())
    trial.check_files()
    assert (tmp_path / protocol.LOSSES).read_bytes() == b""
    assert trial.losses("cached").size == 0


def test_fingerprints_differ_by_no_more_than_the_outputs() -> None:
    generator = np.random.Generator(np.random.PCG64(3))
    for size in (1, 5, 300, 2**18):
        output = generator.standard_normal(size)
        change = 1e-3 * generator.standard_normal(size)
        difference = abs(certify.fingerprint(output + change) - certify.fingerprint(output))
        assert 0 < difference <= np.linalg.norm(change)


def test_rows_in_another_order_have_another_fingerprint() -> None:
    output = np.arange(12.0).reshape(4, 3)
    assert abs(certify.fingerprint(output) - certify.fingerprint(output[::-1])) > 0.1


def test_an_adapter_without_a_predictor_is_refused_with_a_sentence(tmp_path: Path) -> None:
    job = recorded_trials.job(tmp_path)
    tensors.write(tmp_path / "weights", {"head.weight": np.zeros((3, 8), "f4"), "head.bias": np.zeros(3, "f4")})
    settings = replace(job.case.settings, knobs={"fault": "none", "process_noise": 0.0, "noise": 0.0})
    case = replace(job.case, framework="fake", settings=settings, task=INFERENCE, optimizer=NO_OPTIMIZER)
    job = replace(job, case=case, workload_folder=str(LINE), weights=str(tmp_path / "weights"))
    events = EventWriter(tmp_path / protocol.EVENTS, lambda: 0)
    with pytest.MonkeyPatch.context() as patch, closing(events):
        patch.delattr(Adapter, "predictor")
        with pytest.raises(
            Refusal, match=r"^The adapter of fake has no predictor\(\), which inference needs\.$"
        ) as caught:
            process._run(job, events, Ranks(), process._Watched())
    assert caught.value.kind == "unsupported"


def test_epochs_of_an_inference_are_blocks_and_no_epochs_of_a_training(tmp_path: Path) -> None:
    lengths = {"warmup": Length("epochs", 0), "counted": Length("epochs", 2), "evaluate_epochs": True}
    trial = run(tmp_path, Scripted(), ("pipeline",), **lengths)
    found = [(each.phase, each.epoch, each.steps) for each in trial.blocks if each.input == "pipeline"]
    assert (found[0], sum(steps for _, _, steps in found)) == (("counted", 1, 1), 2 * 10)
    assert {(phase, epoch) for phase, epoch, _ in found} == {("counted", 1), ("counted", 2)}
    assert [sum(steps for _, epoch, steps in found if epoch == each) for each in (1, 2)] == [10, 10]
    assert not trial.epochs
    assert [each.read(trial, PROCESS) for each in OF_EPOCHS] == [None] * len(OF_EPOCHS)
