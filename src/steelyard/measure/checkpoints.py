"""Files of weights that a framework has written: a process of that framework reads them."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from steelyard.catalog import frameworks
from steelyard.catalog.given_weights import GivenWeights
from steelyard.console import Screen
from steelyard.environments import Environment, EnvironmentName, setup
from steelyard.environments.pending import Arriving
from steelyard.errors import UserError
from steelyard.inputs.trained_weights import Read
from steelyard.measure import launch
from steelyard.plan.run_plan import RunPlan
from steelyard_worker import tensors
from steelyard_worker.case import Case, Settings
from steelyard_worker.job_kinds import CHECKPOINT
from steelyard_worker.protocol import Data, Job
from steelyard_worker.strategy import SINGLE


def reader(plan: RunPlan, environments: Arriving, screen: Screen) -> Read:
    """Return what lets a framework read its own file, in an environment of the plan, or in one that is made for that."""

    def read(given: GivenWeights, case: Case) -> Mapping[str, np.ndarray[Any, Any]]:
        name = _environment_name(plan, given.framework)
        screen.say(f"{frameworks.framework(given.framework).title} reads {given.name}.")
        with TemporaryDirectory() as folder:
            job = _job(plan, given, case, EnvironmentName.parse(name).version, Path(folder))
            environment = _environment(plan, name, environments, screen)
            return _tensors(job, environment, launch.Guard(plan.options.silence_s))

    return read


def _tensors(job: Job, environment: Environment, guard: launch.Guard) -> dict[str, np.ndarray[Any, Any]]:
    """Run the process and return what it saved. UserError: it has not."""
    trial = launch.launch(job, environment.python, lambda _: None, guard)
    if trial.error:
        text = trial.error[1]
        raise UserError(text if text.endswith(".") else f"{text}.")
    return {name: np.array(array) for name, array in tensors.read(Path(job.folder)).items()}


def _environment_name(plan: RunPlan, framework: str) -> str:
    """Return the first environment of the plan that holds a framework, or the usual one."""
    names = [name for name in plan.environments if EnvironmentName.parse(name).framework == framework]
    return next(iter(names), framework)


def _environment(plan: RunPlan, name: str, environments: Arriving, screen: Screen) -> Environment:
    if name not in environments:
        device, options = plan.variants[0].case.settings.device, plan.options
        own = setup.make([EnvironmentName.parse(name)], device, options.external, screen)
        own.failures()  # UserError: it could not be made
        return own[name]
    try:
        return environments[name]
    except KeyError:
        environments.failures()
        raise UserError(f"The environment {name}, which reads the file of weights, could not be made.") from None


def _job(plan: RunPlan, given: GivenWeights, case: Case, version: str, folder: Path) -> Job:
    """Return the job that reads a file: on the CPU, with the framework's defaults."""
    known = frameworks.framework(given.framework)
    settings = known.complete(Settings(known.default_mode, threads=case.settings.threads))
    own = replace(case, framework=known.name, version=version, settings=settings, strategy=SINGLE, loader_workers=0)
    workload = plan.workload_folders[case.workload]
    return Job(CHECKPOINT, own, workload, str(given.path), Data(""), str(folder))
