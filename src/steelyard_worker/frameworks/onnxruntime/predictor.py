"""One session of ONNX Runtime: a file that another framework exported, and its forward pass."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import numpy as np
import onnx
import onnxruntime

from steelyard_worker.frameworks.onnxruntime import settings as process
from steelyard_worker.protocol import Refusal

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from onnxruntime import OrtValue

    from steelyard_worker.batches import Batch
    from steelyard_worker.case import Settings
    from steelyard_worker.exchange import Networks
    from steelyard_worker.frameworks.base import Array

TYPES = {"tensor(float)": np.float32, "tensor(int64)": np.int64, "tensor(int32)": np.int32}


class Predictor:
    """The session of one file. Every pass has finished when its call returns."""

    def __init__(self, settings: Settings, networks: Networks, weights: Mapping[str, Array]) -> None:
        self._path, self._signature = networks.of(weights)
        self._weights = {name: np.array(array, np.float32) for name, array in weights.items()}
        self._session = _session(self._path, settings)
        places = self._session.get_inputs()
        self._inputs = {
            name: (place.name, np.dtype(TYPES[place.type]))
            for name, place in zip(self._signature.inputs, places, strict=True)
        }
        self._outputs = [place.name for place in self._session.get_outputs()]

    def put(self, batch: Batch) -> dict[str, OrtValue]:
        """Copy a canonical batch into tensors of ONNX Runtime, in the layout and the index type of the file."""
        found = {}
        for name, (own, dtype) in self._inputs.items():
            array = np.transpose(batch[name], self._signature.axes.get(name, range(batch[name].ndim)))
            # A tensor on the CPU shares the memory of its array, so this one must be a copy.
            found[own] = onnxruntime.OrtValue.ortvalue_from_numpy(np.array(array, dtype, order="C"))
        return found

    def infer(self, batch: dict[str, OrtValue]) -> list[OrtValue]:
        """Run the session; its outputs stay tensors of ONNX Runtime."""
        found: list[OrtValue] = self._session.run_with_ort_values(self._outputs, batch)
        return found

    def synchronise(self) -> None:
        """Do nothing: on CPU the work has finished when a call returns."""

    def outputs(self, batch: dict[str, OrtValue]) -> dict[str, Array]:
        """Run the session and copy its outputs."""
        found = [np.array(value.numpy()) for value in self.infer(batch)]
        return dict(zip(self._signature.outputs, found, strict=True))

    def state(self) -> dict[str, Array]:
        """Return the tensors that the exporting framework read back before it wrote the file.

        In the file itself they may have other names and layouts, or be folded into one another.
        """
        return self._weights

    def description(self) -> dict[str, Any]:
        """Return facts about the file: its size in bytes, who wrote it, its opset, and how often it has each operator.

        Operators inside loops are included.
        """
        model = onnx.load(self._path)
        counts = Counter(_operators(model.graph))
        version = model.producer_version.split()[:1]  # tf2onnx adds the name of a commit, or "None"
        opset = next(each.version for each in model.opset_import if each.domain in ("", "ai.onnx"))
        return {
            "bytes": self._path.stat().st_size,
            "producer": " ".join([model.producer_name, *version]).strip(),
            "opset": opset,
            "nodes": sum(counts.values()),
            "operators": dict(counts.most_common()),
        }


def _session(path: Path, settings: Settings) -> onnxruntime.InferenceSession:
    """Load a file; Refusal with the runtime's reason: it is not a valid network, or has an operator that the runtime lacks."""
    try:
        return onnxruntime.InferenceSession(str(path), process.options(settings), providers=process.PROVIDERS)
    except Exception as error:  # the runtime's exceptions have no class in common
        reason = " ".join(str(error).split("failed:")[-1].split())[:300]
        raise Refusal("unsupported", f"ONNX Runtime cannot load the exported network: {reason}") from error


def _operators(graph: onnx.GraphProto) -> list[str]:
    found = []
    for node in graph.node:
        found.append(node.op_type)
        for attribute in node.attribute:
            if attribute.type == onnx.AttributeProto.GRAPH:
                found += _operators(attribute.g)
    return found
