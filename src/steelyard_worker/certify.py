"""Save the tensors that prove the computation.

Of a training: outputs, loss, gradients, and every tensor after k steps in the run's order. Of an inference: the outputs of k
batches.
"""

from __future__ import annotations

import gc
import itertools
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from steelyard_worker import adversarial_weights, batches, distances, normalisation, progress, tensors
from steelyard_worker.case import INFERENCE
from steelyard_worker.distances import sampled
from steelyard_worker.protocol import Refusal
from steelyard_worker.ranks import Ranks

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from steelyard_worker.frameworks.base import Predictor, Trainer
    from steelyard_worker.network import Network
    from steelyard_worker.protocol import EventWriter, Job

    Array = np.ndarray[Any, Any]
    Build = Callable[..., Any]  # (weights), (weights, optimizer) -> Trainer; for an inference (weights) -> Predictor

SINGLE = Ranks()
# Elements of an output that decide its fingerprint.
FINGERPRINT_ELEMENTS = 2**17


def dump(
    job: Job, network: Network, weights: Mapping[str, Array], build: Build, events: EventWriter, ranks: Ranks = SINGLE
) -> None:
    """Write one tensors folder per perturbation; with `inner`, it only has inner/* and adversarial/inner/*.

    Of all perturbations but the first, it has how far each tensor is from that of the first one (`distances.of_run`), a number:
    the tensors of a large network fill a disk. Several ranks compute their shares, and the first joins and writes them.

    Of a training it has output/*, evaluation/* (outputs in inference, with `adversarial_weights.of_evaluation`), loss, grad/*,
    loss1..k, after0|1|2|<k>/*, inference/*; adversarial/loss1 and
    adversarial/after0|1/* of one step with the network's adversarial weights, batch and update rule; if it has weights that
    isolate layers, isolated/loss1 and isolated/after0|1/* of the tensors of those. Of an inference it has
    after0/*, inference1..k/*, and adversarial/inference1/* with the network's adversarial weights and batch.
    """
    if job.case.task == INFERENCE:
        compute, compute_adversarial = _outputs, _adversarial_outputs
    else:
        compute, compute_adversarial = _tensors, _adversarial
    build, first = progress.reported(build, events), None
    for number in job.certify.perturbations:
        change = _perturbation(number, job.certify.noise)
        changed = _changed(weights, change)
        if job.certify.distinct and job.case.task != INFERENCE:
            changed |= normalisation.without_old_variances(network, changed)
        folder = Path(job.folder) / f"perturbation{number}"
        found = (
            _inner(job, network, changed, build, change, ranks)
            if job.certify.inner
            else compute(job, network, changed, build, change, ranks)
        )
        meta = {
            "perturbation": number,
            "steps": job.certify.steps,
            "fingerprints": {key: fingerprint(array) for key, array in found.items() if key.startswith("inference")},
        }
        gc.collect()
        if job.case.task != INFERENCE and not job.certify.inner and not job.certify.distinct:
            found |= _evaluation(job, network, changed, build, change, ranks)
        if job.data.adversarial and not job.certify.inner:
            found |= compute_adversarial(job, network, changed, build, change, ranks)
        found = ranks.joined_tensors(found)
        if ranks.leads:
            if job.certify.sample:
                found = {key: sampled(array, job.certify.sample) for key, array in found.items()}
            tensors.write(folder, found if first is None else _apart(found, tensors.read(first)), meta)
            first = first or folder
        events.write("tensors", perturbation=number, folder=folder.name)
        del found  # before the next run fills the memory again
        gc.collect()


def _apart(found: Mapping[str, Array], first: Mapping[str, Array]) -> dict[str, Array]:
    return {key: np.array(distance) for key, distance in distances.of_run(found, first).items()}


def weights_of_inference(job: Job, network: Network, weights: Mapping[str, Array]) -> Iterator[dict[str, Array]]:
    """Yield every set of weights that `dump` builds predictors with, in its order."""
    for number in job.certify.perturbations:
        changed = _changed(weights, _perturbation(number, job.certify.noise))
        yield changed
        if job.data.adversarial:
            yield adversarial_weights.of_inference(network, changed, job.case.seed)


def _changed(weights: Mapping[str, Array], change: Any) -> dict[str, Array]:
    return {name: change("weights/" + name, array) for name, array in weights.items()}


def fingerprint(output: Array) -> float:
    """Return the product of an output with a fixed vector of length 1.

    If the fingerprints of two outputs differ by d, the L2 distance of the outputs is at least d.
    """
    flat = sampled(output, FINGERPRINT_ELEMENTS).reshape(-1).astype(np.float64)
    fixed = np.cos(np.arange(1, flat.size + 1, dtype=np.float64))
    return float(fixed @ flat / np.linalg.norm(fixed))


def _outputs(
    job: Job, network: Network, loaded: Mapping[str, Array], build: Build, change: Any, ranks: Ranks
) -> dict[str, Array]:
    """Return the outputs of an inference, batch by batch; without data there is only one batch."""
    del network, ranks  # an inference is never spread
    predictor = build(loaded)
    found, feed = _state(predictor, 0, job.certify.sample), _batches(job, change)
    for number, batch in enumerate(feed if job.data.prepared else feed[:1], 1):
        outputs = predictor.outputs(predictor.put(batch))
        found |= {f"inference{number}/{name}": sampled(array, job.certify.sample) for name, array in outputs.items()}
    return found


def _evaluation(
    job: Job, network: Network, weights: Mapping[str, Array], build: Build, change: Any, ranks: Ranks
) -> dict[str, Array]:
    """Return the outputs of the first batch in inference, where nothing is summed over the batch."""
    trainer = build(adversarial_weights.of_evaluation(network, weights, job.case.seed))
    outputs = trainer.outputs(trainer.put(ranks.share(_batches(job, change)[0])))
    found = {f"evaluation/{name}": np.array(array) for name, array in outputs.items()}
    del trainer, outputs
    gc.collect()  # before the next trainer is built
    return found


def _adversarial_outputs(
    job: Job, network: Network, weights: Mapping[str, Array], build: Build, change: Any, ranks: Ranks
) -> dict[str, Array]:
    """Return the outputs with the adversarial weights and batch, except for scales that only batch statistics undo."""
    del ranks
    predictor = build(adversarial_weights.of_inference(network, weights, job.case.seed))
    outputs = predictor.outputs(predictor.put(_adversarial_batch(job, change)))
    return {f"adversarial/inference1/{name}": sampled(array, job.certify.sample) for name, array in outputs.items()}


def _tensors(
    job: Job, network: Network, loaded: Mapping[str, Array], build: Build, change: Any, ranks: Ranks
) -> dict[str, Array]:
    feed, most = [ranks.share(batch) for batch in _batches(job, change)], job.certify.sample
    weights = _normalising(job, network, "", loaded, build, feed[0])
    trainer = build(weights)
    outputs, loss, gradients = trainer.gradients(trainer.put(feed[0]))
    # Outputs are sampled when the shares of all ranks are joined.
    found: dict[str, Array] = {f"output/{name}": np.array(array) for name, array in outputs.items()}
    found["loss"] = np.array(loss, np.float64)
    found |= {f"grad/{name}": sampled(array, most) for name, array in gradients.items()}
    # Free the memory before the second trainer is built. Reference cycles inside a trainer are only freed by the collector, which
    # starts by the number of objects, not by their size.
    del trainer, outputs, gradients
    gc.collect()
    trainer = build(weights)
    found |= _state(trainer, 0, most)
    for number, batch in enumerate(feed, 1):
        handle = trainer.step(trainer.put(batch))
        trainer.synchronise()
        found[f"loss{number}"] = _loss(trainer, handle)
        if number in (1, 2, len(feed)):
            found |= _state(trainer, number, most)
    outputs = trainer.outputs(trainer.put(feed[0]))
    found |= {f"inference/{name}": np.array(array) for name, array in outputs.items()}
    return _as_loaded(found, loaded, weights)


def _normalising(
    job: Job, network: Network, part: str, weights: Mapping[str, Array], build: Build, batch: batches.Batch
) -> Mapping[str, Array]:
    """Return the weights with which this run normalises as the other one does (`Certify.normalised`), if there is one."""
    if not job.certify.normalised:
        return weights
    start = f"{part}after1/"
    saved = tensors.read(Path(job.certify.normalised))
    moved = {key.removeprefix(start): array for key, array in saved.items() if key.startswith(start)}

    def after_one_step(changed: Mapping[str, Array]) -> dict[str, Array]:
        trainer = build(changed)
        trainer.step(trainer.put(batch))
        trainer.synchronise()
        found: dict[str, Array] = trainer.state()
        del trainer
        gc.collect()
        return found

    return normalisation.like(network, weights, moved, after_one_step)


def _as_loaded(found: dict[str, Array], loaded: Mapping[str, Array], used: Mapping[str, Array]) -> dict[str, Array]:
    """Return the tensors of a run with the weights `used` as if it had started from those `loaded`."""
    if used is loaded:
        return found
    changed = {name: loaded[name] - used[name] for name in loaded if not np.array_equal(loaded[name], used[name])}
    return {
        key: array + changed[name] if "after" in key and (name := key.rpartition("/")[2]) in changed else array
        for key, array in found.items()
    }


def _loss(trainer: Trainer, handle: Any) -> Array:
    """Return the loss of one step, float64; not a number on a rank that has no loss."""
    losses = trainer.losses([handle])
    return np.array(losses[0] if len(losses) else np.nan, np.float64)


def _adversarial(
    job: Job, network: Network, weights: Mapping[str, Array], build: Build, change: Any, ranks: Ranks
) -> dict[str, Array]:
    adversarial = network.adversarial
    batch, rule = ranks.share(_adversarial_batch(job, change)), adversarial.rule(job.case.optimizer)
    scaled = adversarial_weights.of_training(network, weights, job.case.seed)
    used = _normalising(job, network, "adversarial/", scaled, lambda each: build(each, rule), batch)
    found = _as_loaded(_one_step("adversarial", build(used, rule), batch, job.certify.sample), scaled, used)
    if isolation := adversarial.isolation:
        gc.collect()  # the first trainer, before the second is built
        isolated = adversarial_weights.isolated(isolation, weights, job.case.seed)
        own = _one_step("isolated", build(isolated, rule), batch, job.certify.sample)
        found |= {
            key: array for key, array in own.items() if "/after" not in key or isolation.shows(key.rpartition("/")[2])
        }
    return found


def _one_step(part: str, trainer: Trainer, batch: batches.Batch, most: int) -> dict[str, Array]:
    """Return the loss of one step, and every tensor before and after it."""
    found = _state(trainer, 0, most)
    handle = trainer.step(trainer.put(batch))
    trainer.synchronise()
    found["loss1"] = _loss(trainer, handle)
    found |= _state(trainer, 1, most)
    return {f"{part}/{key}": array for key, array in found.items()}


def _adversarial_batch(job: Job, change: Any) -> batches.Batch:
    # A case with a smaller batch than the adversarial one uses its first samples.
    batch = tensors.read(Path(job.data.adversarial))
    few = {name: np.array(array[: job.case.batch]) for name, array in batch.items()}
    return _varied(few, "adversarial", change, job.certify.distinct)


def _inner(
    job: Job, network: Network, weights: Mapping[str, Array], build: Build, change: Any, ranks: Ranks
) -> dict[str, Array]:
    """Return the inner tensors of the forward pass of the first batch and of the adversarial one.

    Their values are sorted, because frameworks keep images and sequences in different layouts.
    """
    parts = {"": (weights, _batches(job, change)[0])}
    if job.data.adversarial:
        inference = job.case.task == INFERENCE
        scaled = adversarial_weights.of_inference if inference else adversarial_weights.of_training
        parts["adversarial/"] = scaled(network, weights, job.case.seed), _adversarial_batch(job, change)
    found = {}
    for part, (start, batch) in parts.items():
        trainer = build(start)
        if not hasattr(trainer, "inner"):
            raise Refusal("unsupported", f"The adapter of {job.case.framework} does not collect inner tensors.")
        for name, array in trainer.inner(trainer.put(ranks.share(batch)), frozenset(network.probes)).items():
            found[f"{part}inner/{name}"] = np.sort(array, axis=None)
        del trainer
        gc.collect()
    return found


def _state(trainer: Trainer | Predictor, step: int, most: int) -> dict[str, Array]:
    return {f"after{step}/{name}": sampled(array, most) for name, array in trainer.state().items()}


def _batches(job: Job, change: Any) -> list[batches.Batch]:
    taken = certified_batches(job, job.certify.steps)
    return [_varied(batch, f"input{i}", change, job.certify.distinct) for i, batch in enumerate(taken)]


def certified_batches(job: Job, count: int) -> Iterator[batches.Batch]:
    """Yield the first `count` batches of a certificate, without noise: those of the run's order.

    Without data, they are the synthetic batches, in the turns in which a trial takes them.
    """
    if job.data.prepared:
        source = batches.open_source(job.data)
        yield from (source.batch(step) for step in range(count))
        return
    # A case with a smaller batch than the synthetic one uses its first samples.
    few = {name: array[: job.case.batch] for name, array in batches.synthetic_batch(job.data).items()}
    yield from itertools.islice(batches.Turns(batches.rolled(few)), count)


def _varied(batch: batches.Batch, part: str, change: Any, distinct: int) -> batches.Batch:
    """Return a batch with noise; with `distinct`, only that many first samples fill it, and copies have the same noise."""
    found = {}
    for name, array in batch.items():
        few = array[:distinct] if distinct else array
        found[name] = change(f"{part}/{name}", few)[np.arange(len(array)) % len(few)]
    return found


def _perturbation(number: int, size: float) -> Any:
    """Return a function that adds relative noise of the given size, seeded by `number`, to floating values; number 0: none."""

    def change(name: str, array: Array) -> Array:
        if not number or not np.issubdtype(array.dtype, np.floating):
            return array
        seed = [number, *name.encode()]
        noise = np.random.Generator(np.random.PCG64(seed)).standard_normal(array.shape)
        # In the array's own precision, so that the reference gets exactly the same numbers as the candidate.
        return np.asarray(array * (1 + size * noise), array.dtype)

    return change
