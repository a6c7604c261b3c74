"""MindSpore: any nn.Cell. Cells are run one operation after the other, and followed by replacing the `construct` of each."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import mindspore
import numpy as np
from mindspore import nn

from steelyard_worker.port.calling import called, in_signature
from steelyard_worker.port.following import objects_followed
from steelyard_worker.port.kinds import described
from steelyard_worker.port.observed import Bridge, Call

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from steelyard_worker.port.kinds import Known
    from steelyard_worker.port.observed import Observer

FLOATS = (mindspore.float16, mindspore.bfloat16, mindspore.float32, mindspore.float64)
# What classes call the table of an embedding, in the word that all frameworks share.
ROLES = {"embedding_table": "weight"}


def _array(tensor: Any) -> np.ndarray:
    return (tensor.astype(mindspore.float32) if tensor.dtype == mindspore.bfloat16 else tensor).asnumpy()


def _like(array: np.ndarray, example: Any) -> Any:
    return mindspore.Tensor(np.ascontiguousarray(array), dtype=example.dtype)


class MindSporeCell:
    """A mindspore.nn.Cell."""

    kind = "mindspore.nn.Cell"

    def __init__(self, cell: Any) -> None:
        self._cell = cell
        self.bridge = Bridge(lambda value: isinstance(value, mindspore.Tensor), _array, _like)

    def tensors(self) -> Iterator[tuple[str, Any, bool]]:
        """Yield all parameters, among them the statistics of batch norms, which are not trained."""
        for name, parameter in self._named():
            yield name, parameter, bool(parameter.requires_grad)

    def load(self, arrays: Mapping[str, np.ndarray]) -> None:
        """Set the data of parameters."""
        named = dict(self._named())
        for name, array in arrays.items():
            new = np.ascontiguousarray(np.asarray(array).reshape(named[name].shape))
            named[name].set_data(mindspore.Tensor(new, dtype=named[name].dtype))

    def double(self) -> bool:
        """Convert all parameters to float64. Operations without a float64 kernel fail, which the forward pass tells."""
        for _, parameter in self._named():
            if parameter.dtype in FLOATS:
                parameter.set_dtype(mindspore.float64)
        return True

    def place(self, arrays: Mapping[str, np.ndarray]) -> dict[str, Any]:
        """Return tensors; floats in the dtype of the first parameter that has one."""
        dtypes = (parameter.dtype for _, parameter in self._named())
        floating = next((dtype for dtype in dtypes if dtype in FLOATS), mindspore.float32)
        return {
            name: mindspore.Tensor(np.ascontiguousarray(array), dtype=floating if array.dtype.kind == "f" else None)
            for name, array in arrays.items()
        }

    def forward(self, arguments: Any, observer: Observer, training: bool) -> Any:
        """Call the cell without compiling it; cells below it report to the observer."""
        os.environ["MS_JIT"] = "0"  # functions that a user has compiled with mindspore.jit would hide their cells
        mindspore.set_context(mode=mindspore.PYNATIVE_MODE)
        self._cell.set_train(training)
        cells = {path: cell for path, cell in self._cell.cells_and_names() if path}
        with objects_followed(observer, cells, "construct", _call):
            return called(self._cell, arguments, self._cell.construct)

    def predictor(self) -> Callable[[Any], Any]:
        """Return the forward pass in evaluation mode, in the mode of execution that the process has: by default as a graph."""
        cell = self._cell.set_train(False)
        return lambda arguments: cell(*in_signature(arguments, cell.construct))

    def _named(self) -> Iterator[tuple[str, Any]]:
        """Yield all parameters by the attributes that lead to them; `Parameter.name` can be any text."""
        yield from _named(self._cell, "")


def _named(cell: Any, path: str) -> Iterator[tuple[str, Any]]:
    for role, parameter in _own(cell):
        yield f"{path}.{role}" if path else role, parameter
    for name, child in cell._cells.items():
        if child is not None:
            yield from _named(child, f"{path}.{name}" if path else name)


def _own(cell: Any) -> list[tuple[str, Any]]:
    return [(role, parameter) for role, parameter in cell._params.items() if parameter is not None]


def _call(path: str, cell: Any) -> Call:
    own = {ROLES.get(role, role): f"{path}.{role}" for role, _ in _own(cell)}
    return Call("", path, type(cell).__name__, *described(cell, _KINDS), tensors=own)


def _padding(cell: Any) -> Any:
    """Return `same`, or the amounts on both sides of every axis; `padding` has one for every side."""
    if cell.pad_mode != "pad":
        return cell.pad_mode
    amounts = cell.padding
    return list(amounts[::2]) if isinstance(amounts, tuple) else amounts


def _convolution(cell: Any) -> dict[str, Any]:
    return {
        "stride": list(cell.stride),
        "padding": _padding(cell),
        "dilation": list(cell.dilation),
        "groups": cell.group,
    }


def _pooling(cell: Any) -> dict[str, Any]:
    is_max = isinstance(cell, (nn.MaxPool1d, nn.MaxPool2d, nn.MaxPool3d))
    counts = getattr(cell, "count_include_pad", True) and cell.pad_mode.lower() == "pad"
    padding = getattr(cell, "padding", 0)
    return {
        "kind": "maximum" if is_max else "mean",
        "window": cell.kernel_size,
        "stride": cell.stride,
        "padding": padding if cell.pad_mode.lower() == "pad" else cell.pad_mode.lower(),
        "size": "up" if getattr(cell, "ceil_mode", False) else "down",
        "mean over": "the window" if counts else "the places that are there",
    }


def _classes(*names: str) -> tuple[Any, ...]:
    """Return the classes of these names that this version has."""
    found = (getattr(nn, name, None) for name in names)
    return tuple(each for each in found if each is not None)


_KINDS: Known = [
    (nn.LayerNorm, "layer_norm", lambda c: {"epsilon": c.epsilon}),
    (nn.GroupNorm, "group_norm", lambda c: {"epsilon": c.eps, "groups": c.num_groups}),
    (
        _classes("BatchNorm1d", "BatchNorm2d", "BatchNorm3d", "SyncBatchNorm"),
        "batch_norm",
        lambda c: {"epsilon": c.eps, "momentum": c.momentum},
    ),
    (nn.Dense, "dense", lambda c: {"activation": type(c.activation).__name__ if c.activation_flag else ""}),
    (_classes("Conv1d", "Conv2d", "Conv3d"), "convolution", _convolution),
    (_classes("Embedding", "EmbeddingLookup"), "embedding", lambda _: {}),
    (nn.GELU, "gelu", lambda c: {"approximate": "tanh" if c.approximate else "none"}),
    (nn.LSTM, "lstm", lambda _: {}),
    (nn.GRU, "gru", lambda _: {}),
    (_classes("MaxPool1d", "MaxPool2d", "AvgPool1d", "AvgPool2d"), "pooling", _pooling),
]
