"""The kinds of models that a side may return, each with one file here, and how one is recognised."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from steelyard_worker.port.errors import SideError

if TYPE_CHECKING:
    from steelyard_worker.port.objects.base import Model

KNOWN = (
    "a module of PyTorch, TensorFlow, MindSpore, Gluon, Flax NNX or Equinox, a Keras model, an ONNX file, a module of "
    "Flax linen or a transformed function of Haiku with its parameters, or a function with its parameters"
)

# What an object of any other framework needs, in a class of the user's own: the methods of `base.Model`.
OWN = ("tensors", "load", "double", "place", "forward")


def wrap(value: Any) -> Model:
    """Return a model of any known kind behind one interface. SideError: it is none.

    A class that is an instance of a framework's own has imported that framework, so nothing is imported to find out.
    """
    for recognised in (_of_keras, _of_torch, _of_tensorflow, _of_mindspore, _of_mxnet, _of_onnx, _of_jax):
        if (model := recognised(value)) is not None:
            return model
    if not isinstance(value, type) and all(callable(getattr(value, name, None)) for name in OWN):
        own: Model = value
        return own
    raise SideError(f"model() returned {_words(value)}, which is not {KNOWN}. Return one of these.")


def _words(value: Any) -> str:
    """Return what a value is: a class itself, the parts of a tuple, or the class of an object."""
    if isinstance(value, type):
        return f"the class {value.__name__} itself"
    if type(value) is tuple:
        return f"({', '.join(type(part).__name__ for part in value)})"
    return f"a {type(value).__name__}"


def _of_keras(value: Any) -> Model | None:
    keras = sys.modules.get("keras")
    if keras is None or not isinstance(value, keras.Model):
        return None
    from steelyard_worker.port.objects.keras_model import KerasModel

    return KerasModel(value)


def _of_torch(value: Any) -> Model | None:
    torch = sys.modules.get("torch")
    if torch is None or not isinstance(value, torch.nn.Module):
        return None
    from steelyard_worker.port.objects.torch_module import TorchModule

    return TorchModule(value)


def _of_tensorflow(value: Any) -> Model | None:
    tensorflow = sys.modules.get("tensorflow")
    if tensorflow is None or not isinstance(value, tensorflow.Module):
        return None
    from steelyard_worker.port.objects.tf_module import TFModule

    return TFModule(value)


def _of_mindspore(value: Any) -> Model | None:
    mindspore = sys.modules.get("mindspore")
    if mindspore is None or not isinstance(value, mindspore.nn.Cell):
        return None
    from steelyard_worker.port.objects.mindspore_cell import MindSporeCell

    return MindSporeCell(value)


def _of_mxnet(value: Any) -> Model | None:
    mxnet = sys.modules.get("mxnet")
    if mxnet is None or not isinstance(value, mxnet.gluon.Block):
        return None
    from steelyard_worker.port.objects.gluon_block import GluonBlock

    return GluonBlock(value)


def _of_onnx(value: Any) -> Model | None:
    onnx = sys.modules.get("onnx")
    is_path = isinstance(value, (str, Path)) and str(value).endswith(".onnx")
    if not is_path and (onnx is None or not isinstance(value, onnx.ModelProto)):
        return None
    try:
        from steelyard_worker.port.objects.onnx_model import OnnxModel
    except ModuleNotFoundError as error:
        raise SideError(
            f"An ONNX model needs the packages onnx and onnxruntime, and '{error.name}' is missing. Use framework = "
            '"onnxruntime", or name what is missing in requirements.'
        ) from None
    return OnnxModel(value)


def _of_jax(value: Any) -> Model | None:
    if "jax" not in sys.modules:
        return None
    from steelyard_worker.port.objects import jax_models

    return jax_models.wrap(value)
