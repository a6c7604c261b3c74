"""How a user's model is called with named inputs."""

from __future__ import annotations

import functools
import inspect
from typing import TYPE_CHECKING, Any

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
