"""MXNet as a user would write it by hand: a bare loop around our objects, and hybridized Gluon blocks with a Gluon trainer.

A reference file has `model(sizes)`, a network that is not initialised yet; `inputs(batch)` and `targets(batch)`, tuples of NumPy
arrays; and `loss()`, a block over the network's outputs and the targets.
"""

import mxnet as mx
from mxnet import autograd, gluon, nd

# Kinds of parameters that may be excluded from weight decay: end of the name here -> canonical last names.
EXCLUDABLE = {"bias": {"bias", "b"}, "gamma": {"gamma"}, "beta": {"beta"}}


def bare_loop(trainer, batch, steps):
    """The training loop of Gluon's crash course, with the trainer's objects."""
    objective, rule, statistics = trainer.forward, trainer.rule, trainer._statistics
    for _ in range(steps):
        with autograd.record():
            loss, _ = objective(*batch)
        loss.backward()
        rule.step(1)
        statistics.advance()


def reference(module, sizes, optimizer, batch):
    """Return (step, synchronise, count): the loop of Gluon's crash course, with network and loss hybridized and static memory."""
    network, criterion = module.model(sizes), module.loss()
    network.initialize(mx.init.Xavier())
    network.hybridize(static_alloc=True, static_shape=True)
    criterion.hybridize(static_alloc=True, static_shape=True)
    x, y = (tuple(map(nd.array, map(_as_float, each))) for each in (module.inputs(batch), module.targets(batch)))
    samples = criterion(*_listed(network(*x)), *y).size  # a loss is one number, or one for each sample
    rule = update_rule(optimizer, network)
    trained = [each for each in network.collect_params().values() if each.grad_req != "null"]
    gradients = [each.grad() for each in trained]

    def step():
        with autograd.record():
            loss = criterion(*_listed(network(*x)), *y)
        loss.backward()
        if optimizer["clip"]:
            gluon.utils.clip_global_norm(gradients, optimizer["clip"], check_isfinite=False)
        rule.step(samples)
        return loss

    return step, nd.waitall, sum(each.data().size for each in trained)


def update_rule(optimizer, network):
    """A Gluon trainer; the decay is coupled except in AdamW (GluonNLP's `BERTAdam`, which has no bias correction)."""
    endings = {name.rpartition(".")[2] for name in optimizer["decay"]}
    for name, ours in EXCLUDABLE.items():
        if not endings & ours:
            network.collect_params(f".*{name}").setattr("wd_mult", 0.0)
    constants = {"learning_rate": optimizer["learning_rate"], "wd": optimizer["weight_decay"]}
    if optimizer["name"] == "sgd":
        constants["momentum"] = optimizer["momentum"]
    else:
        constants |= {name: optimizer[name] for name in ("beta1", "beta2", "epsilon")}
    name = {"sgd": "nag" if optimizer["nesterov"] else "sgd", "adam": "adam", "adamw": "bertadam"}[optimizer["name"]]
    if name == "bertadam":
        import gluonnlp  # noqa: F401 (registers the optimizer)
    return gluon.Trainer(network.collect_params(), name, constants, kvstore=None)


def _listed(outputs):
    return outputs if isinstance(outputs, (list, tuple)) else (outputs,)


def _as_float(array):
    return array.astype("float32")
