"""The process of one side: reads requests as JSON lines from standard input and answers each with one line.

What the user's code prints goes to the log of the process. A request names a folder where arrays are exchanged.
"""

from __future__ import annotations

import json
import os
import sys
import traceback
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import numpy as np

from steelyard_worker.port import nested, objects, observed
from steelyard_worker.port.errors import SideError, sentence
from steelyard_worker.port.learning import Learning
from steelyard_worker.port.side_file import MODEL, SideFile


class Side:
    """A loaded side."""

    def __init__(self, path: Path) -> None:
        self._file = SideFile(path)
        self._use(objects.wrap(self._file.call(MODEL)))

    def _use(self, model: Any) -> None:
        self._model, self._learning = model, Learning(self._file, model)

    def describe(self, folder: str) -> dict[str, Any]:
        """Save every tensor as a file, and return what they are, and versions of the libraries that are loaded."""
        found: list[dict[str, Any]] = []
        shared: dict[Any, str] = {}
        for number, (name, tensor, trained) in enumerate(self._model.tensors()):
            array = self._model.bridge.to_array(tensor)
            shared.setdefault(_place(tensor), name)
            observed.save(Path(folder) / f"{number}.npy", array)
            dtype = str(tensor.dtype).replace("torch.", "")
            same = shared[_place(tensor)]
            found.append(
                {
                    "name": name,
                    "shape": list(array.shape),
                    "dtype": dtype,
                    "trained": trained,
                    "file": f"{number}.npy",
                    "shares": "" if same == name else same,
                }
            )
        can = self._learning.can()
        return {"kind": self._model.kind, "tensors": found, "libraries": _libraries(), "can": can}

    def load(self, arrays: dict[str, str]) -> dict[str, Any]:
        """Replace the values of tensors: name -> file."""
        self._model.load({name: np.load(file) for name, file in arrays.items()})
        return {}

    def double(self) -> dict[str, Any]:
        """Compute in float64 from now on, if the model can; it is made again where its framework needs that."""
        return {"double": self._model.double() or self._remade()}

    def _remade(self) -> bool:
        """Make the model again with float64 as the framework's default, and the same values. False: a tensor is float32."""
        before = [self._model.bridge.to_array(tensor) for _, tensor, _ in self._model.tensors()]
        self._model.prepare_double()
        self._use(objects.wrap(self._file.call(MODEL)))
        after = list(self._model.tensors())
        if len(after) != len(before) or any(
            str(tensor.dtype).rpartition(".")[2] == "float32" for _, tensor, _ in after
        ):
            return False
        self._model.load({name: array for (name, _, _), array in zip(after, before, strict=False)})
        return True

    def forward(
        self,
        folder: str,
        arrays: dict[str, str],
        inputs: dict[str, list[str]],
        outputs: dict[str, list[str]],
        training: bool = False,
    ) -> dict[str, Any]:
        """Run the model on input files, with inputs and outputs of modules replaced, and save what all modules see."""
        bridge = self._model.bridge
        observer = observed.Observer(Path(folder), bridge, inputs, outputs)
        result = self._learning.chosen(self._run(arrays, observer, training))
        named = list(nested.named(result, bridge.is_tensor))
        if not named:
            raise SideError(
                f"The model returned a {type(result).__name__} without a tensor. Define outputs(result), which returns the "
                "tensors to compare."
            )
        for number, (_, tensor) in enumerate(named):
            observed.save(Path(folder) / f"output{number}.npy", bridge.to_array(tensor))
        return {"calls": observer.described(), "outputs": [name for name, _ in named]}

    def loss(self, arrays: dict[str, str], batch: dict[str, str], outputs: list[str]) -> dict[str, Any]:
        """Return the loss of the model's outputs, which files replace ("" keeps one)."""
        result = self._run(arrays, observed.Observer(None, self._model.bridge, {}, {}), training=False)
        return {"loss": self._learning.loss_of(result, batch, outputs)}

    def gradients(self, folder: str, arrays: dict[str, str], batch: dict[str, str]) -> dict[str, Any]:
        """Save the gradients of the loss."""
        return self._learning.gradients(Path(folder), arrays, batch)

    def updates(self, folder: str, steps: list[dict[str, str]]) -> dict[str, Any]:
        """Update the weights with given gradients."""
        return self._learning.updates(Path(folder), steps)

    def batches(self, folder: str, count: int) -> dict[str, Any]:
        """Save the first batches of the side's own loader."""
        return {"batches": self._learning.batches(Path(folder), count)}

    def values(self, folder: str, names: list[str]) -> dict[str, Any]:
        """Save the present values of some tensors."""
        return {"files": self._learning.values(Path(folder), names)}

    def _run(self, arrays: dict[str, str], observer: observed.Observer, training: bool) -> Any:
        arguments = self._learning.arguments(arrays)
        try:
            return self._model.forward(arguments, observer, training)
        except SideError:
            raise
        except BaseException as error:
            raise SideError(sentence("The forward pass", error, self._file.path)) from error


def _place(tensor: Any) -> Any:
    """Return what two names of one shared tensor have in common."""
    pointer = getattr(tensor, "data_ptr", None)
    return (pointer(), tuple(tensor.shape)) if pointer and tensor.numel() else id(tensor)


def _libraries() -> dict[str, str]:
    names = ("torch", "jax", "flax", "keras", "tensorflow", "transformers", "numpy")
    loaded = {name: getattr(sys.modules.get(name), "__version__", "") for name in names}
    return {name: version for name, version in loaded.items() if version}


def main(path: Path) -> None:
    """Answer requests until standard input ends."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what the user's code prints is no answer
    sys.stdout = sys.stderr
    side = None
    for line in sys.stdin:
        request = json.loads(line)
        try:
            if side is None:
                side = Side(path)
            answer = getattr(side, request.pop("do"))(**request)
        except SideError as error:
            answer = {"error": str(error)}
        except Exception as error:
            traceback.print_exc()
            answer = {"error": sentence("The side", error, path)}
        print(json.dumps(answer, default=str), file=answers, flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
