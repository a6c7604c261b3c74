"""The same network of Flax' LSTM cells, with the weights that the PyTorch side has saved."""

from __future__ import annotations

from pathlib import Path

import jax
import numpy as np
from flax import linen as nn

HIDDEN, CLASSES = 8, 3


class Network(nn.Module):
    cell: type = nn.OptimizedLSTMCell

    @nn.compact
    def __call__(self, x):
        x = nn.RNN(self.cell(HIDDEN, name="first"))(x)
        x = nn.RNN(self.cell(HIDDEN, name="second"))(x)
        return nn.Dense(CLASSES, name="head")(x)


def build(order="ifgo", biases=2, **changed):
    weights = np.load(Path(__file__).parent / "weights.npz")
    params = {name: cell(weights, name, order, biases) for name in ("first", "second")}
    params["head"] = {"kernel": weights["head.weight"].T, "bias": weights["head.bias"]}
    return Network(**changed), {"params": jax.tree.map(jax.numpy.asarray, params)}


def cell(weights, name, order, biases):
    """Flax has one kernel for each gate, and biases in those of the hidden state alone."""
    first, second, b, c = (
        np.split(weights[f"{name}.{role}_l0"], 4) for role in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
    )
    found = {f"i{gate}": {"kernel": first[n].T} for n, gate in enumerate(order)}
    return found | {
        f"h{gate}": {"kernel": second[n].T, "bias": b[n] + c[n] if biases == 2 else b[n]}
        for n, gate in enumerate(order)
    }
