"""MXNet: any Gluon Block or HybridBlock. Blocks are not compiled, and followed by replacing the `forward` of each."""

from __future__ import annotations

import functools
import inspect
from typing import TYPE_CHECKING, Any

import mxnet as mx
import numpy as np
from mxnet.gluon import nn, rnn

from steelyard_worker.port.calling import called, in_order
from steelyard_worker.port.errors import SideError
from steelyard_worker.port.following import objects_followed
from steelyard_worker.port.kinds import described
from steelyard_worker.port.observed import Bridge, Call

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from steelyard_worker.port.kinds import Known
    from steelyard_worker.port.observed import Observer

FLOATS = (np.dtype("float16"), np.dtype("float32"), np.dtype("float64"))


def _array(tensor: Any) -> np.ndarray:
    return tensor.asnumpy()


def _tensor(array: np.ndarray, dtype: Any, context: Any, in_numpy_style: bool) -> Any:
    make = mx.np.array if in_numpy_style else mx.nd.array
    return make(np.ascontiguousarray(array), dtype=dtype, ctx=context)


def _like(array: np.ndarray, example: Any) -> Any:
    return _tensor(array, example.dtype, example.context, isinstance(example, mx.np.ndarray))


class GluonBlock:
    """A mxnet.gluon.Block."""

    kind = "mxnet.gluon.Block"

    def __init__(self, block: Any) -> None:
        self._block = block
        if isinstance(block, mx.gluon.HybridBlock):
            block.hybridize(active=False)  # a compiled block calls no other
        self.bridge = Bridge(lambda value: isinstance(value, mx.nd.NDArray), _array, _like)
        for name, parameter in self._named().items():
            _data(name, parameter)  # SideError: it has no values yet

    def tensors(self) -> Iterator[tuple[str, Any, bool]]:
        """Yield all parameters by the attributes that lead to them."""
        for name, parameter in self._named().items():
            yield name, _data(name, parameter), parameter.grad_req != "null"

    def load(self, arrays: Mapping[str, np.ndarray]) -> None:
        """Set the data of parameters."""
        named = self._named()
        for name, array in arrays.items():
            old = _data(name, named[name])
            named[name].set_data(_like(np.asarray(array).reshape(old.shape), old))

    def double(self) -> bool:
        """Convert all parameters to float64."""
        self._block.cast("float64")
        return True

    def place(self, arrays: Mapping[str, np.ndarray]) -> dict[str, Any]:
        """Return arrays on the device of the block; floats in the dtype of its first parameter that has one."""
        known = [tensor for _, tensor, _ in self.tensors() if np.dtype(tensor.dtype) in FLOATS]
        dtype, context = (known[0].dtype, known[0].context) if known else (np.float32, mx.cpu())
        in_numpy_style = mx.util.is_np_array()
        return {
            name: _tensor(array, dtype if array.dtype.kind == "f" else array.dtype, context, in_numpy_style)
            for name, array in arrays.items()
        }

    def forward(self, arguments: Any, observer: Observer, training: bool) -> Any:
        """Call the block; blocks below it report to the observer."""
        mode = mx.autograd.train_mode() if training else mx.autograd.predict_mode()
        blocks = dict(_blocks(self._block, ""))
        with mode, objects_followed(observer, blocks, "forward", _call):
            if isinstance(arguments, dict):
                arguments = _by_place(self._block, arguments)
            return called(self._block, arguments, self._block.forward)

    def predictor(self) -> Callable[[Any], Any]:
        """Return the forward pass in evaluation mode; a block that can be compiled is hybridized."""
        block = self._block
        if isinstance(block, mx.gluon.HybridBlock):
            block.hybridize(static_alloc=True, static_shape=True)

        def run(arguments: Any) -> Any:
            with mx.autograd.predict_mode():
                return block(*(_by_place(block, arguments) if isinstance(arguments, dict) else in_order(arguments)))

        return run

    def _named(self) -> dict[str, Any]:
        return self._block._collect_params_with_prefix()


@functools.lru_cache(maxsize=16)
def _names(block: Any) -> tuple[str, ...]:
    """Return the names of the inputs of a class of blocks."""
    method = getattr(block, "hybrid_forward", None)
    is_hybrid = block.forward is mx.gluon.HybridBlock.forward and method is not None
    return tuple(inspect.signature(method if is_hybrid else block.forward).parameters)[2 if is_hybrid else 1 :]


def _by_place(block: Any, arguments: dict[str, Any]) -> tuple[Any, ...]:
    """Return the inputs as `forward` takes them: Gluon passes arguments by their places alone."""
    names = _names(type(block))
    if set(arguments) <= set(names):
        return tuple(arguments[name] for name in names if name in arguments)
    return tuple(arguments.values())


def _data(name: str, parameter: Any) -> Any:
    try:
        return parameter.data()
    except (mx.gluon.parameter.DeferredInitializationError, RuntimeError):
        raise SideError(
            f"The parameter '{name}' has no values yet. Let model() initialise the block, load its parameters, and call it once."
        ) from None


def _blocks(block: Any, path: str) -> Iterator[tuple[str, Any]]:
    """Yield every block below another with its path, each once."""
    seen: set[int] = set()
    todo = [(f"{path}{name}", child) for name, child in block._children.items()]
    while todo:
        path, each = todo.pop(0)
        if id(each) not in seen:
            seen.add(id(each))
            yield path, each
            todo += [(f"{path}.{name}", child) for name, child in each._children.items()]


def _call(path: str, block: Any) -> Call:
    own = {role: f"{path}.{role}" for role in block._reg_params}
    return Call("", path, type(block).__name__, *described(block, _KINDS), tensors=own)


def _dense(block: Any) -> dict[str, Any]:
    return {"activation": block.act._act_type if block.act is not None else ""}


def _convolution(block: Any) -> dict[str, Any]:
    own = block._kwargs
    return {
        "stride": list(own["stride"]),
        "padding": list(own["pad"]),
        "dilation": list(own["dilate"]),
        "groups": own["num_group"],
        **_dense(block),
    }


def _pooling(block: Any) -> dict[str, Any]:
    own = block._kwargs
    return {
        "kind": "maximum" if own["pool_type"] == "max" else "mean",
        "window": list(own["kernel"]),
        "stride": list(own["stride"]),
        "padding": list(own["pad"]),
        "size": "up" if own["pooling_convention"] == "full" else "down",
        "mean over": "the window" if own.get("count_include_pad", True) else "the places that are there",
    }


_KINDS: Known = [
    (nn.LayerNorm, "layer_norm", lambda b: {"epsilon": b._epsilon}),
    (nn.GroupNorm, "group_norm", lambda b: {"epsilon": b._kwargs["eps"], "groups": b._kwargs["num_groups"]}),
    (
        nn.BatchNorm,
        "batch_norm",
        lambda b: {"epsilon": b._kwargs["eps"], "momentum": 1 - b._kwargs["momentum"]},
    ),
    (nn.Dense, "dense", _dense),
    ((nn.Conv1D, nn.Conv2D, nn.Conv3D), "convolution", _convolution),
    (nn.Embedding, "embedding", lambda _: {}),
    (nn.GELU, "gelu", lambda _: {"approximate": "none"}),
    (rnn.LSTM, "lstm", lambda _: {}),
    (rnn.GRU, "gru", lambda _: {}),
]
