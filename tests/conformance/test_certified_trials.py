"""A trial that reads other batches than those that were certified is noticed by its losses."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from steelyard import environments
from steelyard.catalog import frameworks
from steelyard.inputs import case_inputs
from steelyard.measure import jobs
from steelyard.measure.launch import Guard, launch
from steelyard.plan import resolve
from steelyard.plan.options import Options
from steelyard.results.first_losses import deviation

pytestmark = [pytest.mark.conformance, pytest.mark.slow]

WORKLOAD = "resnet18:digits"
PLACED = "yield trainer.place(batch)"
SHIFTED = 'yield trainer.place({**batch, "label": batch["label"].roll(1)})'


def certificate(folder: Path) -> dict:
    command = [sys.executable, "-m", "steelyard", "certify", "--json", "--plain", "--runs", str(folder)]
    chosen = ["-w", WORKLOAD, "-f", "pytorch", "--threads", "1"]
    done = subprocess.run([*command, *chosen], capture_output=True, text=True, check=True)
    (found,) = json.loads(done.stdout).values()
    return found


def test_labels_that_the_input_pipeline_shifts_are_noticed(tmp_path: Path) -> None:
    certified = certificate(tmp_path / "runs")
    assert certified["passed"]
    assert len(certified["losses"]) == certified["steps"] == 5
    worker = tmp_path / "worker"
    shutil.copytree(frameworks.WORKER, worker, ignore=shutil.ignore_patterns("__pycache__"))
    adapter = worker / "frameworks" / "pytorch" / "adapter.py"
    source = adapter.read_text(encoding="utf-8")
    assert source.count(PLACED) == 1
    adapter.write_text(source.replace(PLACED, SHIFTED), encoding="utf-8")

    plan = resolve.plan(Options(workloads=(WORKLOAD,), frameworks=("pytorch",), threads=(1,)))
    (variant,) = plan.variants
    (inputs,) = case_inputs.prepare(plan, lambda progress: None).values()
    names = [environments.EnvironmentName(variant.case.framework)]
    (created,) = environments.ensure_all(environments.plan_environments(names, "cpu")).values()
    job = jobs.measuring(plan, variant, inputs, 1, 0, tmp_path / "trial")
    job = replace(job, schedule=replace(job.schedule, inputs=("pipeline",), evaluate=False, train_steps=0))
    right = launch(job, created.python, lambda event: None, Guard(300))
    wrong = launch(replace(job, folder=str(tmp_path / "wrong")), created.python, lambda event: None, Guard(300), worker)
    assert (right.error, wrong.error) == (None, None)
    assert deviation(right, certified) == ""
    assert "The loss of training step 1 is" in deviation(wrong, certified)
