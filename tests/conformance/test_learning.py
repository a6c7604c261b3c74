"""Every network learns from real data, to the same score in every framework: from the same weights, over the same batches."""

from __future__ import annotations

import os
import shutil
import zipfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import tomllib

from steelyard import environments, frameworks, jobs, materials, plan, workloads
from steelyard.launch import Guard, launch
from steelyard.options import Options

if TYPE_CHECKING:
    from steelyard.trials import Trial

DATA = os.environ.get("STEELYARD_TEST_DATA", "")
TABLE: dict[str, dict[str, Any]] = tomllib.loads((Path(__file__).parent / "learning.toml").read_text(encoding="utf-8"))
TEST_SAMPLES = 1000
AT_ONCE = 2

pytestmark = [
    pytest.mark.conformance,
    pytest.mark.skipif(not DATA, reason="STEELYARD_TEST_DATA names no folder with real data in official layouts"),
]


def real_data(wanted: dict[str, Any], folder: Path) -> Path:
    """The folder with a data set, unpacked where it lies in an archive."""
    if "archive" not in wanted:
        return Path(DATA) / wanted.get("folder", "")
    with zipfile.ZipFile(Path(DATA) / wanted["archive"]) as archive:
        archive.extractall(folder / "data")
    return folder / "data"


def planned(name: str, folder: Path) -> plan.RunPlan:
    """A plan of the workload's tiny preset on real data, in every framework."""
    wanted = TABLE[name]
    data = "" if wanted.get("embedded") else str(real_data(wanted, folder))
    shutil.copytree(workloads.find()[name].folder, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    found = plan.plan(
        Options(
            workloads=(f"{name}:{wanted.get('preset', 'tiny')}",), frameworks=("*",), protocol=f"fixed:{wanted['steps']}+1",
            workload_folders=(str(folder),), data=data, threads=1,
            optimizer=wanted.get("optimizer", ""),
        )
    )  # fmt: skip
    workload = found.workloads[name]
    preset = workload.presets[wanted.get("preset", "tiny")]
    real = replace(preset, sizes=preset.sizes | wanted.get("sizes", {}), data=wanted["data"])
    rate = wanted.get("learning_rate")
    cells = tuple(replace(c, optimizer=replace(c.optimizer, learning_rate=rate)) for c in found.cells) if rate else found.cells
    changed = replace(workload, presets={**workload.presets, preset.name: real})
    study = replace(found.study, evaluation_limit=TEST_SAMPLES)
    return replace(found, cells=cells, study=study, workloads={**found.workloads, name: changed})


@pytest.fixture(scope="module", params=TABLE)
def trained(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, dict[str, Trial]]:
    """Train one workload in every framework; returns {framework: trial}."""
    name = request.param
    folder = tmp_path_factory.mktemp(name)
    wanted = planned(name, folder / "workloads")
    (shared,) = materials.prepare(wanted, lambda progress: None).values()
    made = environments.ensure_all(environments.plan_environments(list(frameworks.contenders()), "cpu"))

    def train(cell: Any) -> tuple[str, Trial]:
        job = jobs.measuring(wanted, cell, shared, 1, 0, folder / cell.framework)
        job = replace(job, plan=replace(job.plan, inputs=("pipeline",), evaluate=True, block_min_steps=1))
        return cell.framework, launch(job, made[cell.environment].python, lambda event: None, Guard(300))

    with ThreadPoolExecutor(AT_ONCE) as pool:
        return name, dict(pool.map(train, wanted.cells))


def test_every_framework_learns_and_all_learn_the_same(trained: tuple[str, dict[str, Trial]]) -> None:
    name, trials = trained
    assert {framework: trial.error for framework, trial in trials.items() if trial.error} == {}
    wanted = TABLE[name]
    scores = {
        framework: trial.evaluation.scores[wanted["score"]] for framework, trial in trials.items() if trial.evaluation
    }
    print(name, {framework: round(score, 4) for framework, score in scores.items()})
    assert scores.keys() == trials.keys()
    assert min(scores.values()) >= wanted.get("at_least", float("-inf"))
    assert max(scores.values()) <= wanted.get("at_most", float("inf"))
    assert max(scores.values()) - min(scores.values()) <= wanted["band"]


def test_the_table_covers_every_workload_that_the_default_study_does_not_train() -> None:
    assert TABLE.keys() == workloads.find().keys() - {"resnet18", "lstm-imdb"}
