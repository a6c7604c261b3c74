"""NumPy as if it were a framework; time passes only as the settings say."""

from __future__ import annotations

import contextlib
import errno
import os
import random
import signal
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from steelyard_worker import accumulation, probes
from steelyard_worker.exchange import Signature
from steelyard_worker.frameworks import update_scalars
from steelyard_worker.frameworks.fake.copies import Exchange
from steelyard_worker.graphs import Stage
from steelyard_worker.protocol import Refusal
from steelyard_worker.ranks import Ranks

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping
    from types import ModuleType

    from steelyard_worker.batches import Batch, Source
    from steelyard_worker.case import Optimizer, Settings
    from steelyard_worker.communication import AllReduce
    from steelyard_worker.frameworks.base import Array
    from steelyard_worker.network import Network


# Batches that the fault `repeat` yields again and again.
REPEATED = 8
# The settings of the process, as the last adapter set them.
_of_process: dict[str, Any] = {}


class Adapter:
    """One scripted process."""

    def __init__(self, settings: Settings, ranks: Ranks | None = None) -> None:
        self._settings = settings
        _of_process.update(threads=settings.threads, deterministic=settings.deterministic)
        self.ranks = ranks or Ranks()
        self.knobs = settings.knobs
        if self.ranks.rank != self.knobs.get("fault_rank", 0):
            self.knobs = settings.knobs | {"fault": "none"}
        if self.knobs["fault"] == "import":
            raise ImportError("No module named 'fake'")
        self.exchange = Exchange(self.ranks) if self.ranks.name == "copies" else None
        self.draw = random.Random()
        self.speed = max(0.1, self.draw.gauss(1, self.knobs["process_noise"]))
        self._now_ns = time.perf_counter_ns()
        self.is_timed = False
        self.matmul_precision = "highest"
        self._passed: list[tuple[int, int]] = []

    def scripted_clock(self) -> int:
        """Return the scripted time, nanoseconds; the fault `timed` has other losses from then on."""
        self.is_timed = True
        return self._now_ns

    def pass_step(self, share: float = 1.0) -> None:
        """Advance the scripted time by one step, or by a share of one."""
        noise = self.draw.gauss(1, self.knobs["noise"]) if self.knobs["noise"] else 1.0
        took = max(1, round(self.knobs["step_us"] * 1000 * self.speed * noise * share))
        self._passed.append((self._now_ns, took))
        self._now_ns += took

    def passed(self) -> list[tuple[int, int]]:
        """Return the (start, duration) of every step since the last call, nanoseconds."""
        found, self._passed = self._passed, []
        return found

    def applied(self) -> dict[str, Any]:
        """Return the settings unchanged. As in a real framework, threads and determinism are those of the process."""
        given = self._settings
        return {
            "mode": given.mode,
            "device": "cpu",
            "precision": given.precision,
            **_of_process,
            **given.knobs,
            "strategy": self._strategy(),
        }

    def arithmetic(self) -> dict[str, Any]:
        """Return a precision that an implementation can change, as with a real framework."""
        return {"matmul_precision": self.matmul_precision}

    def _strategy(self) -> str:
        parts = self.exchange.count if self.exchange else self.ranks.parts
        return f"{self.ranks.name}:{parts}"

    def libraries(self) -> dict[str, Any]:
        """Return the version of NumPy."""
        return {"numpy": np.__version__}

    def trainer(
        self,
        implementation: ModuleType,
        sizes: dict[str, Any],
        network: Network,
        weights: Mapping[str, Array],
        optimizer: Optimizer,
        rates: Array | None = None,
    ) -> Trainer:
        """Return a trainer around `implementation.forward` and `implementation.backward`."""
        return Trainer(self, implementation, network, weights, optimizer, np.dtype(self._settings.precision), rates)

    def predictor(
        self, implementation: ModuleType, sizes: dict[str, Any], network: Network, weights: Mapping[str, Array]
    ) -> Predictor:
        """Return a predictor around `implementation.forward`."""
        return Predictor(self, implementation, network, weights, np.dtype(self._settings.precision))

    def export(self, predictor: Predictor, batch: Batch, path: Path) -> Signature:
        """Write the weights, which a runtime of the tests reads."""
        outputs = tuple(predictor.outputs(batch))
        with path.open("wb") as file:
            np.savez(file, **predictor.state())
        return Signature(("point",), outputs)

    def checkpoint(
        self, implementation: ModuleType, sizes: dict[str, Any], network: Network, path: Path
    ) -> dict[str, Array]:
        """Return the tensors of a file in the made-up format, canonical."""
        from steelyard_worker.frameworks.fake import checkpoint

        return checkpoint.read(network, path)

    def pipeline(self, trainer: Predictor, source: Source, workers: int) -> Iterator[Any]:
        """Yield the batches in order; the fault `repeat` yields the first REPEATED again and again."""
        step = 0
        while True:
            yield trainer.put(source.batch(step % REPEATED if self.knobs["fault"] == "repeat" else step))
            step += 1

    def profiler(self, folder: Path, timed: Any, batch: Any) -> Any:
        """Return the scripted profiler, or refuse."""
        from steelyard_worker.frameworks.fake.profiling import Profiler

        del timed, batch
        fault = self.knobs.get("profiler_fault", "none")
        if fault == "unsupported":
            cause(fault)
        return Profiler(folder, self.passed, self.scripted_clock, fault)

    def graphs(self, timed: Any, batch: Any) -> Iterator[Stage]:
        """Yield a scripted graph, or fail."""
        del timed, batch
        if self.knobs["fault"] == "graph":
            raise Refusal("unsupported", "The script says that there is no graph.")
        yield Stage("traced", "nodes", {"product": 2, "update": 3, "strange": 5})
        yield Stage("optimised", "nodes", {"product": 2, "update": 2})

    def all_reduce(self, array: Array) -> AllReduce:
        """Return the scripted all-reduce."""
        from steelyard_worker.frameworks.fake.communication import CopiesReduce

        return CopiesReduce(array, self)

    def compilations(self) -> int:
        """Return 0: nothing is compiled."""
        return 0

    def peak_bytes(self) -> int | None:
        """Return None: there is no device memory."""
        return None


class Predictor:
    """The forward pass in NumPy."""

    def __init__(
        self,
        adapter: Adapter,
        implementation: ModuleType,
        network: Network,
        weights: Mapping[str, Array],
        dtype: np.dtype[Any],
    ) -> None:
        self._adapter, self._implementation, self._dtype = adapter, implementation, dtype
        self._parameters = {p.name: np.array(weights[p.name], dtype) for p in network.parameters}
        self._steps = 0

    def put(self, batch: Batch) -> Batch:
        """Convert floats to the precision of the run; the fault `order` gives every sample the label of the one before."""
        if self._adapter.knobs["fault"] == "order":
            batch = batch | {"label": np.roll(batch["label"], 1)}
        floating = {name: np.issubdtype(array.dtype, np.floating) for name, array in batch.items()}
        return {name: array.astype(self._dtype) if floating[name] else array for name, array in batch.items()}

    def infer(self, batch: Batch) -> dict[str, Array]:
        """Do one forward pass, advance the scripted time, and cause the scripted fault."""
        factor = float("nan") if self._pass_step() else 1.0
        return {name: array * self._dtype.type(factor) for name, array in self._forward(batch).items()}

    def _pass_step(self) -> bool:
        """Advance the scripted time and cause the scripted fault; returns whether numbers are to be undefined from here on."""
        self._steps += 1
        self._adapter.pass_step()
        fault, step = self._adapter.knobs["fault"], self._adapter.knobs["fault_step"]
        if self._steps == step:
            cause(fault)
            self._adapter.matmul_precision = "medium" if fault == "precision" else "highest"
        return bool(fault == "nan" and self._steps >= step)

    def _forward(self, batch: Batch) -> dict[str, Array]:
        outputs: dict[str, Array] = self._implementation.forward(self._parameters, batch)
        return outputs

    def synchronise(self) -> None:
        """Return: NumPy has finished when a call returns."""

    def outputs(self, batch: Batch) -> dict[str, Array]:
        """Forward only."""
        return self.infer(batch)

    def state(self) -> dict[str, Array]:
        """Return every tensor."""
        return dict(self._parameters)

    def inner(self, batch: Batch, names: Collection[str]) -> dict[str, Array]:
        """Forward, with what the implementation passes to `probe`."""
        with probes.collected() as found:
            self._forward(batch)
        return {name: np.asarray(found[name]) for name in found.keys() & names}


class Trainer(Predictor):
    """Plain SGD with momentum, or Adam in its canonical form, in NumPy."""

    def __init__(
        self,
        adapter: Adapter,
        implementation: ModuleType,
        network: Network,
        weights: Mapping[str, Array],
        optimizer: Optimizer,
        dtype: np.dtype[Any],
        rates: Array | None = None,
    ) -> None:
        super().__init__(adapter, implementation, network, weights, dtype)
        self._optimizer, self._rates = optimizer, rates
        self._moments = {name: (np.zeros_like(a), np.zeros_like(a)) for name, a in self._parameters.items()}
        self._updates = 0

    def restart(self, weights: Mapping[str, Array]) -> None:
        """Put the weights back, and forget moments and steps; a scripted fault goes on, because it counts all steps."""
        for name, parameter in self._parameters.items():
            parameter[...] = weights[name]
            for moment in self._moments[name]:
                moment[...] = 0
        self._updates = 0

    def step(self, batch: Batch) -> float:
        """Do one update, advance the scripted time, and cause the scripted fault."""
        faulty = self._pass_step()
        batch = self._coarse(batch) if self._has_turned("coarse") else batch
        loss, gradients = self._added(batch)
        self._updates += 1
        for name, gradient in gradients.items():
            if not (self._has_turned("frozen") and name == next(iter(gradients))):
                self._update(name, gradient)
        if self._adapter.knobs["fault"] == "timed" and self._adapter.is_timed:
            loss += 0.01
        return float("nan") if faulty else loss

    def _added(self, batch: Batch) -> tuple[float, dict[str, Array]]:
        """Return the mean loss and the mean gradients of the parts into which the knob `accumulate` divides a batch."""
        samples = len(next(iter(batch.values())))
        parts = accumulation.parts_for(self._adapter.knobs.get(accumulation.KNOB, 1), samples)
        cut = {name: np.split(array, parts) for name, array in batch.items()}
        found = [self.gradients({name: each[part] for name, each in cut.items()}) for part in range(parts)]
        loss = sum(each for _, each, _ in found) / parts
        names = found[0][2]
        return loss, {name: sum(each[name] for *_, each in found) / parts for name in names}

    def _has_turned(self, fault: str) -> bool:
        """Return whether a fault that begins at some step, and does not end the process, has begun."""
        knobs = self._adapter.knobs
        return bool(knobs["fault"] == fault and self._steps >= knobs["fault_step"])

    def _coarse(self, batch: Batch) -> Batch:
        """Return a batch whose floats have the eight bits of bfloat16; this cuts off, and does not round."""
        return {name: _cut_off(array) if array.dtype.kind == "f" else array for name, array in batch.items()}

    def _update(self, name: str, gradient: Array) -> None:
        rule, (first, second) = self._optimizer, self._moments[name]
        rate = rule.learning_rate if self._rates is None else update_scalars.rate_at(self._rates, self._updates - 1)
        rate *= rule.rate_of(name)
        if rule.name == "sgd":
            first[...] = rule.momentum * first + gradient
            self._parameters[name] -= rate * first
            return
        first[...] = rule.beta1 * first + (1 - rule.beta1) * gradient
        second[...] = rule.beta2 * second + (1 - rule.beta2) * gradient * gradient
        corrected = first / (1 - rule.beta1**self._updates)
        spread = np.sqrt(second / (1 - rule.beta2**self._updates)) + rule.epsilon
        self._parameters[name] -= rate * corrected / spread

    def losses(self, handles: list[float]) -> Array:
        """Return the losses, which are already numbers."""
        return np.array(handles, np.float32)

    def gradients(self, batch: Batch) -> tuple[dict[str, Array], float, dict[str, Array]]:
        """Forward and backward by the implementation's own formulas."""
        outputs = self._forward(batch)
        loss, gradients = self._implementation.backward(self._parameters, batch, outputs)
        if self._adapter.exchange:
            mean = self._adapter.exchange.mean(gradients)
            gradients = gradients if self._has_turned("apart") else mean
        return outputs, float(loss), gradients

    def outputs(self, batch: Batch) -> dict[str, Array]:
        """Forward only, in half the time of a step."""
        self._adapter.pass_step(0.5)
        return self._forward(batch)


def _cut_off(array: Array) -> Array:
    bits = array.astype(np.float32).view(np.uint32) & np.uint32(0xFFFF0000)
    return bits.view(np.float32).astype(array.dtype)


def cause(fault: str, folder: Path = Path()) -> None:
    """Cause a fault: hang, exit, allocate more memory than the machine has, or fill the disk that holds a folder."""
    if fault == "hang":
        time.sleep(3600)
    elif fault == "die":
        os.kill(os.getpid(), signal.SIGKILL)
    elif fault == "memory":
        np.empty(2**50, np.uint8)
    elif fault == "disk":
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    elif fault == "fill":
        _fill(folder / "filler")
    elif fault == "privileges":
        raise PermissionError(errno.EACCES, "The script denies the profiler its counters")
    elif fault == "unsupported":
        raise Refusal("unsupported", "The script says that this cannot be done.")


def _fill(path: Path) -> None:
    """Write into the trial's folder until the disk is full, so that the next write fails."""
    with contextlib.suppress(OSError), path.open("wb", buffering=0) as file:
        while file.write(bytes(2**16)):
            pass
