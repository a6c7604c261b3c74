"""The same small network as pytorch_side.py in Haiku."""

import haiku as hk
import jax
import jax.numpy as jnp
import optax
from weights import W

EPS = 1e-5


def net(x, is_training=False):
    x = jnp.transpose(x, (0, 2, 3, 1))
    x = hk.Conv2D(6, 3)(x)
    x = hk.BatchNorm(True, True, 0.9)(x, is_training=is_training)
    x = hk.MaxPool((2, 2, 1), (2, 2, 1), "VALID")(jax.nn.relu(x)).mean((1, 2))
    x = jax.nn.gelu(hk.Linear(16, name="up")(x), approximate=False)
    x = hk.LayerNorm(-1, True, True, eps=EPS)(x)
    return hk.Linear(5, name="down")(x)


def model():
    t = hk.transform_with_state(net)
    p, s = t.init(jax.random.key(0), jnp.zeros((2, 3, 8, 8)), True)
    p["conv2_d"] = {"w": jnp.asarray(W["conv.weight"].transpose(2, 3, 1, 0)), "b": jnp.asarray(W["conv.bias"])}
    p["batch_norm"] = {
        "scale": jnp.asarray(W["bn.weight"]).reshape(1, 1, 1, 6),
        "offset": jnp.asarray(W["bn.bias"]).reshape(1, 1, 1, 6),
    }
    for k in ("up", "down"):
        p[k] = {"w": jnp.asarray(W[k + ".weight"].T), "b": jnp.asarray(W[k + ".bias"])}
    p["layer_norm"] = {"scale": jnp.asarray(W["norm.weight"]), "offset": jnp.asarray(W["norm.bias"])}
    for n, k in (("mean", "mean"), ("var", "var")):
        s[f"batch_norm/~/{n}_ema"]["average"] = jnp.asarray(W["bn." + k]).reshape(1, 1, 1, 6)
    return t, p, s


def loss(outputs, batch):
    return optax.softmax_cross_entropy_with_integer_labels(outputs, batch["y"]).mean()


def optimizer(parameters):
    return optax.adam(0.01)
