"""A trainer that was set back by `restart` goes on as a new one: the same losses and tensors, and nothing compiled again."""

from dataclasses import replace
from pathlib import Path

import numpy as np

import steelyard_worker
from steelyard_worker import network
from steelyard_worker.case import Optimizer
from steelyard_worker.protocol import Refusal

WORKLOADS = Path(steelyard_worker.__file__).parent / "workloads"
WORDS = {
    "vocabulary": 50, "length": 6, "embedding": 4, "hidden": 3, "layers": 1, "bidirectional": True,
    "readout": "first+last", "train_embedding": True, "classes": 2, "batch": 4,
}  # fmt: skip
IMAGES = {"channels": 3, "image": 32, "width": 8, "stem": "seed", "classes": 10, "batch": 4}
BEFORE, AFTER = 7, 5
RATES = np.array((0.05, 0.1, 0.02, 0.2), np.float32)
DECAY = {"weight_decay": 0.1, "decay": ("head.weight",)}
PLAIN, MOMENTUM, ADAM = Optimizer("sgd", 0.1), Optimizer("sgd", 0.1, momentum=0.9), Optimizer("adam", 0.01)
NATIVE = {
    "plain": PLAIN, "momentum": MOMENTUM, "nesterov": replace(MOMENTUM, nesterov=True), "adam": ADAM,
    "adamw": Optimizer("adamw", 0.01, **DECAY), "decayed momentum": replace(MOMENTUM, **DECAY),
    "decayed adam": replace(ADAM, **DECAY), "clipped momentum": replace(MOMENTUM, clip=0.05), "clipped adam": replace(ADAM, clip=0.05),
    "lamb": Optimizer("lamb", 0.01, **DECAY),
}  # fmt: skip
RULES = {**NATIVE, **{f"reference {name}": replace(rule, implementation="reference") for name, rule in NATIVE.items()}}
SCHEDULED = ("momentum", "adam", "adamw", "clipped momentum", "reference momentum", "reference adam")


class Subject:
    """A small network with random weights, and as many batches as are needed."""

    def __init__(self, framework, workload="lstm-imdb", sizes=WORDS):
        folder, draw = WORKLOADS / workload, np.random.default_rng(3)
        self.sizes, self.described = sizes, network.describe(folder, sizes)
        self.implementation = network.load(folder, framework)
        self.weights = {p.name: (0.3 * draw.standard_normal(p.shape)).astype("f4") for p in self.described.parameters}
        self.weights |= {p.name: np.ones(p.shape, "f4") for p in self.described.parameters if p.kind == "running_var"}
        self.batches = [
            {i.name: _drawn(draw, i, sizes["batch"]) for i in self.described.inputs} for _ in range(AFTER + BEFORE)
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
    there is no `memory`.
    """
    expected = losses_and_state(subject.built(adapter, rule, rates), subject.batches[:AFTER])
    used = subject.built(adapter, rule, rates)
    losses_and_state(used, subject.batches[AFTER:])
    compiled = adapter.compilations()
    with remembering(used):
        used.restart(subject.weights)
    found = losses_and_state(used, subject.batches[:AFTER])
    assert memory == any(_differ(found[name], expected[name]) for name in expected), "it cannot be seen what is left"
    used.restart(subject.weights)
    found = losses_and_state(used, subject.batches[:AFTER])
    assert adapter.compilations() == compiled, (compiled, adapter.compilations())
    for name, array in expected.items():
        np.testing.assert_array_equal(found[name], array, err_msg=name)


def _differ(a, b):
    return bool(np.abs(a - b).max() > 1e-4)


def check_rules(framework, adapter, remembering, lacking=(), rules=RULES, scheduled=SCHEDULED):
    """Check every rule, at a constant rate and with a schedule; `lacking`: the only ones that are refused."""
    subject, refused = Subject(framework), set()
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
