"""What was requested must be what the framework reports, before anything is computed."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from steelyard_worker import trial
from steelyard_worker.case import Settings
from steelyard_worker.protocol import Refusal

REPORTED = {"mode": "jit", "precision": "float32", "deterministic": False, "layout": "rows"}


class Events:
    def __init__(self) -> None:
        self.written: list[dict[str, Any]] = []

    def write(self, event: str, **fields: Any) -> None:
        self.written.append({"event": event, **fields})


def check(device: str, /, **reported: Any) -> Events:
    """Check an adapter that reports these settings, where eight threads and the layout "rows" were requested."""
    settings = Settings("jit", device=device, threads=8, knobs={"layout": "rows"})
    case = SimpleNamespace(settings=settings, framework="jax", strategy="single", workload="bert")
    job: Any = SimpleNamespace(kind="measure", case=case, spread=None)
    applied = REPORTED | {"device": device} | reported
    adapter: Any = SimpleNamespace(applied=lambda: applied, libraries=lambda: {"jax": "0.11.2"})
    events: Any = Events()
    trial._check_applied(job, adapter, events)
    return events


def test_what_the_framework_reports_is_recorded() -> None:
    (event,) = check("cpu", threads=8).written
    assert event["event"] == "applied"
    assert event["applied"]["threads"] == 8
    assert event["libraries"] == {"jax": "0.11.2"}


@pytest.mark.parametrize(
    ("device", "reported", "sentence"),
    [
        ("cpu", {"threads": 8, "layout": "columns"}, "layout was set to 'rows', but jax reports 'columns'."),
        ("cpu", {"threads": 4}, "threads was set to 8, but jax reports 4."),
        ("cpu", {}, "threads was set to 8, but jax reports None."),
        ("cuda", {"threads": 4}, "threads was set to 8, but jax reports 4."),
        ("cuda", {"device": "cpu"}, "device was set to 'cuda', but jax reports 'cpu'."),
    ],
)
def test_another_setting_is_refused(device: str, reported: dict[str, Any], sentence: str) -> None:
    with pytest.raises(Refusal) as refused:
        check(device, **reported)
    assert str(refused.value) == sentence


def test_on_a_gpu_a_framework_may_have_no_threads_that_compute() -> None:
    assert "threads" not in check("cuda").written[0]["applied"]
