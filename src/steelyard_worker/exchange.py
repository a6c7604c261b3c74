"""Networks that one framework exports and another runtime runs: the files, and fixed inputs on which both are compared.

A file holds its weights, so other weights, which certificates compute with, need a file of their own. It is found by the weights
as the exporting framework has read them back.
"""

from __future__ import annotations

import hashlib
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from steelyard_worker import batches, certify, records, tensors
from steelyard_worker.protocol import Refusal

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from steelyard_worker.batches import Batch
    from steelyard_worker.frameworks.base import Adapter, Array, Predictor
    from steelyard_worker.network import Network
    from steelyard_worker.protocol import EventWriter, Job


@dataclass(frozen=True)
class Signature:
    """The canonical names of a file's inputs and outputs, in its order.

    `axes`: by input, the axes of the canonical array in the file's order; an input that is missing has the canonical order.
    """

    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    axes: dict[str, tuple[int, ...]] = field(default_factory=dict)


@dataclass(frozen=True)
class Exported:
    """One file, its SHA-256 and its signature. `name` is relative to the folder of the networks."""

    name: str
    sha256: str
    signature: Signature


class Networks:
    """The files that an exporting process has written into a folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        meta = tensors.read_meta(folder)
        self._files = {weights: records.build(Exported, each) for weights, each in meta["networks"].items()}

    def of(self, weights: Mapping[str, Array]) -> tuple[Path, Signature]:
        """Return the file that holds these weights; Refusal: there is none, or its content is another one."""
        found = self._files.get(digest(weights))
        if found is None:
            raise Refusal("implementation", "No exported network has the weights of this case. Start a new run.")
        path = self._folder / found.name
        if sha256(path) != found.sha256:
            raise Refusal("implementation", f"{path} is not the file that was exported. Delete {path.parent}.")
        return path, found.signature


def export(
    job: Job,
    network: Network,
    weights: Mapping[str, Array],
    adapter: Adapter,
    build: Callable[[Mapping[str, Array]], Predictor],
    events: EventWriter,
) -> None:
    """Write a file for every set of weights that a job of this kind computes with.

    The folder also gets the outputs of the exporting framework for the fixed inputs, `<batch>/<output>` (N, ...), with the
    weights of the first file.
    """
    write = getattr(adapter, "export", None)
    if write is None:
        raise Refusal("unsupported", f"The adapter of {job.case.framework} has no export(), which writes an ONNX file.")
    sample = {name: array[: job.case.batch] for name, array in batches.synthetic_batch(job.data).items()}
    files, expected = dict[str, Exported](), dict[str, Any]()
    for number, each in enumerate(certify.weights_of_inference(job, network, weights)):
        predictor, path = build(each), Path(job.folder) / f"network{number}.onnx"
        if not number and job.compared:
            expected = _outputs(job, predictor)
        held = digest(predictor.state())
        if held in files:  # factors do not change a network without weights, or one whose weights are zero
            continue
        signature = write(predictor, predictor.put(sample), path)
        found = files[held] = Exported(path.name, sha256(path), signature)
        events.write("network", file=found.name, sha256=found.sha256)
    tensors.write(Path(job.folder), expected, {"networks": {key: asdict(each) for key, each in files.items()}})


def compare(job: Job, predictor: Any, events: EventWriter) -> None:
    """Record what the runtime's file is, and how far its outputs for the fixed inputs are from the exporting framework's."""
    expected, found = tensors.read(Path(job.networks)), _outputs(job, predictor)
    apart = {key: np.abs(found[key].astype(np.float64) - array) for key, array in expected.items()}
    file = predictor.description()
    events.write(
        "exchanged",
        bytes=file["bytes"],
        producer=file["producer"],
        opset=file["opset"],
        nodes=file["nodes"],
        operators=file["operators"],
        samples=job.case.batch * sum(1 for _ in _fixed_batches(job)),
        difference=max(float(each.max()) for each in apart.values()),
        largest=max(float(np.abs(each).max()) for each in expected.values()),
    )


def _outputs(job: Job, predictor: Predictor) -> dict[str, Array]:
    """Return the outputs for the fixed inputs by batch and name."""
    return {
        f"{number}/{name}": array
        for number, batch in enumerate(_fixed_batches(job))
        for name, array in predictor.outputs(predictor.put(batch)).items()
    }


def _fixed_batches(job: Job) -> Iterator[Batch]:
    """Yield the fixed inputs in whole batches."""
    inputs, size = tensors.read(Path(job.compared)), job.case.batch
    for begin in range(0, len(next(iter(inputs.values()))), size):
        yield {name: np.array(array[begin : begin + size]) for name, array in inputs.items()}


def digest(weights: Mapping[str, Array]) -> str:
    """Return the SHA-256 of all tensors with their names and shapes."""
    found = hashlib.sha256()
    for name in sorted(weights):
        array = np.ascontiguousarray(weights[name], dtype="<f4")
        found.update(f"{name} {array.shape}\0".encode())
        found.update(array.reshape(-1).data)
    return found.hexdigest()


def sha256(path: Path) -> str:
    """Return the SHA-256 of a file."""
    with path.open("rb") as file:
        found = hashlib.sha256()
        while block := file.read(tensors.BLOCK_BYTES):
            found.update(block)
    return found.hexdigest()
