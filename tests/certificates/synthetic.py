"""A small network and the tensors that a certify task would save of it, made of random numbers."""

from __future__ import annotations

from typing import Any

import numpy as np

from steelyard.certificates import judge
from steelyard.certificates.judgement import Judgement
from steelyard.certificates.method import method_for
from steelyard.certificates.scales import Scale, measure_scales
from steelyard.certificates.tensors import state_step
from steelyard_worker.case import Optimizer
from steelyard_worker.distances import of_run, start_of
from steelyard_worker.network import Input, Network, Parameter, batch_norm

Dump = dict[str, np.ndarray[Any, Any]]

NETWORK = Network(
    (
        Parameter("stem.conv.weight", (4, 3, 3, 3), "conv", "uniform:1"),
        *batch_norm("stem.bn", 4),
        Parameter("frozen.weight", (5, 2), "embedding", "uniform:1", trainable=False),
        Parameter("head.weight", (2, 4), "dense", "uniform:1"),
        Parameter("head.bias", (2,), "bias", "constant:0"),
    ),
    (Input("image", (3, 8, 8), "float32"), Input("label", (), "int32", high=2)),
    100,
)
FLOAT32 = method_for("float32")
NOISY = ("stem.bn.running_mean", "stem.bn.running_var")


def dumps(seed: int = 0, amplified: float = 3.0, network: Network = NETWORK) -> list[Dump]:
    """Return a reference and two noisy runs whose tensors all change by `amplified` times the noise."""
    generator = np.random.default_rng(seed)
    reference: Dump = {"output/logits": generator.standard_normal((4, 2)), "loss": np.float64(0.7)}
    reference |= {f"grad/{p.name}": generator.standard_normal(p.shape) for p in network.parameters if p.trainable}
    reference |= {f"after0/{p.name}": generator.standard_normal(p.shape) for p in network.parameters}
    for step in (1, 2, 5):
        reference |= {f"after{step}/{p.name}": _trained(p, reference, generator) for p in network.parameters}
    reference |= {f"loss{step}": np.float64(0.7 - 0.01 * step) for step in range(1, 6)}
    reference["inference/logits"] = generator.standard_normal((4, 2))
    for part in ("adversarial", "isolated"):
        reference[f"{part}/loss1"] = np.float64(0.6)
        for parameter in network.parameters if part == "adversarial" else network.parameters[-2:]:
            start = reference[f"{part}/after0/{parameter.name}"] = generator.standard_normal(parameter.shape)
            moved = parameter.trainable or parameter.name in NOISY
            reference[f"{part}/after1/{parameter.name}"] = start + moved * generator.standard_normal(parameter.shape)
    reference["evaluation/logits"] = np.random.default_rng([seed, 1]).standard_normal((4, 2))
    return [reference, *(_noisy(reference, amplified, generator) for _ in range(2))]


def _trained(parameter: Parameter, reference: Dump, generator: np.random.Generator) -> np.ndarray[Any, Any]:
    start = reference[f"after0/{parameter.name}"]
    if parameter.trainable or parameter.name in NOISY:
        return start + 0.01 * generator.standard_normal(parameter.shape)
    return start.copy()


def _noisy(reference: Dump, amplified: float, generator: np.random.Generator) -> Dump:
    def change(key: str, array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        trained = array - reference[start_of(key)] if state_step(key) else array
        return array + shift(trained if np.any(trained) else array, amplified * FLOAT32.noise, generator)

    runs = {key: change(key, array) for key, array in reference.items() if "after0" not in key}
    return {key: array for key, array in reference.items() if "after0" in key} | runs


def shift(array: np.ndarray[Any, Any], relative: float, generator: np.random.Generator) -> np.ndarray[Any, Any]:
    """Return a change in a random direction whose L2 norm is `relative` times the array's."""
    direction = generator.standard_normal(np.shape(array))
    return np.asarray(relative * np.linalg.norm(array) * direction / np.linalg.norm(direction))


def error_of(key: str, runs: list[Dump], units: float, generator: np.random.Generator) -> np.ndarray[Any, Any]:
    """Return a change of one tensor that is this many rounding levels beyond the unavoidable error."""
    scale = scales_of(runs)[key]
    size = FLOAT32.unit_roundoff * (units * scale.amplification * scale.norm + scale.unavoidable)
    direction = generator.standard_normal(np.shape(runs[0][key]))
    return np.asarray(size * direction / np.linalg.norm(direction))


def as_saved(runs: list[Dump]) -> list[Dump]:
    """Return runs as a worker saves them: the first whole, of the others how far they are from it."""
    apart = ({key: np.array(size) for key, size in of_run(run, runs[0]).items()} for run in runs[1:])
    return [runs[0], *apart]


def scales_of(runs: list[Dump], rule: Optimizer | None = None, network: Network = NETWORK) -> dict[str, Scale]:
    """Return the scales of a reference, the first of the runs, whose others have noise."""
    reference, *noisy = as_saved(runs)
    return measure_scales(network, reference, noisy, FLOAT32.noise, rule)


def judged(runs: list[Dump], candidate: Dump, rule: Optimizer | None = None, network: Network = NETWORK) -> Judgement:
    """Return the judgement of a candidate; the first of the runs is the reference."""
    scales = scales_of(runs, rule, network)
    return judge.compare(network, runs[0], scales, candidate, FLOAT32)


def compared(runs: list[Dump], second: Dump) -> Judgement:
    """Return the judgement of a second reference."""
    scales = scales_of(runs)
    return judge.compare_references(NETWORK, runs[0], scales, second)
