"""The same small network as pytorch_side.py in Flax NNX."""

import jax
import jax.numpy as jnp
import optax
from flax import nnx
from weights import W

EPS = 1e-5


class Net(nnx.Module):
    def __init__(self, rngs):
        self.conv = nnx.Conv(3, 6, (3, 3), padding=1, rngs=rngs)
        self.bn = nnx.BatchNorm(6, rngs=rngs)
        self.drop = nnx.Dropout(0.5, rngs=rngs)
        self.head = nnx.List(
            [nnx.Linear(6, 16, rngs=rngs), nnx.LayerNorm(16, epsilon=EPS, rngs=rngs), nnx.Linear(16, 5, rngs=rngs)]
        )

    @nnx.jit
    def __call__(self, x):
        x = jnp.transpose(x, (0, 2, 3, 1))
        x = nnx.max_pool(jax.nn.relu(self.bn(self.conv(x))), (2, 2), strides=(2, 2))
        x = self.drop(x.mean((1, 2)))
        return self.head[2](self.head[1](jax.nn.gelu(self.head[0](x), approximate=False)))


def model():
    m = Net(nnx.Rngs(0))
    m.conv.kernel.set_value(jnp.asarray(W["conv.weight"].transpose(2, 3, 1, 0)))
    m.conv.bias.set_value(jnp.asarray(W["conv.bias"]))
    m.bn.scale.set_value(jnp.asarray(W["bn.weight"]))
    m.bn.bias.set_value(jnp.asarray(W["bn.bias"]))
    m.bn.mean.set_value(jnp.asarray(W["bn.mean"]))
    m.bn.var.set_value(jnp.asarray(W["bn.var"]))
    for n, k in ((0, "up"), (2, "down")):
        m.head[n].kernel.set_value(jnp.asarray(W[k + ".weight"].T))
        m.head[n].bias.set_value(jnp.asarray(W[k + ".bias"]))
    m.head[1].scale.set_value(jnp.asarray(W["norm.weight"]))
    m.head[1].bias.set_value(jnp.asarray(W["norm.bias"]))
    return m


def loss(outputs, batch):
    return optax.softmax_cross_entropy_with_integer_labels(outputs, batch["y"]).mean()
