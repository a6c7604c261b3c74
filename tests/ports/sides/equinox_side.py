"""The same small network as pytorch_side.py in Equinox, for one sample."""

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from weights import W

EPS = 1e-5


class BN(eqx.Module):
    weight: jax.Array
    bias: jax.Array
    mean: jax.Array
    var: jax.Array

    def __call__(self, x):
        mean, var, weight, bias = (v[:, None, None] for v in (self.mean, self.var, self.weight, self.bias))
        return (x - mean) / jnp.sqrt(var + 1e-5) * weight + bias


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
    net = Net()
    layers = {"conv": net.conv, "up": net.head[0], "norm": net.head[2], "down": net.head[3]}
    old = [getattr(layer, role) for layer in layers.values() for role in ("weight", "bias")]
    new = [jnp.asarray(W[f"{name}.{role}"]) for name in layers for role in ("weight", "bias")]
    new = [array.reshape(before.shape) for array, before in zip(new, old, strict=True)]

    def where(net):
        of_net = (net.conv, net.head[0], net.head[2], net.head[3])
        return [getattr(layer, role) for layer in of_net for role in ("weight", "bias")]

    return lambda net, x: jax.vmap(net)(x), eqx.tree_at(where, net, new)


def loss(outputs, batch):
    return optax.softmax_cross_entropy_with_integer_labels(outputs, batch["y"]).mean()


def optimizer(parameters):
    return optax.adam(0.01)
