"""A network as data, before any framework: its tensors in canonical layout, its inputs, its cost.

Every `workloads/<workload>/network.py` has one function, `describe(sizes) -> Network`; weights are generated, gradients are
compared and the first diverging tensor is named in the order given here.
"""

from __future__ import annotations

import importlib.util
import math
import sys
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Any

from steelyard_worker.case import RateSchedule

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from types import ModuleType

    import numpy as np

    from steelyard_worker.batches import Batch
    from steelyard_worker.case import Optimizer

# Canonical layouts: conv OIHW, dense (out, in), embedding (vocabulary, width), lstm_w_ih (4H, in), lstm_w_hh (4H, H),
# lstm_b (4H) with gate blocks i, f, g, o; conv1d OIW; everything else is a vector (or, as attention's g, a scalar in one).
KINDS = (
    "conv",
    "conv1d",
    "dense",
    "bias",
    "embedding",
    "lstm_w_ih",
    "lstm_w_hh",
    "lstm_b",
    "vector",
    "gamma",
    "beta",
    "running_mean",
    "running_var",
)
# Those of batch statistics, which a step changes although they are not trained.
STATISTICS = ("running_mean", "running_var")
# Those that are factors of matrix products and convolutions.
FACTORS = ("conv", "conv1d", "dense", "lstm_w_ih", "lstm_w_hh")


@dataclass(frozen=True)
class Parameter:
    """One named tensor. `initial` names a distribution of `steelyard.inputs.weights`; statistics are not trainable.

    `zero_gradient`: in exact arithmetic no output depends on it, so its gradient is zero and a framework computes only rounding
    errors for it. An example is the bias of attention's keys.
    """

    name: str
    shape: tuple[int, ...]
    kind: str
    initial: str
    trainable: bool = True
    zero_gradient: bool = False

    @property
    def count(self) -> int:
        """Number of scalars."""
        product = 1
        for extent in self.shape:
            product *= extent
        return product


@dataclass(frozen=True)
class Input:
    """One array of a batch, without its batch axis. `high` bounds integers: 0 <= value < high.

    `lengths`: axis of `shape` -> the input with the number of places on it that belong to a sample; the others are padding. With
    the size `lengths = "own"`, every batch is cut to its longest sample along these axes.
    """

    name: str
    shape: tuple[int, ...]
    dtype: str
    high: int = 0
    lengths: Mapping[int, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Isolation:
    """Weights at which the inputs of a layer do not depend on the layers before it.

    They are for layers whose own rounding would be lost in that of all others. `tensors` are patterns of the names of their
    tensors, which are compared after the step, with its loss; others may have gradients that are zero but for rounding.
    `factors` multiply the initial weights, by patterns of their names, of which the first that matches counts: zero, or powers
    of two. `ramps` name tensors whose values are replaced, by evenly spread ones between minus this number and this number.
    """

    tensors: tuple[str, ...]
    factors: Mapping[str, float] = field(default_factory=dict)
    ramps: Mapping[str, float] = field(default_factory=dict)

    def factor(self, name: str) -> float:
        """Return what the initial weights of a parameter are multiplied by."""
        return _first(self.factors, name, 1.0)

    def shows(self, name: str) -> bool:
        """Return whether a tensor is one of the isolated layers."""
        return any(fnmatchcase(name, pattern) for pattern in self.tensors)

    def ramp(self, name: str) -> float:
        """Return the largest of the values that replace a parameter's; 0: they are not replaced."""
        return _first(self.ramps, name, 0.0)


@dataclass(frozen=True)
class Adversarial:
    """Weights, a batch and an update rule that reach the branches which usual training misses; a certificate compares one step.

    `draw(generator, batch)` makes the batch; without it, floats are N(0, 1) times `scale`, and whole numbers are the lowest and
    the highest that are allowed. `factors` multiply the initial weights, by patterns of their names, of which the first that
    matches counts (and `adversarial_weights` draws the rest). `clip` replaces the update rule's limit where it clips
    gradients, so that one of the two steps clips and the other does not. `isolation`: weights of one more step with the same
    batch and rule; None: there is none.
    """

    draw: Callable[[np.random.Generator, int], Batch] | None = None
    scale: float = 8.0
    factors: Mapping[str, float] = field(default_factory=dict)
    clip: float = 1e6
    isolation: Isolation | None = None

    def factor(self, name: str) -> float:
        """Return what the initial weights of a parameter are multiplied by."""
        return _first(self.factors, name, 1.0)

    def rule(self, optimizer: Optimizer) -> Optimizer:
        """Return the update rule with constants at which every term of it shows after one step.

        With a learning rate and an epsilon of 1, rules that divide a gradient by its own size return about the gradient itself,
        and updates are not lost in the rounding of the weights. A usual weight decay changes a weight by less than that.
        """
        return replace(
            optimizer,
            learning_rate=1.0,
            epsilon=1.0,
            weight_decay=2.0**-7 if optimizer.weight_decay else 0.0,
            clip=self.clip if optimizer.clip else 0.0,
            schedule=RateSchedule(),
        )


@dataclass(frozen=True)
class Network:
    """Tensors in network order, inputs, and the multiply-accumulates of one sample's forward pass.

    `frozen_macs`: those of them that come before the first trained tensor, so that nothing is differentiated there; None: not
    stated.
    `activations`: approximate number of scalars of one sample that are stored for the backward pass; 0: not counted.
    `recursion`: steps of a recursion over log-probabilities that ends in the loss, such as the frames of CTC; 0: none.
    Gradients are exponentials of such a loss, so its rounding errors grow with the number of steps.
    `loop_reads`: scalars of weights that a forward pass of a batch reads in loops over time, again in every step; 0: it has none.

    `draw(generator, batch)` makes a synthetic batch where inputs depend on each other (lengths, masks); without it every
    input is random by itself. `draw_set(generator, count)` makes a synthetic data set whose lengths vary more; without it, `draw`
    does. `predictions(outputs, batch)` returns what the metric needs of an evaluated batch, small
    arrays (N, ...) by name; without it these are `label` and the class with the largest of `logits`.
    `write(forward, batch)` adds the text that the network generates, word by word from its own previous words;
    `forward(batch)` is the network's pass in inference. `adversarial` reaches the branches that usual batches miss.
    `likelihood`: whether the loss is a negative log-likelihood in nats: cross-entropy, CTC, or a weighted sum of such. It
    is then a difference of logarithms, and its rounding error does not shrink with it. Below one nat, certificates measure its
    error in nats.
    `mean_over`: what the loss is a mean over: "samples", or "words" where each sample has another number of them. Then the mean
    of the losses of several shares is not the loss of the batch.
    `dropout`: whether it has any where the knob `dropout` is on.
    `blocks` names the parts that follow each other and are computed again in the backward pass where the knob `recomputation`
    says so, as the names of their tensors begin. Empty where there are none, or nothing is differentiated in them.
    `probes` names inner tensors in the order of the forward pass. After a certificate was rejected, they are compared, so that
    the first one that differs can be named (see `steelyard_worker.probes`).
    `norm_epsilon`: what batch norms add to a variance. `small_variances`: factors by which some initial weights are multiplied,
    by name as in `Adversarial`, so that the variances in layer norms are about as small as their epsilon and a wrong epsilon
    shows. The factors leave the outputs at about the same size.
    """

    parameters: tuple[Parameter, ...]
    inputs: tuple[Input, ...]
    macs: int
    activations: int = 0
    frozen_macs: int | None = None
    recursion: int = 0
    loop_reads: int = 0
    draw: Callable[[np.random.Generator, int], Batch] | None = None
    draw_set: Callable[[np.random.Generator, int], Batch] | None = None
    predictions: Callable[[Batch, Batch], Batch] | None = None
    write: Callable[[Callable[[Batch], Batch], Batch], Batch] | None = None
    adversarial: Adversarial = field(default_factory=Adversarial)
    probes: tuple[str, ...] = ()
    dropout: bool = False
    blocks: tuple[str, ...] = ()
    mean_over: str = "samples"
    likelihood: bool = False
    norm_epsilon: float = 1e-5
    small_variances: Mapping[str, float] = field(default_factory=dict)

    @property
    def ranked_by(self) -> str:
        """The input whose values say which samples are of like length: the length of the largest input; empty without any."""
        able = [each for each in self.inputs if each.lengths]
        largest = max(able, key=lambda each: math.prod(each.shape), default=None)
        return next(iter(largest.lengths.values())) if largest else ""

    @property
    def trainable_count(self) -> int:
        """Trainable scalars: batch-norm statistics and frozen tensors are not counted."""
        return sum(parameter.count for parameter in self.parameters if parameter.trainable)

    @property
    def training_flops(self) -> int:
        """FLOPs of one sample's training step: 2 per MAC, backward counted as twice the forward pass where there is one.

        Where weights are frozen and `frozen_macs` is not stated, only the forward pass is counted, because a step need not do
        more.
        """
        return self.forward_flops + 2 * 2 * (self.macs - self._frozen_macs)

    @property
    def _frozen_macs(self) -> int:
        if self.frozen_macs is not None:
            return self.frozen_macs
        freezes = any(not parameter.trainable and parameter.kind in FACTORS for parameter in self.parameters)
        return self.macs if freezes else 0

    @property
    def forward_flops(self) -> int:
        """FLOPs of one sample's forward pass."""
        return 2 * self.macs

    def small_variance_factor(self, name: str) -> float:
        """Return the factor of a parameter's initial weights that makes the variances in layer norms small."""
        return _first(self.small_variances, name, 1.0)


def _first(numbers: Mapping[str, float], name: str, otherwise: float) -> float:
    """Return the number of the first pattern that matches a name."""
    return next((number for pattern, number in numbers.items() if fnmatchcase(name, pattern)), otherwise)


def batch_norm(name: str, channels: int) -> tuple[Parameter, ...]:
    """Scale and shift (trained), running mean and unbiased running variance (not trained), each (channels,)."""
    return (
        Parameter(f"{name}.gamma", (channels,), "gamma", "constant:1"),
        Parameter(f"{name}.beta", (channels,), "beta", "constant:0"),
        Parameter(f"{name}.running_mean", (channels,), "running_mean", "constant:0", trainable=False),
        Parameter(f"{name}.running_var", (channels,), "running_var", "constant:1", trainable=False),
    )


def load(folder: str | Path, module: str) -> ModuleType:
    """Import `<folder>/<module>.py` under a name of its own; workloads may live in any folder."""
    path = Path(folder) / f"{module}.py"
    name = f"steelyard_workload_{path.parent.name.replace('-', '_')}_{module}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None or not path.is_file():
        message = f"{path} does not exist, so this workload has no {module} part."
        raise FileNotFoundError(message)
    loaded = importlib.util.module_from_spec(spec)
    sys.modules[name] = loaded  # compilers and loader processes look functions up by module name
    spec.loader.exec_module(loaded)
    return loaded


def implementation_file(
    workload_folder: str | Path, workload: str, framework: str, adapter_folder: str | Path = ""
) -> Path:
    """Return the file of a framework's implementation of a workload, which may be absent.

    It is `<framework>.py` in the workload's folder. A framework of the user's own may hold it instead, as
    `workloads/<workload>.py` in the framework's folder, so that a workload is implemented without a change to its folder.
    """
    beside = Path(workload_folder) / f"{framework}.py"
    own = Path(adapter_folder) / "workloads" / f"{workload}.py"
    return own if adapter_folder and not beside.is_file() and own.is_file() else beside


def load_implementation(
    workload_folder: str | Path, workload: str, framework: str, adapter_folder: str | Path = ""
) -> ModuleType:
    """Import a framework's implementation of a workload."""
    path = implementation_file(workload_folder, workload, framework, adapter_folder)
    return load(path.parent, path.stem)


def describe(folder: str | Path, sizes: dict[str, Any]) -> Network:
    """Return the network of a workload folder at the given sizes."""
    network: Network = load(folder, "network").describe(sizes)
    return network
