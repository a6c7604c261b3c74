"""Runs in PyTorch's interpreter: what a network's layers are given in the two parts of a certificate, in float64.

Standard input: the folder of the worker, then one job per line. For each job one JSON line: {part: {"ranges": {operator: [[smallest,
largest input] of each call]}, "norm": of all gradients together, "finite": whether loss and gradients are}}.
"""

import json
import math
import sys
from pathlib import Path

sys.path.insert(0, str(Path(sys.argv[1]).parent))

import numpy as np
from torch.utils._python_dispatch import TorchDispatchMode

from steelyard_worker import adversarial_weights, batches, network, protocol, tensors
from steelyard_worker.frameworks import base

# Operators with branches or with a range in which they saturate.
WATCHED = ("relu", "hardtanh", "sigmoid", "tanh", "gelu", "_softmax", "_log_softmax")


class Ranges(TorchDispatchMode):
    """Records the range of the first input of every watched operator."""

    def __init__(self):
        super().__init__()
        self.found = {}

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        name = func.overloadpacket.__name__.removesuffix("_")
        if name in WATCHED:
            self.found.setdefault(name, []).append([args[0].min().item(), args[0].max().item()])
        elif name.startswith("_scaled_dot_product"):
            scores = args[0] @ args[1].transpose(-2, -1) / args[0].shape[-1] ** 0.5
            self.found.setdefault("_softmax", []).append([scores.min().item(), scores.max().item()])
        return func(*args, **(kwargs or {}))


def record(adapter, job, described, implementation, weights, rule, batch):
    trainer = adapter.trainer(implementation, job.case.sizes, described, weights, rule)
    with Ranges() as ranges:
        _, loss, gradients = trainer.gradients(trainer.put(batch))
    norm = math.sqrt(sum(float(np.square(each).sum()) for each in gradients.values()))
    return {"ranges": ranges.found, "norm": norm, "finite": math.isfinite(loss) and math.isfinite(norm)}


def main():
    adapter = None
    for line in sys.stdin:
        job = protocol.from_line(line)
        adapter = adapter or base.load(job.case.framework, job.case.settings)
        described = network.describe(job.workload_folder, job.case.sizes)
        implementation = network.load_implementation(job.workload_folder, job.case.workload, job.case.framework)
        weights = {name: np.array(array) for name, array in tensors.read(Path(job.weights)).items()}
        extreme = described.adversarial
        scaled = adversarial_weights.of_training(described, weights, job.case.seed)
        adversarial = {name: np.array(array) for name, array in tensors.read(Path(job.data.adversarial)).items()}
        parts = {
            "usual": (weights, job.case.optimizer, batches.open_source(job.data).batch(0)),
            "adversarial": (scaled, extreme.rule(job.case.optimizer), adversarial),
        }
        found = {name: record(adapter, job, described, implementation, *part) for name, part in parts.items()}
        print("\n" + json.dumps(found), flush=True)


if __name__ == "__main__":
    main()
