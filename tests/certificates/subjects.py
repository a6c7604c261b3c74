"""Candidates for certificates on small synthetic data: front-padded words with repetitions, random images."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from steelyard.catalog import frameworks, workloads
from steelyard.certificates.plan import Candidate, Installation
from steelyard.files import atomic
from steelyard.inputs import rates, weights
from steelyard.inputs.data.synthetic import synthesise_adversarial
from steelyard_worker.case import (
    INFERENCE,
    NO_OPTIMIZER,
    TRAINING,
    Case,
    Optimizer,
    RateSchedule,
    Settings,
    TensorGroup,
)
from steelyard_worker.protocol import Data, Job

if TYPE_CHECKING:
    from pathlib import Path

    from steelyard_worker.network import Input, Network

SEED = 7
STEPS = 5


def candidate(
    framework: str,
    workload: str,
    preset: str,
    folder: Path,
    rule: dict[str, Any] | None = None,
    mode: str = "",
    seed: int = SEED,
    batch: int = 0,
    task: str = TRAINING,
) -> Candidate:
    """Return a candidate whose job writes below `folder`; weights and data depend only on workload, preset, batch, task and seed."""
    known, driver = workloads.find()[workload], frameworks.framework(framework)
    chosen = known.preset(preset)
    chosen = replace(chosen, sizes=chosen.sizes | ({"batch": batch} if batch else {}))
    network = known.network(chosen)
    optimizer = known.optimizer(chosen) if rule is None else _optimizer(rule)
    parameters = network.parameters
    if task == INFERENCE:
        optimizer, parameters = NO_OPTIMIZER, weights.as_if_trained(parameters)
    initial = weights.initialise(parameters, seed)
    case = Case(
        workload=workload,
        preset=preset,
        sizes=chosen.sizes,
        specification=known.specification(chosen),
        data={},
        optimizer=optimizer,
        framework=framework,
        seed=seed,
        task=task,
        settings=driver.complete(Settings(mode or driver.default_mode, threads=1)),
    )
    job = Job(
        kind="certify",
        case=case,
        workload_folder=str(known.folder),
        weights=str(initial),
        data=replace(
            _data(network, case.batch, initial.with_name(f"{initial.name}-data{batch or ''}"), seed),
            adversarial=str(synthesise_adversarial(network, case.batch, seed, case.specification)),
        ),
        folder=str(folder / "candidate"),
        rates=rates.write_certificate(optimizer, STEPS, STEPS),
    )
    return Candidate(
        job,
        network,
        installation(framework),
        f"{workload}:{preset}:{batch}:{task}:{seed}",
        frameworks.declared_form(driver, optimizer),
    )


def _optimizer(rule: dict[str, Any]) -> Optimizer:
    schedule = RateSchedule(**rule.get("schedule", {}))
    groups = tuple(TensorGroup(**{**group, "tensors": tuple(group["tensors"])}) for group in rule.get("groups", ()))
    return Optimizer(**{**rule, "decay": tuple(rule.get("decay", ())), "schedule": schedule, "groups": groups})


def installation(framework: str) -> Installation:
    """Return a framework as a reference, in its default mode; versions do not matter here."""
    return Installation(framework, framework, frameworks.framework(framework).default_mode, "0", {})


def _data(network: Network, batch: int, folder: Path, seed: int) -> Data:
    """Return the folders of the data; they are written once, because processes of other candidates may be reading them."""
    generator, count = np.random.default_rng(seed), batch * STEPS
    if network.draw:
        # Batch by batch, so that each has short and long samples.
        batches = [network.draw(generator, batch) for _ in range(STEPS)]
        arrays = {name: np.concatenate([each[name] for each in batches]) for name in batches[0]}
    else:
        arrays = {each.name: _random_array(each, count, generator) for each in network.inputs}
    order = np.arange(count, dtype=np.int32).reshape(STEPS, batch)
    written = (
        atomic.place_tensors(folder / "synthetic", lambda: {name: array[:batch] for name, array in arrays.items()}, {}),
        atomic.place_tensors(folder / "prepared", lambda: {f"train/{name}": each for name, each in arrays.items()}, {}),
        atomic.place_tensors(folder / "order", lambda: {"order": order}, {}),
    )
    return Data(*map(str, written))


def _random_array(each: Input, count: int, generator: np.random.Generator) -> np.ndarray[Any, Any]:
    if each.dtype == "float32":
        return generator.standard_normal((count, *each.shape), dtype=np.float32)
    found = generator.integers(0, each.high, (count, *each.shape), dtype=np.int32)
    if each.shape:
        found[:, : each.shape[0] // 4] = 0  # padding
        found[:, -2:] = found[:, :2] + 3  # words that occur twice in every review
    return found
