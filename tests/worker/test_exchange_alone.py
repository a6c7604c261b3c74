"""The job that measures an exchange by itself, on ranks that are threads, with scripted all-reduces and trainers."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import recorded_trials
from test_joined_ranks import together

from steelyard_worker import communication, tensors
from steelyard_worker.protocol import Data, Refusal

if TYPE_CHECKING:
    from pathlib import Path

    from steelyard_worker.ranks import Ranks

SCALARS = 600
CALL_NS = 50_000_000


@dataclass
class Events:
    """Keeps what is written."""

    written: list[dict[str, Any]] = field(default_factory=list)

    def write(self, event: str, **values: Any) -> None:
        self.written.append({"event": event, **values})


class Network:
    trainable_count = SCALARS


class Reduce:
    """Adds up what all ranks of a group bring; a call takes a scripted time."""

    name = "scripted sum"

    def __init__(self, adapter: Adapter, array: Any) -> None:
        self.mean, self._adapter, self._array = adapter.mean, adapter, array
        self._called = 0

    def __call__(self) -> None:
        group = self._adapter.group
        group.brought[self._adapter.rank] = self._array
        group.barrier.wait(10)
        total = np.sum(list(group.brought.values()), axis=0)
        self._found = total / len(group.brought) if self.mean else total
        group.barrier.wait(10)
        self._adapter.now += CALL_NS if self._called >= self._adapter.fast_calls else CALL_NS // 10
        self._called += 1

    def result(self) -> Any:
        return self._array if self._adapter.wrong else self._found


@dataclass
class Group:
    """What the ranks share."""

    count: int
    brought: dict[int, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.barrier = threading.Barrier(self.count)


@dataclass
class Adapter:
    """One rank."""

    group: Group
    rank: int
    mean: bool = False
    wrong: bool = False
    fast_calls: int = 0
    now: int = 0

    def scripted_clock(self) -> int:
        return self.now

    def all_reduce(self, array: Any) -> Reduce:
        return Reduce(self, array)


def reduced(folder: Path, count: int, **script: int) -> list[Any]:
    """Run the job on some ranks; return the events of each rank, or its exception."""
    group = Group(count)

    def work(own: Ranks) -> list[dict[str, Any]]:
        events = Events()
        adapter: Any = Adapter(group, own.rank, **script)
        communication.all_reduce(recorded_trials.job(folder), Network(), adapter, events, own)  # type: ignore[arg-type]
        return events.written

    return together(count, work)


@pytest.mark.parametrize("mean", [False, True])
@pytest.mark.parametrize("count", [2, 3])
def test_all_ranks_do_the_same_blocks(tmp_path: Path, count: int, mean: bool) -> None:
    first, *others = reduced(tmp_path, count, mean=mean)
    blocks = [(each["phase"], each["calls"], each["elapsed_ns"]) for each in first]
    calls = 6  # as many as take 0.3 s
    assert blocks == [("warm-up", 3, 3 * CALL_NS)] + [("counted", calls, calls * CALL_NS)] * communication.BLOCKS
    for other in others:
        assert [(each["phase"], each["calls"], each["elapsed_ns"]) for each in other] == blocks
    assert {each["bytes"] for each in first} == {4 * SCALARS}
    assert {each["processes"] for each in first} == {count}


@pytest.mark.parametrize("mean", [False, True])
def test_a_result_that_is_not_of_all_ranks_is_refused(tmp_path: Path, mean: bool) -> None:
    for found in reduced(tmp_path, 2, mean=mean, wrong=True):
        assert isinstance(found, Refusal)
        assert f"did not return the {'mean' if mean else 'sum'} of what 2 ranks brought" in str(found)


def test_the_first_calls_are_not_the_measure_of_later_ones(tmp_path: Path) -> None:
    """In JAX, the first calls on a core that all threads of a rank share took a tenth of the time of the others."""
    later = communication.WARM_UP_S * 1e9 / (CALL_NS // 10)
    for events in reduced(tmp_path, 2, fast_calls=1 + communication.WARM_UP_CALLS):
        assert [(each["phase"], each["calls"]) for each in events] == [
            ("warm-up", 3),
            ("warm-up", later),
            *[("counted", 6)] * communication.BLOCKS,
        ]


def test_a_slow_exchange_is_repeated_less(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(communication, "LONGEST_S", 0.7)
    first, _ = reduced(tmp_path, 2)
    assert [each["phase"] for each in first] == ["warm-up", "counted", "counted"]


def test_a_part_that_is_missing_is_noticed_at_any_place() -> None:
    class Found:
        name, mean = "scripted", False

        def result(self) -> Any:
            return whole

    scalars = 2 * communication.PIECE + 5
    whole = communication.buffer(scalars, 0) + communication.buffer(scalars, 1)
    communication.check(Found(), scalars, 2)  # type: ignore[arg-type]
    for place in (0, communication.PIECE, scalars - 1):
        whole[place] += 1
        with pytest.raises(Refusal):
            communication.check(Found(), scalars, 2)  # type: ignore[arg-type]
        whole[place] -= 1
    whole = whole[:-1]
    with pytest.raises(Refusal):
        communication.check(Found(), scalars, 2)  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", ["all_reduce", "staleness"])
def test_an_adapter_without_the_method_is_refused(tmp_path: Path, kind: str) -> None:
    job: Any = recorded_trials.job(tmp_path)
    adapter: Any = object()
    with pytest.raises(Refusal, match=r"has no (all_reduce|counting_trainer)\(\)"):
        if kind == "all_reduce":
            communication.all_reduce(job, Network(), adapter, Events(), None)  # type: ignore[arg-type]
        else:
            communication.staleness(job, adapter, lambda: None, Events(), None)  # type: ignore[arg-type, return-value]


@dataclass
class Trainer:
    """A rank whose gradients have missed a scripted number of updates."""

    script: list[int]
    steps: int = 0
    asked: int = 0

    def put(self, batch: Any) -> Any:
        return batch

    def step(self, batch: Any) -> None:
        del batch
        self.steps += 1

    def synchronise(self) -> None: ...

    def staleness(self) -> Any:
        asked, self.asked = self.asked, self.steps
        steps = range(asked, self.steps) if self.script else ()
        return np.array([self.script[step % len(self.script)] for step in steps], np.int64)


def test_staleness_is_counted_after_the_first_steps(tmp_path: Path) -> None:
    tensors.write(tmp_path / "batch", {"x": np.zeros((4, 2), np.float32)})
    scripts = {0: [0, 1, 1, 3], 1: []}  # the second rank works for the first, and has no gradients of its own

    def work(own: Ranks) -> tuple[int, list[dict[str, Any]]]:
        events, trainer = Events(), Trainer(scripts[own.rank])
        job: Any = recorded_trials.job(tmp_path)
        job = replace(job, data=Data(str(tmp_path / "batch")))
        adapter: Any = Counting()
        communication.staleness(job, adapter, lambda: trainer, events, own)  # type: ignore[arg-type, return-value]
        return trainer.steps, events.written

    class Counting:
        counting_trainer = None

    (steps, first), (_, second) = together(2, work)
    assert steps == communication.WARM_UP_STEPS + communication.STALE_STEPS
    assert first == [{"event": "staleness", "steps": 100, "missed": [25, 50, 0, 25]}]
    assert second == [{"event": "staleness", "steps": 100, "missed": []}]
