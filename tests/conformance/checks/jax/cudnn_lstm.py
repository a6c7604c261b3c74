"""What the JAX adapter relies on: LSTMs in cuDNN's kernel, for which JAX's own formula of that kernel stands in."""

from functools import partial
from unittest import mock

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import rnn
from jax.extend import core

from checks.jax.shared import adapter_of, draw
from steelyard_worker.frameworks.jax import layers, recurrent


def formula(x, h_0, c_0, weights, lengths, width, hidden, number, dropout, both):
    """Compute what the kernel is documented to compute, from the vector that it takes."""
    unpacked = rnn.unpack_lstm_weights(weights, width, hidden, number, both)
    return rnn.lstm_ref(x, h_0, c_0, *unpacked, lengths, width, hidden, number, dropout, both)


def check_the_kernel_gets_what_the_loop_computes():
    jax.config.update("jax_enable_x64", True)
    x, lengths, coefficients = jnp.array(draw(5, 3, 2)), jnp.array([5, 2, 4]), jnp.array(draw(5, 3, 8))
    names = "layer.forward", "layer.backward"
    shapes = {"w_ih": (2, 16), "w_hh": (4, 16), "b": (16,)}
    random = np.random.default_rng(7)
    weights = {f"{n}.{kind}": jnp.array(random.normal(size=shape)) for n in names for kind, shape in shapes.items()}

    def summed(weights, x, lengths, lstm):
        found = layers.Layers(weights, True, layers.Choices(lstm=lstm))
        if lengths is None:
            both = recurrent.lstm(found, x, names[0]), recurrent.lstm(found, x, names[1])
        else:
            both = recurrent.bidirectional(found, "layer", x, lengths)
        return jnp.sum(jnp.sin(jnp.concatenate(both, axis=-1)) * coefficients)

    with mock.patch.object(rnn, "lstm", formula):
        for valid in (lengths, jnp.array([5, 5, 5]), None):
            run = jax.jit(jax.value_and_grad(partial(summed, lengths=valid), (0, 1)), static_argnames="lstm")
            ours, kernel = (run(weights, x, lstm=each) for each in (recurrent.LOOP, recurrent.FUSED))
            for expected, found in zip(jax.tree.leaves(ours), jax.tree.leaves(kernel), strict=True):
                np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-12)


def check_the_kernel_is_read_back():
    """The kernel is known by its operation."""
    operation = core.Primitive(rnn.rnn_fwd_p.name)
    operation.def_abstract_eval(lambda x, *, hidden: jax.core.ShapedArray((*x.shape[:2], hidden), x.dtype))

    def kernel(x, h_0, c_0, weights, lengths, width, hidden, number, dropout, both):
        del c_0, weights, lengths, width, number, dropout
        return operation.bind(x, hidden=hidden * (1 + both)), h_0, h_0

    with mock.patch.object(rnn, "lstm", kernel):
        for requested in (recurrent.LOOP, recurrent.FUSED):
            assert adapter_of(knobs={"lstm": requested}).applied()["lstm"] == requested
