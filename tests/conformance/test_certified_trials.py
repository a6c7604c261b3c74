"""A trial that reads other batches, or computes something else, than what was certified is noticed, however late that begins."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from steelyard import environments
from steelyard.catalog import frameworks
from steelyard.inputs import case_inputs
from steelyard.measure import jobs
from steelyard.measure.launch import Guard, launch
from steelyard.plan import resolve
from steelyard.plan.options import Options
from steelyard.results import end_check, first_losses
from steelyard_worker.protocol import Length

if TYPE_CHECKING:
    from steelyard.results.trials import Trial
    from steelyard_worker.protocol import Job

pytestmark = [pytest.mark.conformance, pytest.mark.slow]

WORKLOAD = "resnet18:digits"
BATCH = 16
# Enough steps for a mistake that begins at the eleventh.
WARMUP, COUNTED = Length("steps", 10), Length("steps", 8)


def certificate(folder: Path, framework: str) -> dict:
    command = [sys.executable, "-m", "steelyard", "certify", "--json", "--plain", "--runs", str(folder)]
    chosen = ["-w", WORKLOAD, "-f", framework, "--threads", "1", "--batch", str(BATCH)]
    done = subprocess.run([*command, *chosen], capture_output=True, text=True, check=True)
    (found,) = json.loads(done.stdout).values()
    return found


@dataclass(frozen=True)
class Subject:
    """A small case of a framework: its certificate, a job that measures it, and the interpreter."""

    framework: str
    certificate: dict[str, Any]
    job: Job
    python: Path

    def measured(self, folder: Path, worker: Path = frameworks.WORKER) -> Trial:
        job = replace(self.job, folder=str(folder))
        found = launch(job, self.python, lambda event: None, Guard(300), worker)
        assert found.error is None
        return found


@pytest.fixture(scope="module", params=["pytorch", "mxnet"])
def subject(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Subject:
    framework, folder = request.param, tmp_path_factory.mktemp("certified")
    certified = certificate(folder / "runs", framework)
    assert certified["passed"]
    assert len(certified["losses"]) == certified["steps"] == 5
    plan = resolve.plan(Options(workloads=(WORKLOAD,), frameworks=(framework,), threads=(1,), batches=(BATCH,)))
    (variant,) = plan.variants
    (inputs,) = case_inputs.prepare(plan, lambda progress: None).values()
    names = [environments.EnvironmentName(variant.case.framework)]
    (created,) = environments.ensure_all(environments.plan_environments(names, "cpu")).values()
    job = jobs.measuring(plan, variant, inputs, 1, 0, folder / "trial")
    schedule = replace(
        job.schedule, inputs=("pipeline",), evaluate=False, train_steps=0, warmup=WARMUP, counted=COUNTED
    )
    job = replace(job, schedule=schedule)
    return Subject(framework, certified, job, created.python)


def changed(folder: Path, framework: str, file: str, old: str, new: str) -> Path:
    """Return a copy of the worker in which one place of a file of the adapter is changed."""
    worker = folder / "worker"
    shutil.copytree(frameworks.WORKER, worker, ignore=shutil.ignore_patterns("__pycache__"))
    path = worker / "frameworks" / framework / file
    source = path.read_text(encoding="utf-8")
    assert source.count(old) == 1
    path.write_text(source.replace(old, new), encoding="utf-8")
    return worker


def test_a_right_trial_is_right_to_its_end(subject: Subject, tmp_path: Path) -> None:
    right = subject.measured(tmp_path / "right")
    assert first_losses.deviation(right, subject.certificate) == ""
    assert end_check.not_checked(right, subject.certificate) == ""
    assert end_check.batches_not_checked(right) == ""
    assert end_check.deviation(right, subject.certificate) == ""
    assert len(subject.certificate["updates"]) > 50


# By framework: the file, its text, and what replaces it.
SHIFTED_LABELS = {
    "pytorch": (
        "adapter.py",
        "yield trainer.place(batch)",
        'yield trainer.place({**batch, "label": batch["label"].roll(1)})',
    ),
    "mxnet": (
        "pipeline.py",
        "yield trainer.put(batch)",
        'yield trainer.put({**batch, "label": nd.array(batch["label"]).asnumpy()[::-1].astype("int32")})',
    ),
}


def test_labels_that_the_input_pipeline_shifts_are_noticed(subject: Subject, tmp_path: Path) -> None:
    worker = changed(tmp_path, subject.framework, *SHIFTED_LABELS[subject.framework])
    wrong = subject.measured(tmp_path / "wrong", worker)
    assert "The loss of training step 1 is" in first_losses.deviation(wrong, subject.certificate)


STEP = """        _, loss = self._forward(batch)
        loss.backward()
        self._finish_exchange()
        self._rule.step()
"""
MXNET_STEP = """            loss = self.forward(*batch)[0]
        loss.backward()
        self.rule.step(1)"""
COUNTING = "        self._count = getattr(self, '_count', 0) + 1\n"
COUNTING_DEEPER = COUNTING.replace("        self", "            self")
HEAD_ALONE = (
    "        for each in list(self._trained.values())[:-2] if self._count > 10 else ():\n            each.grad = None\n"
)
MXNET_HEAD_ALONE = "        for each in list(self._trained.values())[:-2] if self._count > 10 else ():\n            each.grad()[:] = 0\n"
AUTOCAST = (
    "with torch.autocast('cpu', torch.bfloat16, enabled=self._count > 10):\n            _, loss = self._forward(batch)"
)
HALVED = "batch = [each.astype('float16').astype(each.dtype) for each in batch] if self._count > 10 else batch"
LATER = {
    "no backward pass through the body": (
        {
            "pytorch": (
                "trainer.py",
                STEP,
                COUNTING + STEP.replace("        self._rule", HEAD_ALONE + "        self._rule"),
            ),
            "mxnet": (
                "trainer.py",
                MXNET_STEP,
                COUNTING_DEEPER + MXNET_STEP.replace("        self.rule", MXNET_HEAD_ALONE + "        self.rule"),
            ),
        },
        "certified step 2 is",
    ),
    "a lower precision": (
        {
            "pytorch": ("trainer.py", STEP, COUNTING + STEP.replace("_, loss = self._forward(batch)", AUTOCAST)),
            "mxnet": ("trainer.py", MXNET_STEP, f"{COUNTING_DEEPER}            {HALVED}\n{MXNET_STEP}"),
        },
        "certified step",  # its loss in bfloat16, the change of a tensor in float16
    ),
    "the first eight batches": (
        {
            "pytorch": ("adapter.py", "batch_size=None, ", "batch_size=None, sampler=range(8), "),
            "mxnet": ("pipeline.py", "for step in range(len(steps))", "for step in range(8)"),
        },
        "of the input pipeline is not the one that",
    ),
}


@pytest.mark.parametrize("mistake", LATER)
def test_a_mistake_that_begins_after_step_10_is_noticed(subject: Subject, tmp_path: Path, mistake: str) -> None:
    """Its first losses are the certified ones, so that it passed before."""
    edits, words = LATER[mistake]
    wrong = subject.measured(tmp_path / "wrong", changed(tmp_path, subject.framework, *edits[subject.framework]))
    assert first_losses.deviation(wrong, subject.certificate) == ""
    assert words in end_check.deviation(wrong, subject.certificate)
