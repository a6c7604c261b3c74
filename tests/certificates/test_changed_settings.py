"""Implementations that change how precisely a library computes, or on how many threads, are refused in every framework.

Their tensors would often be right: libraries use a lower precision from some batch on, or on some processors only.
"""

from __future__ import annotations

import shutil
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
import subjects

from steelyard.catalog import frameworks
from steelyard.measure.launch import Guard, launch
from steelyard_worker import protocol
from steelyard_worker.case import INFERENCE
from steelyard_worker.protocol import Certify

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from steelyard_worker.protocol import Job

pytestmark = pytest.mark.conformance

WORKLOAD = "lstm-imdb"
# What is added to an implementation: code when it is imported, when the network is built, or when its outputs are first asked for.
IMPORTED = "{code}\n"
BUILT = """
_build = build

def build(*arguments):
    {code}
    return _build(*arguments)
"""
FIRST_PASS = """
_forward = Network.{forward}

def _changing(self, *arguments, **options):
    {code}
    return _forward(self, *arguments, **options)

Network.{forward} = _changing
"""
TRACED = """
_forward = forward

def forward(*arguments):
    {code}
    return _forward(*arguments)
"""
MEDIUM = "torch.set_float32_matmul_precision('medium')"
AUTOCAST = "torch.autocast('cpu', torch.bfloat16).__enter__()"
KERAS = "import keras; keras.config.set_dtype_policy('mixed_bfloat16')"
TF32 = "tf.config.experimental.enable_tensor_float_32_execution(True)"
REWRITING = "tf.config.optimizer.set_experimental_options({'auto_mixed_precision_onednn_bfloat16': True})"
BFLOAT16 = "jax.config.update('jax_default_matmul_precision', 'bfloat16')"
ONEDNN = "import os; os.environ['ONEDNN_DEFAULT_FPMATH_MODE'] = 'BF16'"
VARIABLE = "The environment variable ONEDNN_DEFAULT_FPMATH_MODE was not set and is 'BF16'"
AMP = "from mxnet.contrib import amp; amp.init('bfloat16')"
ALLOWED = "from steelyard_worker.frameworks.mindspore import onednn; onednn._library().dnnl_set_default_fpmath_mode(1)"
AFTER, END = "after the network was built", "at the end"
CHANGES = [
    ("pytorch", FIRST_PASS, MEDIUM, "matmul_precision was 'highest' and is 'medium'", END),
    (
        "pytorch",
        BUILT,
        "torch.backends.mkldnn.conv.fp32_precision = 'tf32'",
        "onednn_conv_precision was 'none' and is 'tf32'",
        AFTER,
    ),
    (
        "pytorch",
        FIRST_PASS,
        "torch.backends.fp32_precision = 'bf16'",
        "matmul_precision was 'highest' and is 'set in two ways'",
        END,
    ),
    ("pytorch", FIRST_PASS, "torch.set_num_threads(2)", "threads was 1 and is 2", END),
    ("tensorflow", IMPORTED, TF32, "tf32 was False and is True", AFTER),
    (
        "tensorflow",
        FIRST_PASS,
        REWRITING,
        "mixed_precision was [] and is ['auto_mixed_precision_onednn_bfloat16']",
        END,
    ),
    ("jax", TRACED, BFLOAT16, "matmul_precision was None and is 'bfloat16'", END),
    ("mindspore", BUILT, ALLOWED, "onednn_precision was 'strict' and is 'bf16'", AFTER),
    ("mxnet", IMPORTED, AMP, "mixed_precision was False and is True", AFTER),
]
# Left to `make test-all`.
FURTHER = [
    ("pytorch", IMPORTED, MEDIUM, "matmul_precision was 'highest' and is 'medium'", AFTER),
    ("pytorch", BUILT, MEDIUM, "matmul_precision was 'highest' and is 'medium'", AFTER),
    ("pytorch", BUILT, AUTOCAST, "autocast was False and is True", AFTER),
    ("pytorch", IMPORTED, ONEDNN, VARIABLE, AFTER),
    ("tensorflow", BUILT, KERAS, "keras_policy was 'float32' and is 'mixed_bfloat16'", AFTER),
    ("jax", IMPORTED, BFLOAT16, "matmul_precision was None and is 'bfloat16'", AFTER),
    ("mindspore", BUILT, ONEDNN, VARIABLE, AFTER),
]
FORWARD = {"pytorch": "forward", "tensorflow": "__call__"}


def parameters(change: tuple[str, ...], *marks: Any) -> Any:
    framework, _, code, _, when = change
    return pytest.param(*change, id=f"{framework}: {code.split('; ')[-1]}, {when}", marks=marks)


def job_of(framework: str, folder: Path, task: str) -> Job:
    """Return the job that saves the tensors of one step, or of one batch of an inference."""
    found = subjects.candidate(framework, WORKLOAD, "tiny", folder, task=task)
    return replace(found.job, certify=Certify(steps=1), data=replace(found.job.data, adversarial=""))


def run(job: Job, python: Path, worker: Path = frameworks.WORKER) -> Any:
    return launch(job, python, lambda event: None, Guard(300), worker)


def changed_worker(folder: Path, framework: str, addition: str) -> Path:
    copied = folder / "worker"
    shutil.copytree(frameworks.WORKER, copied, ignore=shutil.ignore_patterns("__pycache__"))
    path = copied / "workloads" / WORKLOAD / f"{framework}.py"
    path.write_text(path.read_text(encoding="utf-8") + addition, encoding="utf-8")
    return copied


@pytest.mark.parametrize(
    ("framework", "place", "code", "names", "when"),
    [*map(parameters, CHANGES), *(parameters(each, pytest.mark.slow) for each in FURTHER)],
)
def test_an_implementation_that_changes_a_setting_is_refused(
    interpreter: Callable[[str], Path], tmp_path: Path, framework: str, place: str, code: str, names: str, when: str
) -> None:
    worker = changed_worker(tmp_path, framework, place.format(code=code, forward=FORWARD.get(framework, "")))
    job = replace(job_of(framework, tmp_path, INFERENCE), workload_folder=str(worker / "workloads" / WORKLOAD))
    error = run(job, interpreter(framework), worker).error
    assert error is not None
    kind, message = error
    assert (kind, message.partition(":")[0]) == ("setting", f"{names} {when}")
    assert f"the implementation of {WORKLOAD} changed it" in message


@pytest.mark.slow
@pytest.mark.parametrize("framework", ["pytorch", "tensorflow", "jax", "mindspore", "mxnet"])
def test_unchanged_code_keeps_its_settings(interpreter: Callable[[str], Path], tmp_path: Path, framework: str) -> None:
    job = job_of(framework, tmp_path, "training")
    trial = run(job, interpreter(framework))
    assert (trial.error, trial.done) == (None, True)
    events = list(protocol.read_events(trial.folder / protocol.EVENTS))
    (applied,) = (each["arithmetic"] for each in events if each["event"] == "applied")
    again = [(each["when"], each["arithmetic"]) for each in events if each["event"] == "settings-kept"]
    assert again == [(AFTER, applied), (END, applied)]
    assert len(applied) >= 5
