"""Letting an observer follow modules: their method is replaced on each object, or `__call__` on each of their classes."""

from __future__ import annotations

import contextlib
import functools
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from steelyard_worker.port.observed import Call, Observer


def followed(
    observer: Observer, call: Call, function: Callable[..., Any], arguments: tuple[Any, ...], named: dict[str, Any]
) -> Any:
    """Call a module's function; the observer sees, and may replace, what it receives and what it returns."""
    arguments, named = observer.entered(call, (arguments, named))
    try:
        result = function(*arguments, **named)
    except BaseException:
        observer.failed()
        raise
    return observer.left(result)


@contextlib.contextmanager
def objects_followed(
    observer: Observer, modules: Mapping[str, Any], method: str, call_of: Callable[[str, Any], Call]
) -> Iterator[None]:
    """Follow a method that is looked up on the objects themselves. `modules`: path -> object, each object once."""

    def replacement(path: str, module: Any, original: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(original)
        def replaced(*arguments: Any, **named: Any) -> Any:
            return followed(observer, call_of(path, module), original, arguments, named)

        return replaced

    own = {path: module.__dict__[method] for path, module in modules.items() if method in module.__dict__}
    for path, module in modules.items():
        module.__dict__[method] = replacement(path, module, getattr(module, method))
    try:
        yield
    finally:
        for path, module in modules.items():
            module.__dict__.pop(method)
            if path in own:
                module.__dict__[method] = own[path]


@contextlib.contextmanager
def classes_followed(
    observer: Observer, classes: Iterable[type], path_of: Callable[[Any], str], call_of: Callable[[str, Any], Call]
) -> Iterator[None]:
    """Follow `__call__`, which Python looks up on classes. `path_of(object)` is empty for an object that is not followed.

    A class whose `__call__` calls that of its parent is one call: the object is followed until its first `__call__` returns.
    """
    open_objects: list[Any] = []

    def follow(module: Any, function: Callable[..., Any], arguments: tuple[Any, ...], named: dict[str, Any]) -> Any:
        path = path_of(module)
        if not path or (open_objects and open_objects[-1] is module):
            return function(*arguments, **named)
        open_objects.append(module)
        try:
            return followed(observer, call_of(path, module), function, arguments, named)
        finally:
            open_objects.pop()

    owners = {owner for each in classes for owner in each.__mro__ if "__call__" in owner.__dict__}
    originals = {owner: owner.__dict__["__call__"] for owner in owners}
    try:
        for owner, original in originals.items():
            type.__setattr__(owner, "__call__", _passed_to(follow, original))
        yield
    finally:
        for owner, original in originals.items():
            type.__setattr__(owner, "__call__", original)


def _passed_to(follow: Callable[..., Any], original: Any) -> Callable[..., Any]:
    """Return a method that passes itself, as it would be called, and its arguments to `follow`."""

    @functools.wraps(getattr(original, "__wrapped__", original), updated=())
    def replaced(self: Any, *arguments: Any, **named: Any) -> Any:
        # The original is a descriptor, such as that of a compiled function.
        return follow(self, original.__get__(self, type(self)), arguments, named)

    return replaced
