"""The checks of an adapter's contract: the example of the documentation passes all of them, and each planted fault fails one."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from steelyard_worker import contract, network
from steelyard_worker.case import Case, Optimizer, Settings
from steelyard_worker.frames import place_in
from steelyard_worker.protocol import Data, Job, Refusal

ROOT = Path(__file__).resolve().parents[2]
LINE = ROOT / "tests" / "workloads" / "line"
PAGE = (ROOT / "docs" / "adding-a-framework.md").read_text(encoding="utf-8")
CODE = {
    name: re.search(rf"^`{name}`:\n\n```python\n(.*?)^```$", PAGE, re.M | re.S)[1]  # type: ignore[index]
    for name in ("adapter.py", "workloads/line.py")
}
SIZES = {"features": 8, "classes": 3, "batch": 16}

# An adapter that computes in a background thread: `step` returns at once, and reading a result waits.
BACKGROUND = """

import queue, threading, time


class Background(Trainer):
    def __init__(self, *arguments):
        super().__init__(*arguments)
        self._queue = queue.Queue()
        threading.Thread(target=self._work, daemon=True).start()

    def _work(self):
        while True:
            batch, handle = self._queue.get()
            time.sleep(0.002)
            handle.append(super().step(batch))
            self._queue.task_done()

    def step(self, batch):
        self._queue.put((batch, handle := []))
        return handle

    def synchronise(self):
        WAIT

    def losses(self, handles):
        self._queue.join()
        return super().losses([handle[0] for handle in handles])

    def state(self):
        self._queue.join()
        return super().state()
"""


# A predictor that computes in a background thread: `infer` returns at once.
LATE = """

import queue, threading, time


class Late(Predictor):
    def __init__(self, *arguments):
        super().__init__(*arguments)
        self._queue = queue.Queue()
        threading.Thread(target=self._work, daemon=True).start()

    def _work(self):
        while True:
            batch, found = self._queue.get()
            time.sleep(0.002)
            found.update(super().infer(batch))
            self._queue.task_done()

    def infer(self, batch):
        self._queue.put((batch, found := {}))
        return found

    def synchronise(self):
        WAIT

    def outputs(self, batch):
        found = self.infer(batch)
        self._queue.join()
        return found
"""


def module(text: str) -> ModuleType:
    """Return a module with the given source."""
    made = ModuleType("planted")
    exec(compile(text, "planted", "exec"), made.__dict__)  # the page's own code, with a planted fault
    return made


def subject(adapter: str, implementation: str, settings: Settings) -> contract.Subject:
    """Return what the checks work on: the workload `line` in the given adapter."""
    described = network.describe(LINE, SIZES)
    generator = np.random.Generator(np.random.PCG64(7))
    weights = {p.name: generator.standard_normal(p.shape).astype(np.float32) for p in described.parameters}
    batch = {
        "point": generator.standard_normal((16, 8)).astype(np.float32),
        "label": generator.integers(0, 3, 16, np.int32),
    }
    case = Case("line", "small", SIZES, "", {}, Optimizer("sgd", 0.1, momentum=0.9), "planted", settings)
    job = Job("contract", case, str(LINE), "", Data(""), "")
    driver, formulas = module(adapter).Adapter(settings), module(implementation)

    def build(optimizer: Optimizer) -> Any:
        return driver.trainer(formulas, SIZES, described, weights, optimizer)

    def predict() -> Any:
        return driver.predictor(formulas, SIZES, described, weights)

    return contract.Subject(job, described, driver, build, predict, weights, batch)


def failure(name: str, adapter: str = CODE["adapter.py"], line: str = CODE["workloads/line.py"], **more: Any) -> str:
    """Run one check; returns what it found, empty where it passed."""
    found = subject(adapter, line, Settings("eager", **{"knobs": KNOBS, **more}))
    try:
        contract._checks(found)[name](found)
    except contract.Failed as failed:
        return str(failed)
    return ""


KNOBS = {"layout": "rows"}
NAMES = (
    "weights",
    "outputs",
    "gradients",
    "update",
    "put copies",
    "synchronise waits",
    "pipeline",
    "inference",
    "inference waits",
    "restart",
    "refusals",
    "read back",
)


@pytest.mark.parametrize("precision", ["float32", "float64"])
@pytest.mark.parametrize("name", NAMES)
def test_the_example_of_the_documentation_passes_every_check(name: str, precision: str) -> None:
    assert failure(name, precision=precision) == ""


def test_every_check_is_seen_to_fail_here() -> None:
    every = contract._checks(
        subject(CODE["adapter.py"], CODE["workloads/line.py"], Settings("eager", deterministic=True, knobs=KNOBS))
    )
    assert {name for name, *_ in FAULTS} | {"synchronise waits", "inference waits", "determinism"} == every.keys()
    assert failure("determinism", deterministic=True) == ""


FAULTS = [
    (
        "read back",
        "self._mode = settings.mode",
        "self._mode, self.applied = settings.mode, lambda: {'threads': settings.threads}",
        "reports threads = 0 of one adapter and 1 of another in the same process",
    ),
    (
        "read back",
        "self._mode = settings.mode",
        "self._mode, self.applied = settings.mode, lambda: {'deterministic': settings.deterministic}",
        "reports deterministic = False of one adapter and True of another",
    ),
    (
        "weights",
        "np.array(weights[p.name], dtype, order=order)",
        "np.array(weights[p.name], np.float16).astype(dtype)",
        "other values",
    ),
    ("weights", 'np.array(weight, order="C") for', "np.array(weight, np.float64) for", "must be float32"),
    ("weights", "in self._weights.items()}", "in self._weights.items() if name[-1] != 's'}", "lacks head.bias"),
    (
        "outputs",
        "return self.infer(batch)",
        "return {'logits': np.ones(3)}",
        "must be float32",
    ),
    (
        "gradients",
        "return outputs, float(loss), gradients",
        "return outputs, loss, gradients",
        "must be a finite float",
    ),
    ("gradients", "return outputs, float(loss), gradients", "return outputs, float(loss), {}", "lacks head.bias"),
    ("update", "self._weights[name] -=", "self._unused =", "No trainable tensor changes"),
    ("update", "np.array(handles, np.float32)", "np.array(handles)", "must be float32"),
    (
        "put copies",
        'np.array(array, self._dtype if array.dtype.kind == "f" else None)',
        "np.asarray(array)",
        "put() must copy",
    ),
    ("pipeline", "source.batch(step)", "source.batch(step ^ 1)", "Batch 0 of the pipeline"),
    ("pipeline", "while True", "while step < 3", "ends after 3 batches"),
    (
        "inference",
        "return Predictor(implementation, network, weights,",
        "return Predictor(implementation, network, {name: 2 * array for name, array in weights.items()},",
        "is not that of the trainer",
    ),
    ("inference", 'np.array(weight, order="C") for', "np.array(weight + 1) for", "other values for head.weight"),
    ("restart", "velocity[...] = 0", "pass", "Loss 1 after restart() is not that of a new trainer"),
    ("restart", "weight[...] = weights[name]", "pass", "Loss 0 after restart() is not that of a new trainer"),
    ("restart", "return 0", "self.count = getattr(self, 'count', 0) + 1; return self.count", "compiled again"),
    ("refusals", 'optimizer.name != "sgd" or', "", "trainer() accepts it"),
    ("refusals", 'raise Refusal("unsupported", "Plain', 'raise Refusal("cannot", "Plain', "unknown kind 'cannot'"),
    ("refusals", 'raise Refusal("unsupported", "Plain', 'raise KeyError("Plain', "not KeyError"),
]


@pytest.mark.parametrize(("name", "old", "new", "words"), FAULTS)
def test_a_planted_fault_fails_its_check(name: str, old: str, new: str, words: str) -> None:
    assert old in CODE["adapter.py"]
    assert words in failure(name, CODE["adapter.py"].replace(old, new))


def test_float64_that_is_computed_in_float32_is_found() -> None:
    old = "return self.infer(batch)"
    new = "return {'logits': self._implementation.forward(self._weights, batch)['logits'].astype('f4').astype('f8')}"
    planted = CODE["adapter.py"].replace(old, new)
    assert failure("outputs", planted, precision="float64") == "Outputs in float64 have only the accuracy of float32."


@pytest.mark.parametrize("deterministic", [False, True])
def test_a_restart_is_compared_bit_by_bit_where_runs_are_deterministic(deterministic: bool) -> None:
    planted = CODE["adapter.py"].replace("weight[...] = weights[name]", "weight[...] = weights[name] * (1 + 1e-6)")
    found = failure("restart", planted, deterministic=deterministic)
    assert bool(found) == deterministic, found


@pytest.mark.parametrize(
    ("trainable", "words"), [(True, "the trainable tensors are not"), (False, "the statistics are not")]
)
def test_tensors_that_a_restart_leaves_are_found_where_no_loss_shows_them(trainable: bool, words: str) -> None:
    """The same number on every logit leaves the loss as it is. As a statistic, the bias counts by itself."""
    planted = CODE["adapter.py"].replace(
        "weight[...] = weights[name]", "weight[...] = weights[name] + 9 * ('bias' in name)"
    )
    found = subject(planted, CODE["workloads/line.py"], Settings("eager", knobs=KNOBS))
    weight, bias = found.network.parameters
    found.network = replace(found.network, parameters=(weight, replace(bias, trainable=trainable)))
    with pytest.raises(contract.Failed, match=words):
        contract._checks(found)["restart"](found)


def test_a_restart_may_be_missing_or_refused_as_unsupported() -> None:
    assert failure("restart", CODE["adapter.py"].replace("def restart", "def unused")) == ""
    refused = CODE["adapter.py"].replace("velocity[...] = 0", "raise Refusal('unsupported', 'No.')")
    assert failure("restart", refused) == ""
    with pytest.raises(Refusal):
        failure("restart", refused.replace("'unsupported', 'No.'", "'setting', 'No.'"))


def test_equal_runs_that_differ_are_found() -> None:
    planted = CODE["adapter.py"].replace(
        "velocity += gradient", "velocity += gradient * (1 + 1e-6 * np.random.standard_normal())"
    )
    assert "Two equal runs" in failure("determinism", planted, deterministic=True)


@pytest.mark.parametrize(
    ("wait", "words"), [("pass", "returns before the steps have finished"), ("self._queue.join()", "")]
)
def test_a_synchronise_that_does_not_wait_is_found(wait: str, words: str) -> None:
    planted = CODE["adapter.py"].replace("return Trainer(", "return Background(") + BACKGROUND.replace("WAIT", wait)
    found = failure("synchronise waits", planted)
    assert words in found
    assert bool(found) == bool(words)


@pytest.mark.parametrize(
    ("wait", "words"), [("pass", "returns before 150 passes have finished"), ("self._queue.join()", "")]
)
def test_a_synchronise_of_a_predictor_that_does_not_wait_is_found(
    monkeypatch: pytest.MonkeyPatch, wait: str, words: str
) -> None:
    monkeypatch.setattr(contract, "MOST", 150)  # the same number of passes on any machine
    monkeypatch.setattr(contract, "SYNCHRONISED_S", 60.0)
    planted = CODE["adapter.py"].replace("return Predictor(", "return Late(") + LATE.replace("WAIT", wait)
    found = failure("inference waits", planted)
    assert words in found
    assert bool(found) == bool(words)


def test_an_exception_of_an_adapter_fails_its_check_and_the_others_run() -> None:
    class Events(list):  # type: ignore[type-arg]
        def write(self, event: str, **values: Any) -> None:
            self.append(values)

    planted = CODE["adapter.py"].replace("def state(self):", "def state(self):\n        raise OSError('gone')")
    found, events = subject(planted, CODE["workloads/line.py"], Settings("eager", knobs=KNOBS)), Events()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(contract.batches, "synthetic_batch", lambda _: found.batch)
        contract.check(found.job, found.network, found.adapter, found.weights, found.build, found.predict, events)  # type: ignore[arg-type]
    by_name = {each["name"]: each for each in events}
    assert by_name["weights"] == {"name": "weights", "passed": False, "message": "OSError: gone"}
    assert by_name["gradients"]["passed"]


def test_settings_that_a_framework_takes_only_once_are_not_called_returned_unread() -> None:
    once = CODE["adapter.py"].replace(
        "self._mode = settings.mode",
        "self._mode, self.applied = settings.mode, lambda: {'threads': settings.threads}\n        if settings.threads:\n"
        "            raise RuntimeError('The threads cannot be changed any more.')",
    )
    assert failure("read back", once) == ""


def test_a_failure_names_the_last_line_of_the_adapters_own_files(tmp_path: Path) -> None:
    (tmp_path / "adapter.py").write_text(
        "def step(value):\n    return helper(value)\n\n\ndef helper(value):\n    return int(value)\n"
    )
    own: dict[str, Any] = {}
    exec(compile((tmp_path / "adapter.py").read_text(), str(tmp_path / "adapter.py"), "exec"), own)
    with pytest.raises(ValueError, match="invalid literal") as raised:
        own["step"]("x")
    assert place_in(raised.value, str(tmp_path)) == " (adapter.py, line 6, in helper)"
    assert place_in(raised.value, str(tmp_path / "elsewhere")) == ""
    assert place_in(raised.value, "") == "", "the files of a built-in framework are not the user's"
