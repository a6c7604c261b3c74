"""Settings that an implementation changes end the process: they are read after the network is built, and at the end."""

from __future__ import annotations

import os
from types import SimpleNamespace
from typing import Any

import pytest

from steelyard_worker import kept_settings, variables
from steelyard_worker.kept_settings import BUILT, END, KeptSettings
from steelyard_worker.protocol import Refusal


class Events:
    def __init__(self) -> None:
        self.written: list[dict[str, Any]] = []

    def write(self, event: str, **fields: Any) -> None:
        self.written.append({"event": event, **fields})


class Adapter:
    def __init__(self, **values: Any) -> None:
        self.values = values

    def arithmetic(self) -> dict[str, Any]:
        return dict(self.values)


def watched(adapter: Any, workload: str = "bert") -> tuple[KeptSettings, Events]:
    events: Any = Events()
    return KeptSettings(adapter, events, workload), events


def test_a_changed_precision_names_both_values_the_time_and_the_implementation() -> None:
    adapter = Adapter(matmul_precision="highest", threads=2)
    kept, events = watched(adapter)
    adapter.values["matmul_precision"] = "medium"
    with pytest.raises(Refusal) as refused:
        kept.check(BUILT)
    assert refused.value.kind == "setting"
    assert str(refused.value) == (
        "matmul_precision was 'highest' and is 'medium' after the network was built: the implementation of bert changed it. "
        "Settings belong to the case, so remove that from it."
    )
    assert events.written == []


def test_a_change_in_the_first_step_is_seen_at_the_end() -> None:
    adapter = Adapter(threads=2)
    kept, events = watched(adapter)
    kept.check(BUILT)
    kept.check(BUILT)
    adapter.values["threads"] = 1
    with pytest.raises(Refusal, match=r"^threads was 2 and is 1 at the end: "):
        kept.check(END)
    assert events.written == [{"event": "settings-kept", "when": BUILT, "arithmetic": {"threads": 2}}]


def test_settings_that_appear_or_disappear_have_changed() -> None:
    assert kept_settings.difference({"a": 1}, {}) == "a was 1 and is not set"
    assert kept_settings.difference({}, {"a": None}) == "a was not set and is None"
    assert kept_settings.difference({"a": [1]}, {"a": [1]}) == ""


def test_an_environment_variable_that_lowers_the_precision_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """oneDNN reads it when it first computes, which may be after the settings were read."""
    monkeypatch.delenv("ONEDNN_DEFAULT_FPMATH_MODE", raising=False)
    kept, _ = watched(SimpleNamespace())
    monkeypatch.setenv("SOME_OTHER_VARIABLE", "1")
    kept.check(BUILT)
    monkeypatch.setenv("ONEDNN_DEFAULT_FPMATH_MODE", "BF16")
    with pytest.raises(Refusal) as refused:
        kept.check(END)
    changed = "The environment variable ONEDNN_DEFAULT_FPMATH_MODE was not set and is 'BF16' at the end: "
    assert str(refused.value).startswith(changed)


def test_without_a_workload_nothing_is_refused() -> None:
    """As in the float64 runs of a certificate, which float32 settings do not reach: a reference serves other frameworks, too."""
    adapter = Adapter(matmul_precision="highest")
    kept, _ = watched(adapter, "")
    adapter.values["matmul_precision"] = "medium"
    kept.check(END)


def test_an_adapter_without_the_method_has_no_settings_that_could_change() -> None:
    kept, events = watched(SimpleNamespace())
    kept.check(BUILT)
    assert kept.arithmetic == {}
    assert events.written[0]["arithmetic"] == {}


def test_variables_that_decide_the_precision_are_among_those_that_are_not_passed_on() -> None:
    environ = dict.fromkeys(("ONEDNN_DEFAULT_FPMATH_MODE", "NVIDIA_TF32_OVERRIDE", "HOME", "MY_OWN"), "1")
    assert list(variables.precision(environ)) == ["NVIDIA_TF32_OVERRIDE", "ONEDNN_DEFAULT_FPMATH_MODE"]
    assert variables.passed(dict(os.environ) | environ).keys().isdisjoint(variables.precision(environ))
