"""What the attributes of an object lead to: modules and tensors, in lists, tuples and dictionaries too."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


def members(module: Any, ignored: Callable[[str], bool] = lambda _: False) -> Iterator[tuple[str, Any]]:
    """Yield what every attribute of one object holds, with its name and the places in containers, such as `layers/0`."""
    for name, value in vars(module).items():
        if not ignored(name):
            yield from parts(name, value)


def modules(
    root: Any, is_module: Callable[[Any], bool], members_of: Callable[[Any], Iterator[tuple[str, Any]]]
) -> dict[str, Any]:
    """Return {path: module} of everything below a module, in the order of its attributes, each object under its first path."""
    found: dict[str, Any] = {}
    seen = {id(root)}

    def visit(path: str, module: Any) -> None:
        for name, value in members_of(module):
            if is_module(value) and id(value) not in seen:
                seen.add(id(value))
                below = f"{path}/{name}" if path else name
                found[below] = value
                visit(below, value)

    visit("", root)
    return found


def replaced(value: Any, new: Callable[[Any], Any]) -> Any:
    """Return a value with everything in its containers replaced; lists and dictionaries are changed in place."""
    if isinstance(value, Mapping):
        for key, part in value.items():
            value[key] = replaced(part, new)  # type: ignore[index]
        return value
    if isinstance(value, list):
        for place, part in enumerate(value):
            value[place] = replaced(part, new)
        return value
    if isinstance(value, tuple):
        filled = [replaced(part, new) for part in value]
        return type(value)(*filled) if hasattr(value, "_fields") else tuple(filled)
    return new(value)


def parts(name: str, value: Any) -> Iterator[tuple[str, Any]]:
    """Yield what a value holds in containers, with the name of the value and the places in them."""
    if isinstance(value, Mapping):
        for key, part in value.items():
            yield from parts(f"{name}/{key}", part)
    elif isinstance(value, (list, tuple)):
        for place, part in enumerate(value):
            yield from parts(f"{name}/{place}", part)
    else:
        yield name, value
