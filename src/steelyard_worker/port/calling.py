"""How a user's model is called with named inputs."""

from __future__ import annotations

import functools
import inspect
from typing import TYPE_CHECKING, Any

from steelyard_worker.port.errors import SideError

if TYPE_CHECKING:
    from collections.abc import Callable


def called(model: Callable[..., Any], arguments: Any, signature_of: Callable[..., Any]) -> Any:
    """Call a model with one tensor, a tuple, or a dictionary: by name where the signature has the names, else in their order."""
    if isinstance(arguments, tuple):
        return model(*arguments)
    if not isinstance(arguments, dict):
        return model(arguments)
    return model(**arguments) if _takes(signature_of, *arguments) else model(*arguments.values())


@functools.lru_cache(maxsize=64)  # reading a signature takes longer than a small model
def _takes(function: Callable[..., Any], *names: str) -> bool:
    parameters = inspect.signature(function).parameters
    takes_any = any(each.kind is inspect.Parameter.VAR_KEYWORD for each in parameters.values())
    return takes_any or all(name in parameters for name in names)


def in_signature(arguments: Any, function: Callable[..., Any]) -> tuple[Any, ...]:
    """Return arguments without names as a function takes them: by its own names where it has all, else in their order."""
    if not isinstance(arguments, dict):
        return in_order(arguments)
    names = _names(function)
    return (
        tuple(arguments[name] for name in names if name in arguments)
        if set(arguments) <= set(names)
        else in_order(arguments)
    )


@functools.lru_cache(maxsize=64)
def _names(function: Callable[..., Any]) -> tuple[str, ...]:
    return tuple(inspect.signature(function).parameters)


def in_order(arguments: Any) -> tuple[Any, ...]:
    """Return one tensor, a tuple, or the values of a dictionary as arguments without names."""
    if isinstance(arguments, dict):
        return tuple(arguments.values())
    return arguments if isinstance(arguments, tuple) else (arguments,)


def check_callable(module: Any, advice: str) -> None:
    """Refuse a module that cannot be called. `advice`: what to do, as a sentence."""
    if not callable(module):
        raise SideError(f"The module {type(module).__name__} has no __call__. {advice}")


def mode_of(function: Callable[..., Any], training: bool) -> dict[str, Any]:
    """Return the arguments with which a function is told its mode, under the names that it has for them."""
    names = inspect.signature(function).parameters
    values = {"train": training, "training": training, "is_training": training, "deterministic": not training}
    return {name: value for name, value in values.items() if name in names}
