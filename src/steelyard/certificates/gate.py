"""How many processes of certificates run side by side: as many as cores and memory allow."""

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Condition

from steelyard.plan import memory
from steelyard_worker.case import Case
from steelyard_worker.network import Network

# What a process holds at once, relative to one that trains: gradients, and all tensors after several steps and with other
# weights, until they are saved. BERT-base in float64 ran out of memory at 3.3 in PyTorch and at 4.0 in TensorFlow.
HELD = 4.5
WIDTHS = {"float64": 2}


class Gate:
    """Lets processes in while there is room for them; one that needs all of it waits until it is alone."""

    def __init__(self, most: int, free_bytes: float) -> None:
        self._most, self._free_bytes = most, free_bytes
        self._inside = list[int]()
        self._changed = Condition()

    @contextmanager
    def room(self, needed_bytes: int) -> Iterator[None]:
        """Wait until there is room for a process, and keep it until the end of the block."""
        with self._changed:
            self._changed.wait_for(lambda: self._has_room(needed_bytes))
            self._inside.append(needed_bytes)
        try:
            yield
        finally:
            with self._changed:
                self._inside.remove(needed_bytes)
                self._changed.notify_all()

    def _has_room(self, needed_bytes: int) -> bool:
        if not self._inside:
            return True
        return len(self._inside) < self._most and sum(self._inside) + needed_bytes <= self._free_bytes


def needed_bytes(case: Case, network: Network) -> int:
    """Return the estimated peak memory of a process that computes a certificate's tensors of a case."""
    training = memory.needed_bytes(network, case.optimizer, case.batch) - memory.PROCESS_BYTES
    return memory.PROCESS_BYTES + round(HELD * WIDTHS.get(case.settings.precision, 1) * training)
