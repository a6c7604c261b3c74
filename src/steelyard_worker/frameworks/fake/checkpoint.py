"""A made-up format of weights: an archive with names by "/" and axes in reverse order."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from steelyard_worker import checkpoints

if TYPE_CHECKING:
    from pathlib import Path

    from steelyard_worker.frameworks.base import Array
    from steelyard_worker.network import Network


def read(network: Network, path: Path) -> dict[str, Array]:
    """Return the tensors of a file, canonical. Raises Refusal."""
    with np.load(path, allow_pickle=False) as archive:
        held = {name: archive[name] for name in archive.files}
    own = {parameter.name.replace(".", "/"): parameter for parameter in network.parameters}
    shapes = {name: array.shape for name, array in held.items()}
    checkpoints.check(path, {name: tuple(reversed(each.shape)) for name, each in own.items()}, shapes, "Fake")
    return {each.name: np.ascontiguousarray(held[name].T) for name, each in own.items()}
