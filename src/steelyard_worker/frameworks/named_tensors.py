"""The check that an implementation has exactly the tensors that its network names; every adapter uses it."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, TypeVar

from steelyard_worker.protocol import Refusal

if TYPE_CHECKING:
    from collections.abc import Mapping

    from steelyard_worker.network import Network


Tensor = TypeVar("Tensor")


def distinct(network: Network, named: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return every tensor once where several modules share it: under the name that network.py lists.

    `named`: the tensors of an implementation by canonical name. Raises `Refusal` if network.py lists a shared tensor twice,
    because frameworks that make their tensors from that list would have two.
    """
    names: dict[int, list[str]] = defaultdict(list)
    for name, tensor in named.items():
        names[id(tensor)].append(name)
    expected = {parameter.name for parameter in network.parameters}
    return {name: named[name] for name in (_listed(shared, expected) for shared in names.values())}


def _listed(shared: list[str], expected: set[str]) -> str:
    """Return which name of one tensor is listed; the first if none is."""
    listed = [name for name in shared if name in expected]
    if len(listed) > 1:
        message = (
            f"Tensor {listed[1]} of the implementation is the same tensor as {listed[0]}; list it once in network.py."
        )
        raise Refusal("implementation", message)
    return (listed or shared)[0]


def check(network: Network, shapes: Mapping[str, tuple[int, ...]]) -> None:
    """Refuse an implementation with a missing tensor, an extra one, or one of another shape.

    `shapes` maps the canonical name of every tensor that the implementation has to its shape in canonical layout.
    """
    expected = {parameter.name: parameter.shape for parameter in network.parameters}
    for name in sorted(expected.keys() ^ shapes.keys()):
        if name in expected:
            raise Refusal("implementation", f"The implementation has no tensor {name}, which network.py lists.")
        raise Refusal("implementation", f"The implementation has a tensor {name}, which network.py does not list.")
    for name, shape in expected.items():
        if tuple(shapes[name]) != shape:
            message = f"Tensor {name} of the implementation has shape {tuple(shapes[name])}; network.py says {shape}."
            raise Refusal("implementation", message)
