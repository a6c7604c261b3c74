"""What a model of any framework can be asked."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    import numpy as np

    from steelyard_worker.port.observed import Bridge, Observer

FLOAT64 = "float64"


class Updater(Protocol):
    """A user's optimizer. settings: constants that it shows, in words that all frameworks share -> its distinct values."""

    settings: dict[str, list[Any]]

    def apply(self, gradients: Mapping[str, np.ndarray]) -> None:
        """Update the model's tensors once with these gradients, and let a schedule go on by one step."""


class Model(Protocol):
    """A user's own model."""

    kind: str
    bridge: Bridge

    def tensors(self) -> Iterator[tuple[str, Any, bool]]:
        """Yield name, tensor, and whether it is trained, of every parameter and every saved statistic, in the model's order.

        A tensor that two modules share is yielded under each of its names.
        """

    def load(self, arrays: Mapping[str, np.ndarray]) -> None:
        """Replace the values of these tensors, in the dtype that they have."""

    def double(self) -> bool:
        """Compute in float64 from now on; False where the model has to be made again for it."""

    def place(self, arrays: Mapping[str, np.ndarray]) -> dict[str, Any]:
        """Return inputs as tensors of the framework; floats in the dtype of the model."""

    def forward(self, arguments: Any, observer: Observer, training: bool) -> Any:
        """Call the model with a dictionary, a tuple, or one tensor, and return what it returns.

        `training`: in training mode, but without dropout and other random layers; running statistics are updated.
        """

    def prepare_double(self) -> None:
        """Prepare the framework so that a model that is made from now on computes in float64, if it can."""


class Learner(Model, Protocol):
    """A model whose training is followed. A check says of another one that it did not look at these."""

    without_randomness: bool
    """Whether `forward` in training mode does what is said there."""

    def gradients(self, objective: Callable[[Callable[[Any], Any]], Any]) -> tuple[Any, dict[str, Any]]:
        """Return a loss and its gradients for all trained tensors by name, in evaluation mode.

        `objective(run)` returns the loss; `run(arguments)` calls the model.
        """

    def updater(self, made: Callable[[Any], Any]) -> Updater:
        """Return the optimizer that `made` returns for the user's own object."""
