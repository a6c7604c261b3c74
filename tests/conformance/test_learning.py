"""Every network learns from real data and reaches the same score in every framework, from the same weights and batches."""

from __future__ import annotations

import os
import zipfile
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import decides
import pytest
import tomllib
from decides import Sources

from steelyard import environments
from steelyard.catalog import frameworks, workloads
from steelyard.inputs import case_inputs
from steelyard.measure import jobs
from steelyard.measure.launch import Guard, launch
from steelyard.plan import resolve
from steelyard.plan.options import Options

if TYPE_CHECKING:
    from collections.abc import Iterator

    from steelyard.plan.run_plan import RunPlan, Variant
    from steelyard.results.trials import Trial

DATA = os.environ.get("STEELYARD_TEST_DATA", "")
TABLE: dict[str, dict[str, Any]] = tomllib.loads((Path(__file__).parent / "learning.toml").read_text(encoding="utf-8"))
# These take half a minute to two minutes each, so they are left to `make test-all`. Their certificates are in `make test`.
SLOW = {"deepspeech2", "gnmt", "googlenet", "inceptionv3", "resnet50", "tacotron2", "vgg16"}
TEST_SAMPLES = 1000
CONCURRENT_PROCESSES = 2
FIRST_LOSS_BAND = 1e-4  # relative

pytestmark = [
    pytest.mark.conformance,
    pytest.mark.skipif(
        not DATA, reason="STEELYARD_TEST_DATA does not name a folder with real data in official layouts"
    ),
]


def decided(name: str) -> Sources:
    """Return what decides what is learnt: every framework, and what starts one process of it."""
    return Sources(name, tuple(frameworks.contenders()), (name,), modules=decides.LAUNCH)


def real_data(wanted: dict[str, Any], folder: Path) -> Path:
    """Return the folder with a data set; an archive is unpacked first."""
    if "archive" not in wanted:
        return Path(DATA) / wanted.get("folder", "")
    with zipfile.ZipFile(Path(DATA) / wanted["archive"]) as archive:
        archive.extractall(folder / "data")
    return folder / "data"


def planned(name: str, folder: Path) -> RunPlan:
    """Return a plan of the workload's tiny preset on real data, in every framework."""
    wanted = TABLE[name]
    data = "" if wanted.get("embedded") else str(real_data(wanted, folder))
    found = resolve.plan(
        Options(
            workloads=(f"{name}:{wanted.get('preset', 'tiny')}",),
            frameworks=("*",),
            protocol=f"fixed:{wanted['steps']}+1",
            threads=(1,),
            optimizers=(wanted["optimizer"],) if "optimizer" in wanted else (),
        )
    )

    def on_real_data(variant: Variant) -> Variant:
        case = variant.case
        sizes = case.sizes | wanted.get("sizes", {})
        rate = wanted.get("learning_rate", case.optimizer.learning_rate)
        case = replace(
            case,
            sizes=sizes,
            data=wanted["data"],
            optimizer=replace(case.optimizer, learning_rate=rate),
            specification=workloads.specification(workloads.find()[name].folder, sizes),
        )
        return replace(variant, case=case)

    (group,) = found.groups
    variants = tuple(map(on_real_data, group.variants))
    changed = replace(group, variants=variants, evaluation_limit=TEST_SAMPLES)
    return replace(found, groups=(changed,), options=replace(found.options, data=data))


class LearningRuns:
    """Trains networks of all workloads in one queue, two processes at a time, so that no workload waits for another's slowest."""

    def __init__(self, folder: Path, pool: ThreadPoolExecutor) -> None:
        self._folder, self._pool = folder, pool

    def submit(self, name: str) -> dict[str, Future[Trial]]:
        """Prepare the data of one workload, then submit its training in every framework."""
        folder = self._folder / name
        wanted = planned(name, folder / "workloads")
        (shared,) = case_inputs.prepare(wanted, lambda progress: None).values()
        names = map(environments.EnvironmentName.parse, wanted.environments)
        created = environments.ensure_all(environments.plan_environments(names, "cpu"))

        def train(variant: Variant) -> Trial:
            case = variant.case
            job = jobs.measuring(wanted, variant, shared, 1, 0, folder / case.framework)
            job = replace(job, schedule=replace(job.schedule, inputs=("pipeline",), evaluate=True, block_min_steps=1))
            return launch(job, created[case.environment].python, lambda event: None, Guard(300))

        return {variant.case.framework: self._pool.submit(train, variant) for variant in wanted.variants}


@pytest.fixture(scope="module")
def learning_runs(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[dict[str, Future[dict[str, Future[Trial]]]]]:
    """The results of every selected workload; the data of the next workload is prepared while one is trained."""
    chosen = [
        item.callspec.params["name"]
        for item in request.session.items
        if "learning_runs" in getattr(item, "fixturenames", ())
    ]
    with ThreadPoolExecutor(CONCURRENT_PROCESSES) as pool, ThreadPoolExecutor(1) as preparing:
        found = LearningRuns(tmp_path_factory.mktemp("learning"), pool)
        yield {name: preparing.submit(found.submit, name) for name in chosen}


@pytest.mark.decided(by=decided)
@pytest.mark.parametrize("name", [pytest.param(name, marks=pytest.mark.slow if name in SLOW else ()) for name in TABLE])
def test_every_framework_learns_and_all_learn_the_same(
    learning_runs: dict[str, Future[dict[str, Future[Trial]]]], name: str
) -> None:
    trials = {framework: trained.result() for framework, trained in learning_runs[name].result().items()}
    assert {framework: trial.error for framework, trial in trials.items() if trial.error} == {}
    # Before the first update, only another batch or another loss could make a difference beyond rounding.
    first = [loss for trial in trials.values() for loss in trial.first_losses(1)]
    assert max(first) - min(first) <= FIRST_LOSS_BAND * max(first)
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
