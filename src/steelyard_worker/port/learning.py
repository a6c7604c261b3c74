"""How a side learns: the loss, its gradients, and the updates of the functions loss() and optimizer() in its file."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from steelyard_worker.port import nested, observed
from steelyard_worker.port.errors import SideError, sentence

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from steelyard_worker.port.objects.base import Learner, Model
    from steelyard_worker.port.side_file import SideFile

LOSS, OPTIMIZER, INPUTS, OUTPUTS, BATCHES = "loss", "optimizer", "inputs", "outputs", "batches"


class Learning:
    """The training functions of one side. Arrays are named files; a batch has the inputs and the targets."""

    def __init__(self, file: SideFile, model: Model) -> None:
        self._file, self._model = file, model

    def can(self) -> dict[str, Any]:
        """Return which functions the file has, and which of them an object of this kind is followed through."""
        return {
            LOSS: self._file.has(LOSS),
            OPTIMIZER: self._file.has(OPTIMIZER),
            BATCHES: self._file.has(BATCHES),
            "gradients": callable(getattr(self._model, "gradients", None)),
            "updates": callable(getattr(self._model, "updater", None)),
            "training": bool(getattr(self._model, "without_randomness", False)),
        }

    def arguments(self, arrays: Mapping[str, str]) -> Any:
        """Return what the model is called with: the arrays as tensors, or what inputs() makes of them."""
        placed = self._placed(arrays)
        return self._file.call(INPUTS, placed) if self._file.has(INPUTS) else placed

    def chosen(self, result: Any) -> Any:
        """Return what of the model's result is compared, and given to loss()."""
        return self._file.call(OUTPUTS, result) if self._file.has(OUTPUTS) else result

    def loss_of(self, result: Any, batch: dict[str, str], outputs: list[str]) -> float:
        """Return the loss of what the model returned, with its outputs replaced by files ("" keeps one)."""
        value = self.chosen(result)
        bridge = self._model.bridge
        old = [tensor for _, tensor in nested.named(value, bridge.is_tensor)]
        new = [
            bridge.like(np.load(file), tensor) if file else tensor for tensor, file in zip(old, outputs, strict=False)
        ]
        value = nested.replaced(value, bridge.is_tensor, iter([*new, *old[len(new) :]]))
        return float(bridge.to_array(self._loss(value, self._placed(batch))))

    def gradients(self, folder: Path, arrays: dict[str, str], batch: dict[str, str]) -> dict[str, Any]:
        """Save the gradient of the loss for every trained tensor, in evaluation mode."""
        arguments, placed = self.arguments(arrays), self._placed(batch)

        def objective(run: Callable[[Any], Any]) -> Any:
            return self._loss(self.chosen(run(arguments)), placed)

        try:
            loss, gradients = cast("Learner", self._model).gradients(objective)
        except SideError:
            raise
        except BaseException as error:
            raise SideError(sentence("The backward pass", error, self._file.path)) from error
        return {"loss": float(self._model.bridge.to_array(loss)), "gradients": self._saved(folder, gradients)}

    def updates(self, folder: Path, steps: list[dict[str, str]]) -> dict[str, Any]:
        """Let the optimizer update the weights once for each set of given gradients, and save the weights after each.

        `steps`: name of a tensor -> file of its gradient.
        """
        updater = cast("Learner", self._model).updater(lambda model: self._file.call(OPTIMIZER, model))
        saved = []
        for number, step in enumerate(steps):
            try:
                updater.apply({name: np.load(file) for name, file in step.items()})
            except SideError:
                raise
            except BaseException as error:
                raise SideError(sentence("The optimizer", error, self._file.path)) from error
            own = folder / str(number)
            own.mkdir()
            values = {name: tensor for name, tensor, _ in self._model.tensors() if name in step}
            saved.append(self._saved(own, values))
        return {"settings": updater.settings, "weights": saved}

    def values(self, folder: Path, names: list[str]) -> dict[str, str]:
        """Save the present values of some tensors; returns name -> file."""
        wanted = set(names)
        return self._saved(folder, {name: tensor for name, tensor, _ in self._model.tensors() if name in wanted})

    def batches(self, folder: Path, count: int) -> list[dict[str, str]]:
        """Save the first batches of the side's own loader; returns name of an array -> file, of each batch."""
        found = []
        for number, batch in enumerate(itertools.islice(self._file.iterated(BATCHES), count)):
            own = folder / str(number)
            own.mkdir()
            named = dict(nested.named(batch, self._is_array))
            if not named:
                raise SideError(
                    f"batches() yielded a {type(batch).__name__} without an array. Yield arrays or tensors."
                )
            found.append(self._saved(own, named))
        return found

    def _is_array(self, value: Any) -> bool:
        return isinstance(value, np.ndarray) or self._model.bridge.is_tensor(value)

    def _placed(self, arrays: Mapping[str, str]) -> dict[str, Any]:
        return self._model.place({name: np.load(file) for name, file in arrays.items()})

    def _loss(self, outputs: Any, batch: dict[str, Any]) -> Any:
        loss = self._file.call(LOSS, outputs, batch)
        shape = getattr(loss, "shape", None)
        if shape is None or any(extent != 1 for extent in shape):
            what = type(loss).__name__ if shape is None else f"tensor of shape {tuple(shape)}"
            raise SideError(f"loss() returned a {what}. Return one tensor without axes: the mean over the batch.")
        return loss.reshape(()) if len(shape) else loss

    def _saved(self, folder: Path, tensors: Mapping[str, Any]) -> dict[str, str]:
        found = {}
        for number, (name, tensor) in enumerate(tensors.items()):
            path = folder / f"{number}.npy"
            array = tensor if isinstance(tensor, np.ndarray) else self._model.bridge.to_array(tensor)
            observed.save(path, array)
            found[name] = str(path)
        return found
