"""What the JAX adapter relies on: layers and the loss."""

import jax
import jax.numpy as jnp
import numpy as np

from checks import ctc_golden
from checks.jax.shared import WORKLOADS, draw
from steelyard_worker import network
from steelyard_worker.frameworks.jax import convolution, layers, layouts


def check_layout_round_trips_are_bit_exact():
    for kind, shape in {"conv": (5, 4, 3, 2), "dense": (3, 2), "lstm_w_ih": (8, 3), "lstm_b": (8,)}.items():
        canonical = draw(*shape).astype("f4")
        native = layouts.to_native(kind, canonical, "float32")
        assert np.array_equal(layouts.to_canonical(kind, np.asarray(jnp.array(native))), canonical), kind
    assert layouts.to_native("conv", draw(5, 4, 3, 2), "float32").shape == (3, 2, 4, 5)


def check_the_formulations_of_convolution_agree():
    """Image sizes below and above XLA's slow case, and a projected shortcut: value and both gradients, in float64."""
    jax.config.update("jax_enable_x64", True)
    for image, size, stride in ((8, 1, 2), (8, 3, 2), (4, 3, 2), (3, 3, 1), (2, 3, 1), (1, 3, 1)):
        x, kernel = jnp.array(draw(2, image, image, 3)), jnp.array(draw(size, size, 3, 4))

        def summed(x, kernel, formulation, stride=stride, padding=size // 2):
            return jnp.sum(jnp.sin(convolution.convolve(formulation, x, kernel, stride, padding)))

        results = [
            jax.jit(jax.value_and_grad(summed, (0, 1)), static_argnums=2)(x, kernel, formulation)
            for formulation in ("xla", "matmul", "auto")
        ]
        for result in results[1:]:
            for found, expected in zip(jax.tree.leaves(result), jax.tree.leaves(results[0]), strict=True):
                np.testing.assert_allclose(found, expected, rtol=1e-11, atol=1e-12)


def check_running_variance_is_unbiased_and_changes_only_in_training():
    """P-03, P-04."""
    tensors = {"bn.gamma": jnp.ones(2), "bn.beta": jnp.zeros(2), "bn.running_mean": jnp.zeros(2)}
    tensors["bn.running_var"] = jnp.ones(2)
    x = jnp.arange(8.0).reshape(4, 1, 1, 2)
    training = layers.Layers(tensors, True, layers.Choices())
    y = training.batch_norm("bn", x, epsilon=1e-5, momentum=0.1)
    np.testing.assert_allclose(np.asarray(y)[:, 0, 0, 0], np.array((-3, -1, 1, 3)) / np.sqrt(5 + 1e-5), rtol=1e-6)
    np.testing.assert_allclose(training.statistics["bn.running_mean"], (0.3, 0.4), rtol=1e-6)
    np.testing.assert_allclose(training.statistics["bn.running_var"], (1.566667, 1.566667), rtol=1e-6)
    inference = layers.Layers(tensors, False, layers.Choices())
    np.testing.assert_allclose(inference.batch_norm("bn", x, epsilon=0.0, momentum=0.1), x)
    assert not inference.statistics


def check_ctc_agrees_with_the_enumeration_of_all_paths():
    loss = network.load(WORKLOADS / "deepspeech2", "jax").loss
    found = jax.jit(jax.value_and_grad(lambda logits, batch: loss({"logits": logits}, batch)))
    ctc_golden.compare(found)
