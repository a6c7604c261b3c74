"""Events while a certificate is computed: enough to show that the process lives, and few."""

from __future__ import annotations

from typing import Any

import pytest

from steelyard_worker import progress


class Trainer:
    def step(self, batch: int) -> int:
        return batch + 1


class Events:
    def __init__(self) -> None:
        self.written: list[str] = []

    def write(self, event: str, **values: Any) -> None:
        self.written.append(f"{event} {values['name']}")


def test_many_short_steps_write_one_event_a_second(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    events = Events()
    build = progress.reported(Trainer, events)  # type: ignore[arg-type]
    first, second = build(), build()
    assert [first.step(1), second.step(2)] == [2, 3]
    assert events.written == ["phase step"]
    now[0] += progress.APART_S
    assert [second.step(1), first.step(2)] == [2, 3]
    assert events.written == ["phase step"] * 2
