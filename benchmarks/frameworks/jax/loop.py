"""JAX as a user would write it by hand: a bare loop around our objects, and training of a reference implementation.

A reference file has `inputs(batch)` (arrays by name, from canonical arrays), `model(sizes, inputs)` (an `nnx.Module`; Linen's are
bridged) and `loss(model, inputs)`.
"""

import jax
import optax
from flax import nnx


def bare_loop(trainer, batch, steps):
    """The loop of JAX's own guides, with the trainer's jitted update and state."""
    update, scalars = trainer.update, trainer.scalars
    carry, loss = trainer.carry, None
    for _ in range(steps):
        carry, loss = update(carry, batch, scalars())
    trainer.carry, trainer.loss = carry, loss


def reference(module, sizes, optimizer, batch):
    """Return (step, synchronise, count) of a reference: one jitted step with donated state, as in Flax's guide."""
    inputs = jax.device_put(module.inputs(batch))
    model = module.model(sizes, inputs)
    model.train()
    parameters = nnx.pure(nnx.state(model, nnx.Param))
    count = sum(leaf.size for leaf in jax.tree.leaves(parameters))
    graph, state = nnx.split((model, nnx.Optimizer(model, _rule(parameters, optimizer), wrt=nnx.Param)))

    @jax.jit(donate_argnums=0)
    def train_step(state, inputs):
        model, rule = nnx.merge(graph, state)
        loss, gradients = nnx.value_and_grad(module.loss)(model, inputs)
        rule.update(model, gradients)
        return nnx.state((model, rule)), loss

    latest = [state, None]

    def step():
        latest[:] = train_step(latest[0], inputs)
        return latest[1]

    return step, lambda: jax.block_until_ready(latest), count


def _rule(parameters, optimizer):
    """Optax's rule; kernels, biases, and scales and shifts decay if our specification says so."""
    rate, momentum = optimizer["learning_rate"], optimizer["momentum"]
    moments = {"b1": optimizer["beta1"], "b2": optimizer["beta2"], "eps": optimizer["epsilon"]}
    decay, mask = optimizer["weight_decay"], _decayed(parameters, optimizer["decay"])
    chain = [optax.clip_by_global_norm(optimizer["clip"])] if optimizer["clip"] else []
    if decay and optimizer["name"] != "adamw":
        chain.append(optax.add_decayed_weights(decay, mask))
    if optimizer["name"] == "sgd":
        chain.append(optax.sgd(rate, momentum=momentum or None, nesterov=optimizer["nesterov"]))
    elif optimizer["name"] == "adam":
        chain.append(optax.adam(rate, **moments))
    else:
        chain.append(optax.adamw(rate, **moments, weight_decay=decay, mask=mask))
    return optax.chain(*chain) if len(chain) > 1 else chain[0]


def _decayed(parameters, names):
    """Return a tree of booleans for Optax, or None if everything decays; a layer with a scale is a norm."""
    endings = {name.rpartition(".")[2] for name in names}
    matrix, norm, bias = endings & {"weight", "w_ih", "w_hh"}, "gamma" in endings, endings & {"bias", "b"}
    leaves, shape = jax.tree_util.tree_flatten_with_path(parameters)
    paths = [tuple(str(getattr(key, "key", "")) for key in path if hasattr(key, "key")) for path, _ in leaves]
    norms = {path[:-1] for path in paths if path[-1] == "scale"}

    def decays(path, leaf):
        return norm if path[:-1] in norms else matrix if leaf.ndim > 1 else bias

    flags = [bool(decays(path, leaf)) for path, (_, leaf) in zip(paths, leaves, strict=True)]
    return None if all(flags) else jax.tree.unflatten(shape, flags)
