"""The kinds of models that a side may return, each with one file here, and how one is recognised."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from steelyard_worker.port.errors import SideError

if TYPE_CHECKING:
    from steelyard_worker.port.objects.base import Model

KNOWN = "a torch.nn.Module, a Keras model, a Flax linen module with its variables, or a function with its parameters"

# What an object of any other framework needs, in a class of the user's own: the methods of `base.Model`.
OWN = ("tensors", "load", "double", "place", "forward")


def wrap(value: Any) -> Model:
    """Return a model of any known kind behind one interface. SideError: it is none.

    A class that is an instance of a framework's own has imported that framework, so nothing is imported to find out.
    """
    torch, keras = sys.modules.get("torch"), sys.modules.get("keras")
    if keras is not None and isinstance(value, keras.Model):
        from steelyard_worker.port.objects.keras_model import KerasModel

        return KerasModel(value)
    if torch is not None and isinstance(value, torch.nn.Module):
        from steelyard_worker.port.objects.torch_module import TorchModule

        return TorchModule(value)
    if "jax" in sys.modules:
        from steelyard_worker.port.objects import jax_models

        if (model := jax_models.wrap(value)) is not None:
            return model
    if all(callable(getattr(value, name, None)) for name in OWN):
        model: Model = value
        return model
    raise SideError(f"model() returned a {type(value).__name__}, which is not {KNOWN}. Return one of these.")
