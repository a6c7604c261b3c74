"""The same small network as pytorch_side.py in Equinox, for one sample."""

import equinox as eqx
import jax, jax.numpy as jnp
from weights import W

EPS = 1e-5


class BN(eqx.Module):
    weight: jax.Array
    bias: jax.Array
    mean: jax.Array
    var: jax.Array

    def __call__(self, x):
        s = lambda v: v[:, None, None]
        return (x - s(self.mean)) / jnp.sqrt(s(self.var) + 1e-5) * s(self.weight) + s(self.bias)


class Net(eqx.Module):
    conv: eqx.nn.Conv2d
    bn: BN
    pool: eqx.nn.MaxPool2d
    drop: eqx.nn.Dropout
    head: eqx.nn.Sequential

    def __init__(self):
        k = jax.random.key(0)
        self.conv = eqx.nn.Conv2d(3, 6, 3, padding=1, key=k)
        self.bn = BN(*(jnp.asarray(W["bn." + n]) for n in ("weight", "bias", "mean", "var")))
        self.pool = eqx.nn.MaxPool2d(2, 2)
        self.drop = eqx.nn.Dropout(0.5)
        self.head = eqx.nn.Sequential(
            [
                eqx.nn.Linear(6, 16, key=k),
                eqx.nn.Lambda(lambda x: jax.nn.gelu(x, approximate=False)),
                eqx.nn.LayerNorm(16, eps=EPS),
                eqx.nn.Linear(16, 5, key=k),
            ]
        )

    @eqx.filter_jit
    def __call__(self, x):
        x = self.pool(jax.nn.relu(self.bn(self.conv(x))))
        return self.head(self.drop(x.mean((1, 2))))


def model():
    m = Net()
    w = lambda m: [
        m.conv.weight,
        m.conv.bias,
        m.head[0].weight,
        m.head[0].bias,
        m.head[2].weight,
        m.head[2].bias,
        m.head[3].weight,
        m.head[3].bias,
    ]
    new = [
        W["conv.weight"],
        W["conv.bias"][:, None, None],
        W["up.weight"],
        W["up.bias"],
        W["norm.weight"],
        W["norm.bias"],
        W["down.weight"],
        W["down.bias"],
    ]
    m = eqx.tree_at(w, m, [jnp.asarray(a) for a in new])
    return lambda net, x: jax.vmap(net)(x), m
