"""A trainer that was set back by `restart` goes on as a new one: the same losses and tensors, and nothing compiled again."""

import gc
from dataclasses import replace

import numpy as np

from steelyard_worker.case import Optimizer
from steelyard_worker.network import Input, Network, Parameter, batch_norm
from steelyard_worker.protocol import Refusal

CHANNELS, CLASSES, EPSILON = 4, 3, 1e-5
# One block of a convolutional network and a dense layer; the checks of each framework have the implementation.
NETWORK = Network(
    (
        Parameter("block.conv.weight", (CHANNELS, 3, 3, 3), "conv", "normal"),
        *batch_norm("block.bn", CHANNELS),
        Parameter("head.weight", (CLASSES, CHANNELS), "dense", "normal"),
        Parameter("head.bias", (CLASSES,), "bias", "normal"),
    ),
    (Input("image", (3, 4, 4), "float32"), Input("label", (), "int32", high=CLASSES)),
    0,
)
SIZES = {"batch": 4}
BEFORE, AFTER = 7, 5
RATES = np.array((0.05, 0.1, 0.02, 0.2), np.float32)
DECAY = {"weight_decay": 0.1, "decay": ("head.weight",)}
PLAIN, MOMENTUM, ADAM = Optimizer("sgd", 0.1), Optimizer("sgd", 0.1, momentum=0.9), Optimizer("adam", 0.01)
NATIVE = {
    "plain": PLAIN,
    "momentum": MOMENTUM,
    "nesterov": replace(MOMENTUM, nesterov=True),
    "adam": ADAM,
    "adamw": Optimizer("adamw", 0.01, **DECAY),
    "decayed momentum": replace(MOMENTUM, **DECAY),
    "decayed adam": replace(ADAM, **DECAY),
    "clipped momentum": replace(MOMENTUM, clip=0.05),
    "clipped adam": replace(ADAM, clip=0.05),
    "lamb": Optimizer("lamb", 0.01, **DECAY),
}
RULES = {**NATIVE, **{f"reference {name}": replace(rule, implementation="reference") for name, rule in NATIVE.items()}}
SCHEDULED = ("momentum", "adam", "adamw", "clipped momentum", "reference momentum", "reference adam")


class Subject:
    """A small network with random weights, and as many batches as are needed."""

    def __init__(self, implementation, described=NETWORK, sizes=SIZES):
        draw = np.random.default_rng(3)
        self.sizes, self.described, self.implementation = sizes, described, implementation
        self.weights = {p.name: (0.3 * draw.standard_normal(p.shape)).astype("f4") for p in described.parameters}
        self.weights |= {p.name: np.ones(p.shape, "f4") for p in described.parameters if p.kind == "running_var"}
        self.batches = [
            {i.name: _drawn(draw, i, sizes["batch"]) for i in described.inputs} for _ in range(AFTER + BEFORE)
        ]

    def built(self, adapter, rule, rates=None):
        """Return a new trainer."""
        return adapter.trainer(self.implementation, self.sizes, self.described, self.weights, rule, rates)


def _drawn(draw, column, batch):
    shape = (batch, *column.shape)
    return draw.integers(0, column.high, shape, np.int32) if column.high else draw.standard_normal(shape, np.float32)


def losses_and_state(trainer, batches):
    """Train, and return what the steps have made."""
    losses = trainer.losses([trainer.step(trainer.put(batch)) for batch in batches])
    return {"losses": losses, **{name: np.array(array) for name, array in trainer.state().items()}}


def check_restart(subject, adapter, remembering, rule, rates=None, *, memory=True):
    """Compare a trainer after `restart` with a new one.

    `remembering(trainer)`: a context in which `restart` leaves the memory of the rule as it is, which must be seen unless
    there is no `memory`; None: that is not tried.
    """
    fresh = subject.built(adapter, rule, rates)
    expected = losses_and_state(fresh, subject.batches[:AFTER])
    used = subject.built(adapter, rule, rates)
    losses_and_state(used, subject.batches[AFTER:])
    gc.collect()  # what earlier trainers compiled is counted until they are removed, and `fresh` stays
    compiled = adapter.compilations()
    if remembering:
        with remembering(used):
            used.restart(subject.weights)
        found = losses_and_state(used, subject.batches[:AFTER])
        assert memory == any(_differ(found[name], expected[name]) for name in expected), "what is left cannot be seen"
    used.restart(subject.weights)
    found = losses_and_state(used, subject.batches[:AFTER])
    assert adapter.compilations() == compiled, (compiled, adapter.compilations())
    for name, array in expected.items():
        np.testing.assert_array_equal(found[name], array, err_msg=name)


def _differ(a, b):
    return bool((np.abs(a - b) > 1e-4).any())


def check_rules(subject, adapter, remembering, lacking=(), rules=RULES, scheduled=SCHEDULED):
    """Check every rule, at a constant rate and with a schedule; `lacking`: the only ones that are refused."""
    refused = set()
    for name, rates in [*((name, None) for name in rules), *((name, RATES) for name in scheduled)]:
        title = f"{name} at rates" if rates is not None else name
        try:
            subject.built(adapter, rules[name], rates)
        except Refusal:
            refused.add(title)
            continue
        try:
            check_restart(
                subject, adapter, remembering, rules[name], rates, memory=title not in ("plain", "reference plain")
            )
        except AssertionError as error:
            raise AssertionError(f"{title}: {error}") from error
    assert refused == set(lacking), refused
