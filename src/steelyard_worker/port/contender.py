"""Time one side of a port: its own training step, or its forward pass, behind the interface of a framework's adapter.

The framework's own adapter applies and reads back the settings of the process. The model, its weights, its optimizer and its step
are the user's; the batch is the one that `port.toml` describes.
"""

from __future__ import annotations

import itertools
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from steelyard_worker.frameworks import base
from steelyard_worker.port import nested, objects
from steelyard_worker.port.errors import SideError, sentence
from steelyard_worker.port.learning import Learning
from steelyard_worker.port.side_file import SideFile
from steelyard_worker.port.side_functions import MODEL, OWN, PREDICT, STEP
from steelyard_worker.protocol import Refusal

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from types import ModuleType

    from steelyard_worker.case import Settings

T = TypeVar("T")


class SideAdapter:
    """One process that times a side. A subclass names its framework, and the usual mode and knobs of that."""

    framework: str
    mode: str
    knobs: Mapping[str, Any]

    def __init__(self, settings: Settings) -> None:
        usual = replace(settings, mode=self.mode, knobs=dict(self.knobs))
        self._framework = base.load(self.framework, usual)

    def applied(self) -> dict[str, Any]:
        """Read the settings back as the framework's own adapter does. How its code runs is the side's."""
        return {**self._framework.applied(), "mode": OWN}

    def libraries(self) -> dict[str, Any]:
        """Return the versions and builds that do the arithmetic."""
        return self._framework.libraries()

    def arithmetic(self) -> dict[str, Any]:
        """Return precision and threads as the framework has them now; a side that changes them is refused."""
        return self._framework.arithmetic() if hasattr(self._framework, "arithmetic") else {}

    def trainer(self, implementation: ModuleType, *_: Any) -> SideTrainer:
        """Return what does the training step that the side's step() returns. Refusal: the side's code fails."""
        return _refusing(lambda: SideTrainer(implementation))

    def predictor(self, implementation: ModuleType, *_: Any) -> SidePredictor:
        """Return what does the forward pass. Refusal: the side's code fails, or its kind of model needs predict()."""
        return _refusing(lambda: SidePredictor(implementation))

    def pipeline(self, timed: Any, source: Any, workers: int) -> Iterator[Any]:
        """Yield the batch of port.toml without end. `source` and `workers`: of a data set, which a port has not."""
        del source, workers
        return itertools.repeat(timed.put({}))

    def profiler(self, folder: Path, timed: Any, batch: Any) -> Any:
        """Return the framework's own profiler."""
        return self._framework.profiler(folder, timed, batch)

    def compilations(self) -> int:
        """Return how often the framework has compiled or traced so far."""
        return self._framework.compilations()

    def peak_bytes(self) -> int | None:
        """Return the peak of device memory by the framework's own counter."""
        return self._framework.peak_bytes()


class _Timed:
    """The model of a side, made anew. `implementation` has the paths FILE, and {name: path} in INPUTS and TARGETS."""

    def __init__(self, implementation: ModuleType) -> None:
        self._file = SideFile(Path(implementation.FILE))
        own = self._file.call(MODEL)
        self._model = objects.wrap(own)
        self._learning = Learning(self._file, self._model)
        self._inputs: dict[str, str] = implementation.INPUTS
        self._targets: dict[str, str] = implementation.TARGETS
        self._own = own

    def synchronise(self) -> None:
        """Wait for all libraries that compute and are loaded in this process."""
        for name, wait in _WAITING.items():
            if name in sys.modules:
                wait(sys.modules[name])

    def program(self, batch: Any) -> str:
        """Refuse: a side does not give the program that was compiled of its code, by which JAX's profiler names operations."""
        del batch
        raise Refusal(
            "unsupported", "JAX's profiler needs the compiled program, which the side of a port does not give."
        )

    def state(self) -> dict[str, np.ndarray]:
        """Return nothing: the tensors are the user's, and `steelyard port check` compared them."""
        return {}

    def _arrays(self, result: Any) -> dict[str, np.ndarray]:
        bridge = self._model.bridge
        return {name: bridge.to_array(tensor) for name, tensor in nested.named(result, bridge.is_tensor)}


class SidePredictor(_Timed):
    """The forward pass of a side: what predict(model) returns, or the usual way of the kind of model."""

    def __init__(self, implementation: ModuleType) -> None:
        super().__init__(implementation)
        if self._file.has(PREDICT):
            self._pass = self._file.call(PREDICT, self._own)
            if not callable(self._pass):
                raise SideError(f"{PREDICT}() returned no function. Return one that takes what the model takes.")
        elif not hasattr(self._model, "predictor"):
            kind = self._model.kind
            raise SideError(
                f"How a {kind} is run best is not known. Define {PREDICT}(model), which returns a function that runs it."
            )
        else:
            self._pass = self._model.predictor()

    def put(self, batch: Mapping[str, Any]) -> Any:
        """Place the inputs of port.toml, or what inputs() makes of them. `batch` is that of no data set, and is not used."""
        del batch
        return _refusing(lambda: self._learning.arguments(self._inputs))

    def infer(self, batch: Any) -> Any:
        """Start one forward pass."""
        return self._pass(batch)

    def outputs(self, batch: Any) -> dict[str, np.ndarray]:
        """Run a forward pass, and return the outputs that a check compares."""
        return _refusing(lambda: self._arrays(self._learning.chosen(self._pass(batch))))


class SideTrainer(_Timed):
    """The training step of a side: what step(model) returns, with the user's own optimizer."""

    def __init__(self, implementation: ModuleType) -> None:
        super().__init__(implementation)
        self._step = self._file.call(STEP, self._own)
        if not callable(self._step):
            raise SideError(f"{STEP}() returned no function. Return one that takes a batch and returns the loss.")
        self._known = False

    def put(self, batch: Mapping[str, Any]) -> Any:
        """Place the inputs and targets of port.toml by name. `batch` is that of no data set, and is not used."""
        del batch
        return _refusing(lambda: self._learning.batch({**self._inputs, **self._targets}))

    def step(self, batch: Any) -> Any:
        """Do one step, and return its loss without its graph."""
        loss = self._step(batch) if self._known else self._first(batch)
        detach = getattr(loss, "detach", None)
        return detach() if detach is not None else loss

    def losses(self, handles: list[Any]) -> np.ndarray:
        """Read losses back."""
        return np.array([float(self._model.bridge.to_array(each)) for each in handles], np.float32)

    def _first(self, batch: Any) -> Any:
        def first() -> Any:
            try:
                loss = self._step(batch)
            except Exception as error:
                raise SideError(sentence("The step", error, self._file.path)) from error
            shape = getattr(loss, "shape", None)
            if shape is None or any(extent != 1 for extent in shape):
                what = type(loss).__name__ if shape is None else f"tensor of shape {tuple(shape)}"
                raise SideError(f"The step returned a {what}. Return the loss: one tensor without axes.")
            return loss

        self._known = True
        return _refusing(first)


def _refusing(work: Callable[[], T]) -> T:
    """Do something with the user's code; its mistakes are refusals."""
    try:
        return work()
    except SideError as error:
        raise Refusal("implementation", str(error)) from error


def _wait_for_jax(jax: Any) -> None:
    for array in jax.live_arrays():
        if not array.is_deleted():
            array.block_until_ready()


def _wait_for_torch(torch: Any) -> None:
    if torch.cuda.is_available() and torch.cuda.is_initialized():
        torch.cuda.synchronize()


# Library -> how to wait for everything that it computes. A block of steps waits once, at its end.
_WAITING: dict[str, Callable[[Any], Any]] = {
    "torch": _wait_for_torch,
    "jax": _wait_for_jax,
    "tensorflow": lambda tensorflow: tensorflow.test.experimental.sync_devices(),
    "mindspore": lambda mindspore: mindspore.hal.synchronize(),
    "mxnet": lambda mxnet: mxnet.nd.waitall(),
}
