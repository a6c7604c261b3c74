"""The contract between the worker and a framework. `frameworks/<name>/adapter.py` has a class `Adapter` that meets it.

What a framework cannot do is refused with `Refusal("unsupported", ...)`; nothing is silently left out.
"""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from steelyard_worker import frameworks

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from types import ModuleType

    import numpy as np

    from steelyard_worker.batches import Batch, Source
    from steelyard_worker.case import Optimizer, Settings
    from steelyard_worker.network import Network

    Array = np.ndarray[Any, Any]


class Trainer(Protocol):
    """One network with its weights and its optimizer, in the framework's own tensors.

    Canonical arrays go in and come out as NumPy; between `put` and `losses` nothing is read back to the host.
    """

    def put(self, batch: Batch) -> Any:
        """Copy a canonical batch to the device, in the framework's own layout and index types.

        A later change of the arrays must not change what was placed.
        """

    def step(self, batch: Any) -> Any:
        """Do one optimizer step (forward in training mode, backward, update, statistics); return the loss, unread."""

    def synchronise(self) -> None:
        """Wait until every step issued so far has finished, its updated parameters included."""

    def losses(self, handles: list[Any]) -> Array:
        """Read losses returned by `step` back to the host: float32 (steps,)."""

    def gradients(self, batch: Any) -> tuple[dict[str, Array], float, dict[str, Array]]:
        """Forward in training mode and backward, no update: (outputs, loss, gradient of every trainable tensor).

        The trainer is thrown away afterwards, so statistics may change.
        """

    def outputs(self, batch: Any) -> dict[str, Array]:
        """Forward in inference mode."""

    def state(self) -> dict[str, Array]:
        """Every tensor the network names, statistics included, canonical."""


class Adapter(Protocol):
    """One framework in this process. The constructor sets environment variables, imports it and applies settings."""

    def __init__(self, settings: Settings) -> None: ...

    def applied(self) -> dict[str, Any]:
        """Read every setting back from the framework: mode, device, threads, precision, deterministic, each knob."""

    def libraries(self) -> dict[str, Any]:
        """Say what does the work: framework version, BLAS/oneDNN build, CPU features used, CUDA, NumPy."""

    def trainer(
        self, implementation: ModuleType, sizes: dict[str, Any], network: Network, weights: Mapping[str, Array],
        optimizer: Optimizer,
    ) -> Trainer:  # fmt: skip
        """Build the network of `workloads/<workload>/<framework>.py` and load the canonical weights into it."""

    def pipeline(self, trainer: Trainer, source: Source, workers: int) -> Iterator[Any]:
        """Feed device-ready batches 0, 1, 2, ... of the source through the framework's own input pipeline."""

    def compilations(self) -> int:
        """Compilations, traces and retraces so far: none may happen in a counted block."""

    def peak_bytes(self) -> int | None:
        """Peak device memory by the framework's own counter; None where it keeps none (CPU)."""


def load(name: str, settings: Settings, folder: str = "") -> Adapter:
    """Import the adapter of a framework and construct it.

    `folder` is that of a framework of the user's own. It becomes the package `steelyard_worker.frameworks.<name>`, so its
    files import each other in the same way as those of a built-in framework; built-in packages are found first.
    """
    if folder:
        frameworks.__path__.append(str(Path(folder).parent))
    adapter: Adapter = importlib.import_module(f"{frameworks.__name__}.{name}.adapter").Adapter(settings)
    return adapter
