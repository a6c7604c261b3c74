"""Groups of tensors that a framework ignores, or applies to others, are found by the update rule by itself; right ones pass."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from decides import Sources
from rule_bench import NAMES, Bench, Mutant

from steelyard_worker.case import Optimizer, RateSchedule, TensorGroup

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

pytestmark = pytest.mark.conformance

FRAMEWORKS = ("pytorch", "tensorflow", "jax", "mxnet", "mindspore")
# As the network has groups: `rule_plan` divides them anew among the few tensors.
GROUPS = (TensorGroup((NAMES[0],), 0.1, 0.0), TensorGroup((NAMES[1],), 3.0))
COSINE = RateSchedule("cosine", "steps", length=3000)
SGD = Optimizer("sgd", 0.1, 0.9, weight_decay=1e-2, decay=NAMES, groups=GROUPS)
ADAM = Optimizer("adam", 1e-3, weight_decay=1e-2, decay=NAMES, groups=GROUPS)
ADAMW = Optimizer("adamw", 1e-3, weight_decay=1e-2, decay=NAMES, clip=1.0, schedule=COSINE, groups=GROUPS)
LAMB = replace(ADAMW, name="lamb", schedule=RateSchedule(), implementation="reference")
TORCH, JAX, TENSORFLOW, MXNET = (
    f"frameworks/{name}/optimizers.py" for name in ("pytorch", "jax", "tensorflow", "mxnet")
)
OWN_RATE = '"lr": part.rule.learning_rate,'
LABELS = "for name in part.names}"


def ignored(framework: str, rule: Optimizer, file: str, text: str, replacement: str) -> Mutant:
    return Mutant(f"{rule.name}: rate ignored", framework, rule, "from step 1 on", file, text, replacement)


MUTANTS = [
    ignored("pytorch", SGD, TORCH, OWN_RATE, '"lr": spec.learning_rate,'),
    ignored("pytorch", ADAMW, TORCH, OWN_RATE, '"lr": spec.learning_rate,'),
    ignored(
        "jax",
        ADAMW,
        JAX,
        "update_scalars.rates_times(rates, multiple)",
        "update_scalars.rates_times(rates, multiple**0)",
    ),
    ignored(
        "tensorflow", SGD, TENSORFLOW, "(name, variable, gradient, rate * multiple)", "(name, variable, gradient, rate)"
    ),
    ignored("mxnet", ADAM, MXNET, "parameter.lr_mult = spec.rate_of(name)", "parameter.lr_mult = 1.0"),
    Mutant(
        "sgd: groups of other tensors",
        "pytorch",
        SGD,
        "from step 1 on",
        TORCH,
        '"params": [named[name] for name in part.names],',
        '"params": [named[[*named][[*named].index(name) - 1]] for name in part.names],',
    ),
    Mutant(
        "adam: groups of other tensors",
        "jax",
        ADAM,
        "from step 1 on",
        JAX,
        LABELS,
        "for name in [names[names.index(each) - 1] for each in part.names]}",
    ),
    Mutant(
        "adamw: decay of groups ignored",
        "mxnet",
        ADAMW,
        "from step",
        MXNET,
        "spec.rate_of(name) * spec.decay_of(name) for name in named}",
        "spec.rate_of(name) * spec.weight_decay * (name in spec.decay) for name in named}",
    ),
]
UNCHANGED = [
    Mutant("unchanged", framework, rule, "")
    for framework in FRAMEWORKS
    for rule in (SGD, ADAM, ADAMW, LAMB, replace(ADAM, implementation="reference"))
]


def decided(mutant: Mutant) -> Sources:
    files = ("tests/certificates/fork_server.py",)
    modules = ("steelyard.certificates.rule_plan", "steelyard.certificates.rule_checks")
    return Sources(f"groups, {mutant.framework}", (mutant.framework,), computing=True, modules=modules, files=files)


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory, interpreter: Callable[[str], Path]) -> Iterator[Bench]:
    with ExitStack() as stack:
        yield Bench(tmp_path_factory.mktemp("groups"), interpreter, stack)


@pytest.mark.decided(by=decided)
@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda each: f"{each.framework}: {each.name}")
def test_a_group_that_is_ignored_or_has_other_tensors_is_found(bench: Bench, mutant: Mutant) -> None:
    found = bench.check(mutant)
    print(found.sentence)
    assert not found.passed
    assert mutant.names in found.sentence


@pytest.mark.decided(by=decided)
@pytest.mark.parametrize(
    "mutant", UNCHANGED, ids=lambda each: f"{each.framework}: {each.rule.name}, {each.rule.implementation}"
)
def test_groups_of_every_framework_are_within_rounding(bench: Bench, mutant: Mutant) -> None:
    found = bench.check(mutant)
    print(f"{found.worst:.3f}")
    assert found.passed, found.sentence
    assert found.worst < 0.75
