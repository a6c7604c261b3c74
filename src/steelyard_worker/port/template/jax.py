"""The JAX side: model() returns a function with its parameters, or a Flax linen module with its variables."""

import jax
import jax.numpy as jnp


def forward(parameters, x):
    x = x @ parameters["up"]["kernel"] + parameters["up"]["bias"]
    mean, variance = x.mean(-1, keepdims=True), x.var(-1, keepdims=True)
    x = (x - mean) / jnp.sqrt(variance + 1e-6) * parameters["norm"]["scale"] + parameters["norm"]["bias"]
    return jax.nn.gelu(x) @ parameters["down"]["kernel"] + parameters["down"]["bias"]


def model():
    # return module, orbax.checkpoint.StandardCheckpointer().restore("/path/to/checkpoint")
    keys = jax.random.split(jax.random.key(0), 2)
    parameters = {
        "up": {"kernel": jax.random.normal(keys[0], (8, 16)), "bias": jnp.zeros(16)},
        "norm": {"scale": jnp.ones(16), "bias": jnp.zeros(16)},
        "down": {"kernel": jax.random.normal(keys[1], (16, 3)), "bias": jnp.zeros(3)},
    }
    return forward, parameters


# def outputs(result): return result["logits"]  # which tensors of what the model returns are compared
# batch has the inputs and the arrays of [targets.NAME]:
# def loss(outputs, batch): return optax.softmax_cross_entropy_with_integer_labels(outputs, batch["y"]).mean()
# def optimizer(model): return optax.adamw(1e-3)
