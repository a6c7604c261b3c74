"""A case: everything that decides one measured computation and the settings it runs with."""

from __future__ import annotations

import hashlib
import json
import struct
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from steelyard_worker import records

ID_LENGTH = 16


@dataclass(frozen=True)
class Settings:
    """The settings that the adapter applies and then reads back from the framework."""

    mode: str
    device: str = "cpu"
    threads: int = 0  # 0: the framework's own default
    precision: str = "float32"
    deterministic: bool = False
    knobs: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class RateSchedule:
    """How the learning rate changes from step to step; lengths and places are in `unit`: "epochs" or "steps".

    kind: "constant"; "step" (multiplied by `factor` after every `every` units, or at each place in `at`); "cosine" (falls to 0
    over `length` units as half a wave of a cosine).
    warmup: over this length the rate also rises linearly to its full value. All lengths begin with the first step.
    """

    kind: str = "constant"
    unit: str = "epochs"
    factor: float = 1.0
    every: int = 0
    at: tuple[int, ...] = ()
    length: int = 0
    warmup: int = 0

    @property
    def changes(self) -> bool:
        """Whether the rate is not the same at every step."""
        return self.kind != "constant" or self.warmup > 0

    @property
    def summary(self) -> str:
        """The schedule in a few words, such as `x0.9 every 10 epochs`."""
        places = f"at {self.unit} {', '.join(map(str, self.at))}" if self.at else f"every {self.every} {self.unit}"
        step, cosine = f"x{self.factor:g} {places}", f"cosine over {self.length} {self.unit}"
        shape = {"step": step, "cosine": cosine}.get(self.kind, "constant")
        return f"{shape}, warm-up of {self.warmup} {self.unit}" if self.warmup else shape


@dataclass(frozen=True)
class TensorGroup:
    """Tensors with another learning rate or another weight decay than the rest.

    tensors: their names; in a specification, patterns of names such as `head.*`.
    rate: what the learning rate of every step is multiplied by.
    decay: what the weight decay is multiplied by, of those of the tensors that decay.
    """

    tensors: tuple[str, ...]
    rate: float = 1.0
    decay: float = 1.0


@dataclass(frozen=True)
class Optimizer:
    """An update rule with its constants; `decay` lists the tensors under weight decay.

    learning_rate: of every step, or what `schedule` multiplies.

    clip: largest global L2 norm of all gradients together; larger gradients are scaled down first. 0: no clipping.
    implementation: "native" (the framework's own) or "reference" (the canonical formula, written out).
    form: "canonical" (epsilon outside the square root, after bias correction; a momentum of gradients), "epsilon-hat", or
    "rate-in-momentum" (a momentum of updates: each gradient keeps the rate of its own step).
    correction: precision in which 1 - beta^t is computed: "float64" or "float32".
    groups: tensors with a learning rate or a weight decay of their own; a tensor is in one of them at most.
    """

    name: str
    learning_rate: float
    momentum: float = 0.0
    nesterov: bool = False
    beta1: float = 0.9
    beta2: float = 0.999
    epsilon: float = 1e-8
    weight_decay: float = 0.0
    decay: tuple[str, ...] = ()
    clip: float = 0.0
    schedule: RateSchedule = RateSchedule()
    implementation: str = "native"
    form: str = "canonical"
    correction: str = "float64"
    groups: tuple[TensorGroup, ...] = field(default=(), metadata=records.LATER)

    def group_of(self, name: str) -> TensorGroup | None:
        """Return the group of a tensor; None: it is in none."""
        return next((group for group in self.groups if name in group.tensors), None)

    def rate_of(self, name: str) -> float:
        """Return what the learning rate of a tensor is multiplied by: 1 unless its group says otherwise."""
        group = self.group_of(name)
        return group.rate if group else 1.0

    def decay_of(self, name: str) -> float:
        """Return the weight decay of a tensor: 0 unless the rule lists the tensor."""
        group = self.group_of(name)
        return self.weight_decay * (group.decay if group else 1.0) if name in self.decay else 0.0

    def of_tensor(self, name: str) -> Optimizer:
        """Return the rule with the learning rate of a tensor."""
        rate = self.rate_of(name)
        return self if rate == 1 else replace(self, learning_rate=self.learning_rate * rate)

    def corrections(self, t: int) -> tuple[float, float]:
        """Return 1 - beta1^t and 1 - beta2^t, computed in the precision `correction`.

        In float32 every power is rounded once. The float32 powers of libraries sometimes differ from this, and from each
        other, by one unit in the last place.
        """
        if self.correction == "float64":
            return 1 - self.beta1**t, 1 - self.beta2**t
        first, second = (_single(1 - _single(_single(beta) ** t)) for beta in (self.beta1, self.beta2))
        return first, second


def _single(value: float) -> float:
    """Round to float32."""
    return float(struct.unpack("f", struct.pack("f", value))[0])


# The tasks of a case.
TRAINING, INFERENCE = "training", "inference"
# Values of the size `lengths`: every batch as long as the preset's arrays, or as its own longest sample.
PADDED, OWN = "padded", "own"
NO_OPTIMIZER = Optimizer("none", 0.0)


@dataclass(frozen=True)
class Case:
    """One computation in one framework with all its settings. Two results are comparable if their cases are equal, except
    for what is being compared.

    task: what the process does with the network: "training" or "inference"; an inference has the optimizer NO_OPTIMIZER.
    sizes: the preset's sizes after every override; "batch" is the number of samples per step, or per forward pass.
    specification: hash of the network's description and its sizes.
    data: the data set and how it is prepared; empty: synthetic batches only.
    version: the framework version that was requested; empty: the locked default.
    strategy: how the computation is spread over devices or processes: "single", or a name and a number of parts, such as "ddp:2",
    or "ddp:2@1gbit" on two hosts with such a link between them (see `strategy`). The batch is that of all parts together, and the
    threads are those of each.
    loader_workers: processes of the framework's own data loader.
    memory_limit: bytes of resident memory that a measuring process may use, each of several; 0: no limit.
    weights: digest of the file that holds the initial weights; empty: they are drawn by the seed.
    inputs: hash of initial weights, prepared data, order of batches and synthetic batch; empty until these are prepared.
    """

    workload: str
    preset: str
    sizes: dict[str, Any]
    specification: str
    data: dict[str, Any]
    optimizer: Optimizer
    framework: str
    settings: Settings
    version: str = ""
    task: str = TRAINING
    strategy: str = "single"
    seed: int = 0
    loader_workers: int = 0
    memory_limit: int = 0
    weights: str = field(default="", metadata=records.LATER)
    inputs: str = ""

    @cached_property
    def id(self) -> str:
        """Digest of every field: equal for equal cases, in every run and on every machine."""
        text = json.dumps(records.plain(self), sort_keys=True, separators=(",", ":"), ensure_ascii=False)
        return hashlib.sha256(text.encode()).hexdigest()[:ID_LENGTH]

    @property
    def batch(self) -> int:
        """Samples per step."""
        return int(self.sizes["batch"])

    @property
    def cuts_batches(self) -> bool:
        """Whether every batch is cut to its own longest sample, so that shapes change from step to step."""
        return bool(self.sizes.get("lengths", PADDED) == OWN)

    @property
    def environment(self) -> str:
        """Name of the environment that the case runs in: the framework, and its version where one was requested."""
        return f"{self.framework}@{self.version}" if self.version else self.framework


def differences(a: Case, b: Case) -> dict[str, tuple[Any, Any]]:
    """Return {dotted field: (value in a, value in b)} for every field in which two cases differ."""
    left, right = _flat(records.plain(a)), _flat(records.plain(b))
    missing = "not set"
    return {
        name: (left.get(name, missing), right.get(name, missing))
        for name in dict.fromkeys([*left, *right])
        if left.get(name, missing) != right.get(name, missing)
    }


def _flat(values: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in values.items():
        path = f"{prefix}{name}"
        found |= _flat(value, f"{path}.") if isinstance(value, dict) else {path: value}
    return found
