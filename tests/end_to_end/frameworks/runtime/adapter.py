"""A runtime of networks that the scripted framework writes: one dense layer in NumPy."""

from dataclasses import replace

import numpy as np

from steelyard_worker.frameworks.fake import adapter

SCRIPT = {"step_us": 20000, "noise": 0.0, "process_noise": 0.0, "fault": "none", "fault_step": 0}


class Adapter(adapter.Adapter):
    def __init__(self, settings):
        super().__init__(replace(settings, knobs=SCRIPT))

    def applied(self):
        return {
            "mode": self._settings.mode,
            "device": "cpu",
            "threads": self._settings.threads,
            "precision": "float32",
            "deterministic": self._settings.deterministic,
        }

    def predictor(self, implementation, sizes, network, weights):
        path, signature = implementation.of(weights)
        with path.open("rb") as file:
            loaded = np.load(file)
            found = {name: loaded[name] for name in loaded.files}
        return Predictor(self, Layer(signature), network, found, np.dtype("float32"), path)


class Layer:
    def __init__(self, signature):
        self._signature = signature

    def forward(self, weights, batch):
        inputs = [batch[name] for name in self._signature.inputs]
        return dict(
            zip(self._signature.outputs, [inputs[0] @ weights["head.weight"].T + weights["head.bias"]], strict=True)
        )


class Predictor(adapter.Predictor):
    def __init__(self, owner, layer, network, weights, dtype, path):
        super().__init__(owner, layer, network, weights, dtype)
        self._path = path

    def description(self):
        size = self._path.stat().st_size
        return {"bytes": size, "producer": "fake 1", "opset": 18, "nodes": 1, "operators": {"Gemm": 1}}
