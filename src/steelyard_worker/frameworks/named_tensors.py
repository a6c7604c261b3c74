"""The check that an implementation has exactly the tensors that its network names; every adapter uses it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from steelyard_worker.protocol import Refusal

if TYPE_CHECKING:
    from collections.abc import Mapping

    from steelyard_worker.network import Network


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
