"""What the JAX adapter relies on: recurrent layers."""

import jax
import jax.numpy as jnp
import numpy as np

from checks.jax.shared import draw
from steelyard_worker.frameworks.jax.recurrence import Recurrence


def check_the_formulations_of_recurrence_agree():
    jax.config.update("jax_enable_x64", True)
    x, w_ih, w_hh, b = (jnp.array(draw(*shape)) for shape in ((5, 2, 3), (3, 4), (4, 4), (4,)))

    def cell(z, c):
        c = 0.5 * c + jnp.tanh(z)
        return jnp.sin(c), c

    def summed(x, w_ih, w_hh, b, recurrence, backward):
        return jnp.sum(jnp.sin(recurrence.run(cell, x, w_ih, w_hh, b, backward)))

    run = jax.jit(jax.value_and_grad(summed, (0, 1, 2, 3)), static_argnums=(4, 5))
    kinds = "scan", "hoisted", "checkpointed", "deferred"
    ways = [Recurrence(kind, unroll) for kind in kinds for unroll in (1, 2)]
    for backward in (False, True):
        results = [jax.tree.leaves(run(x, w_ih, w_hh, b, way, backward)) for way in ways]
        for result in results[1:]:
            for found, expected in zip(result, results[0], strict=True):
                np.testing.assert_allclose(found, expected, rtol=1e-11)
    forward = run(x, w_ih, w_hh, b, ways[0], False)
    assert not np.allclose(forward[0], results[0][0]), "The direction makes no difference."
