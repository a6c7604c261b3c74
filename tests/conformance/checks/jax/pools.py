"""What the JAX adapter relies on: pools."""

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from checks.jax.shared import draw
from steelyard_worker.frameworks.jax import pooling


def check_the_pool_sends_the_gradient_of_a_tie_to_its_first_maximum():
    """The same gradient as `lax.reduce_window`, on images with many ties, with and without overlap and padding."""
    x = jnp.array(np.random.default_rng(1).integers(-2, 2, (2, 9, 9, 3)).astype("f4"))
    for window, stride, padding in ((2, 2, 0), (3, 2, 1)):

        def reference(x, window=window, stride=stride, padding=padding):
            shape, strides = (1, window, window, 1), (1, stride, stride, 1)
            edges = ((0, 0), (padding, padding), (padding, padding), (0, 0))
            return lax.reduce_window(x, -jnp.inf, lax.max, shape, strides, edges)

        expected, back = jax.vjp(reference, x)
        found, pull = jax.vjp(lambda x, w=window, s=stride, p=padding: pooling.max_pool(x, w, s, p), x)
        seed = jnp.array(draw(*expected.shape), jnp.float32)
        assert np.array_equal(found, expected)
        np.testing.assert_allclose(pull(seed)[0], back(seed)[0], rtol=1e-6)


def check_pools_round_up_and_include_their_padding():
    """Compared with XLA's own window reductions: extents that round up and that do not, the average with its own gradient."""
    x = jnp.array(draw(2, 7, 7, 3), jnp.float32)
    for extent, window, stride, after in ((6, 3, 2, 1), (7, 3, 2, 0), (5, 2, 2, 1), (6, 2, 2, 0)):
        edges = ((0, 0), (0, after), (0, after), (0, 0))
        seen = x[:, :extent, :extent]
        expected = lax.reduce_window(seen, -jnp.inf, lax.max, (1, window, window, 1), (1, stride, stride, 1), edges)
        assert np.array_equal(pooling.max_pool(seen, window, stride, ceil=True), expected), (extent, window)
    for window, stride, padding in ((3, 1, 1), (5, 3, 0)):

        def reference(x, window=window, stride=stride, padding=padding):
            edges = ((0, 0), (padding, padding), (padding, padding), (0, 0))
            return lax.reduce_window(x, 0.0, lax.add, (1, window, window, 1), (1, stride, stride, 1), edges) / window**2

        expected, back = jax.vjp(reference, x)
        found, pull = jax.vjp(lambda x, w=window, s=stride, p=padding: pooling.average_pool(x, w, s, p), x)
        seed = jnp.array(draw(*expected.shape), jnp.float32)
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(pull(seed)[0], back(seed)[0], rtol=1e-5, atol=1e-6)


def check_bins_that_do_not_divide_the_extent_overlap():
    np.testing.assert_allclose(pooling.bins(5, 4) * 2, np.eye(4, 5) + np.eye(4, 5, 1))
    x = jnp.arange(196.0).reshape(1, 14, 14, 1)
    found = pooling.adaptive_average_pool(x, 4)[0, :, :, 0]
    assert float(found[0, 1]) == float(jnp.mean(x[0, 0:4, 3:7, 0]))  # floor(14/4) to ceil(28/4)
