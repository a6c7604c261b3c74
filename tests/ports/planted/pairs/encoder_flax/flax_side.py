"""The same encoder of Flax' MultiHeadDotProductAttention, Dense and LayerNorm."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import jax
import numpy as np
import optax
from flax import linen as nn

WIDTH, HEADS, HIDDEN, LAYERS = 24, 3, 40, 2


class Network(nn.Module):
    epsilon: float = 1e-5
    activation: object = partial(nn.gelu, approximate=False)
    causal: bool = False

    @nn.compact
    def __call__(self, x):
        mask = nn.make_causal_mask(x[..., 0]) if self.causal else None
        for n in range(LAYERS):
            mixed = nn.MultiHeadDotProductAttention(HEADS, name=f"attention_{n}")(x, mask=mask)
            x = nn.LayerNorm(epsilon=self.epsilon, name=f"norm1_{n}")(x + mixed)
            hidden = self.activation(nn.Dense(HIDDEN, name=f"up_{n}")(x))
            x = nn.LayerNorm(epsilon=self.epsilon, name=f"norm2_{n}")(x + nn.Dense(WIDTH, name=f"down_{n}")(hidden))
        return nn.Dense(5, name="head")(x)


def build(**changed):
    weights = np.load(Path(__file__).parent / "weights.npz")
    params = {"head": dense(weights, "1.")}
    for n in range(LAYERS):
        own = f"0.layers.{n}."
        params[f"attention_{n}"] = attention(weights, f"{own}self_attn.")
        params |= {f"up_{n}": dense(weights, f"{own}linear1."), f"down_{n}": dense(weights, f"{own}linear2.")}
        for name in ("norm1", "norm2"):
            params[f"{name}_{n}"] = {"scale": weights[f"{own}{name}.weight"], "bias": weights[f"{own}{name}.bias"]}
    return Network(**changed), {"params": jax.tree.map(jax.numpy.asarray, params)}


def dense(weights, own):
    return {"kernel": weights[f"{own}weight"].T, "bias": weights[f"{own}bias"]}


def attention(weights, own):
    heads = (WIDTH, HEADS, WIDTH // HEADS)
    kernels = [each.T.reshape(heads) for each in np.split(weights[f"{own}in_proj_weight"], 3)]
    biases = [each.reshape(heads[1:]) for each in np.split(weights[f"{own}in_proj_bias"], 3)]
    found = {name: {"kernel": kernels[n], "bias": biases[n]} for n, name in enumerate(("query", "key", "value"))}
    out = weights[f"{own}out_proj.weight"].T.reshape(HEADS, WIDTH // HEADS, WIDTH)
    return found | {"out": {"kernel": out, "bias": weights[f"{own}out_proj.bias"]}}


def loss(outputs, batch):
    return optax.softmax_cross_entropy_with_integer_labels(outputs, batch["y"]).mean()


def warm_up(step):
    return 1e-3 * jax.numpy.minimum(1, (step + 1) / 4)


def optimizer(parameters):
    return optax.adamw(warm_up, weight_decay=0.01)
