"""Files of weights that a framework has written: what their readers share.

An adapter loads such a file into the network by the framework's own means, and returns the tensors that it then has. So layouts
are converted by the code that is certified.
"""

from __future__ import annotations

from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from steelyard_worker import tensors, weight_names
from steelyard_worker.protocol import Refusal

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from steelyard_worker.frameworks.base import Array
    from steelyard_worker.network import Network
    from steelyard_worker.protocol import Job

KIND = "checkpoint"


def write(job: Job, network: Network, read: Callable[[Path], Mapping[str, Array]]) -> None:
    """Write the tensors of a checkpoint, canonical float32, into the folder of the job."""
    path = Path(job.weights)
    with explained(path):
        found = read(path)
    arrays = {each.name: np.asarray(found[each.name], np.float32) for each in network.parameters}
    tensors.write(Path(job.folder), arrays)


@contextmanager
def explained(path: Path) -> Iterator[None]:
    """Turn every error of a framework that reads a file into one sentence."""
    try:
        yield
    except (Refusal, MemoryError):
        raise
    except Exception as error:  # a damaged file can raise anything in a framework's reader
        reason = " ".join(str(error).split())[:200] or type(error).__name__
        raise refusal(path, f"cannot be read ({reason}); it is damaged, truncated or no such file") from error


def refusal(path: Path, what: str) -> Refusal:
    """Return the refusal of a file; `what` goes on after its name."""
    return Refusal(KIND, f"{path.name} {what}.")


def check(path: Path, needed: Mapping[str, tuple[int, ...]], held: Mapping[str, tuple[int, ...]], title: str) -> None:
    """Refuse a file whose tensors are not those that the implementation in a framework has; shapes are the framework's."""
    owner = f"the implementation in {title}"
    if found := weight_names.differences(needed, held, owner):
        raise Refusal(KIND, " ".join([f"{path.name} does not fit {owner}.", *found]))


def check_value(path: Path, name: str, loaded: Array, held: Array) -> None:
    """Refuse a tensor that float32 cannot hold as it is in the file."""
    if not np.array_equal(np.asarray(loaded, np.float64), np.asarray(held, np.float64), equal_nan=True):
        raise refusal(path, f"has values in '{name}' that float32 cannot hold; round them to float32 before saving")


def check_unnamed(path: Path, name: str, usual: Any, held: Any) -> None:
    """Refuse a file that sets a tensor of the implementation which the network does not name, as it would be lost."""
    if not np.array_equal(np.asarray(usual), np.asarray(held)):
        raise refusal(
            path,
            f"sets '{name}', which no tensor of the network stands for, so it would be lost; of an LSTM with two biases, add "
            "the second to the first and save zeros in its place",
        )
