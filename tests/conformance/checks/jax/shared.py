"""What several checks of JAX use."""

from pathlib import Path

import numpy as np
import tomllib

import steelyard_worker
from steelyard_worker import network
from steelyard_worker.case import Optimizer, Settings
from steelyard_worker.frameworks.jax.adapter import Adapter

WORKER = Path(steelyard_worker.__file__).parent
WORKLOADS = WORKER / "workloads"
FRAMEWORK = tomllib.loads((WORKER / "frameworks" / "jax" / "framework.toml").read_text(encoding="utf-8"))
WORDS = {
    "vocabulary": 50,
    "length": 6,
    "embedding": 4,
    "hidden": 3,
    "layers": 1,
    "bidirectional": True,
    "readout": "first+last",
    "train_embedding": True,
    "classes": 2,
    "batch": 4,
}


def draw(*shape):
    """Return seeded float64 noise."""
    return np.random.default_rng(3).standard_normal(shape)


def adapter_of(mode="jit", knobs=None, **settings):
    """Return an adapter; `knobs` replaces the defaults."""
    defaults = {name: knob["default"] for name, knob in FRAMEWORK["knobs"].items()}
    return Adapter(Settings(mode=mode, knobs=defaults | (knobs or {}), **settings))


def trainer(workload="lstm-imdb", sizes=WORDS, optimizer=None, **settings):
    """Return (adapter, trainer, one canonical batch) with random weights."""
    adapter = adapter_of(**{"mode": "jit", **settings})
    described = network.describe(WORKLOADS / workload, sizes)
    weights = {p.name: (0.1 * draw(*p.shape)).astype("f4") for p in described.parameters}
    weights |= {p.name: np.ones(p.shape, "f4") for p in described.parameters if p.kind == "running_var"}
    batch = {
        i.name: (np.arange(sizes["batch"] * np.prod(i.shape, dtype=int)) % i.high).reshape(-1, *i.shape).astype("i4")
        if i.high
        else draw(sizes["batch"], *i.shape).astype("f4")
        for i in described.inputs
    }
    rule = optimizer or Optimizer("sgd", 0.1, momentum=0.9)
    built = adapter.trainer(network.load(WORKLOADS / workload, "jax"), sizes, described, weights, rule)
    return adapter, built, batch
