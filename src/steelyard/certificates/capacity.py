"""How many processes of certificates run side by side: as many as cores and memory allow, and the disk for what they save."""

import shutil
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Condition

from steelyard.catalog import frameworks
from steelyard.certificates.plan import CertificationPlan, Task
from steelyard.certificates.references import has_reference
from steelyard.plan import memory
from steelyard_worker.case import INFERENCE, Case
from steelyard_worker.network import Network

# Copies of all tensors that a process of an inference holds at once, beside activations.
COPIES_OF_INFERENCE = 5
WIDTHS = {"float64": 2}
# How often a process saves all tensors: gradients, after steps 0, 1, 2 and the last, and before and after the adversarial step.
# Of an inference, before it.
SETS, SETS_OF_INFERENCE = 7, 1


@dataclass(eq=False)
class Place:
    """The memory reserved for a process; `shared`: whether another process was inside in the meantime."""

    needed_bytes: float
    shared: bool = False


class Gate:
    """Admits processes up to a number, while there is memory for them; one that needs all memory waits until it is alone.

    They share `cores`.
    """

    def __init__(self, most: int, free_bytes: float, cores: int) -> None:
        self._most, self._free_bytes, self._cores = most, free_bytes, cores
        self._inside = list[Place]()
        self._changed = Condition()

    @property
    def whole(self) -> float:
        """The memory to request for a process that must run alone."""
        return self._free_bytes

    @contextmanager
    def room(self, needed_bytes: float) -> Iterator[Place]:
        """Wait until there is room for a process, and keep it until the end of the block."""
        own = Place(needed_bytes)
        with self._changed:
            self._changed.wait_for(lambda: self._has_room(needed_bytes))
            self._inside.append(own)
            for place in self._inside if len(self._inside) > 1 else ():
                place.shared = True
        try:
            yield own
        finally:
            with self._changed:
                self._inside.remove(own)
                self._changed.notify_all()

    def cores(self, needed_bytes: float) -> int:
        """Return how many cores a process may use: its share if as many of its size run side by side as there is room for."""
        together = min(self._most, max(1, int(self._free_bytes // needed_bytes)))
        return max(1, self._cores // together)

    def _has_room(self, needed_bytes: float) -> bool:
        if not self._inside:
            return True
        taken = sum(place.needed_bytes for place in self._inside)
        return len(self._inside) < self._most and taken + needed_bytes <= self._free_bytes


class Disk:
    """Lets groups in while the disk of a folder has room for all that their processes save."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._changed = folder, Condition()
        self._free_bytes = 0
        self._inside = list[int]()

    @contextmanager
    def room(self, needed_bytes: int) -> Iterator[int]:
        """Wait until there is room for a group, or none is inside; yields the bytes that are free for it."""
        with self._changed:
            self._changed.wait_for(lambda: not self._inside or needed_bytes <= self._left())
            if not self._inside:
                self._free_bytes = self.free_bytes()
            left = self._left()
            self._inside.append(needed_bytes)
        try:
            yield left
        finally:
            with self._changed:
                self._inside.remove(needed_bytes)
                self._changed.notify_all()

    def free_bytes(self) -> int:
        """Return how much of the disk is free, whatever is reserved."""
        return shutil.disk_usage(self._folder).free

    def _left(self) -> int:
        return max(0, self._free_bytes - sum(self._inside))


def saved_bytes(plans: Iterable[CertificationPlan], network: Network) -> int:
    """Return about how much the first processes of certificates of one network save, before anything of it is deleted.

    References that are not cached are written once more, when they are summarised.
    """
    plans = list(plans)
    unknown = {plan.reference_key: plan for plan in plans if not has_reference(plan)}
    tasks = {plan.candidate_task.job.folder: plan.candidate_task for plan in plans}
    tasks |= {task.job.folder: task for plan in unknown.values() for task in plan.reference_tasks}
    summaries = [plan.reference_tasks[0] for plan in unknown.values()]
    return sum(_saves(task, network) for task in (*tasks.values(), *summaries))


def next_part(
    plans: Mapping[str, CertificationPlan], network: Network, free_bytes: int
) -> dict[str, CertificationPlan]:
    """Return the plans that are certified next: all of them if the disk has room for what they save.

    Else as many of one reference as there is room for, at least one. Optimizers whose update rules have another form in each
    framework, such as Adam, need a reference for each form. References stay on the disk, so the next part is chosen when this
    one has ended.
    """
    if saved_bytes(plans.values(), network) <= free_bytes:
        return dict(plans)
    first = next(iter(plans.values())).reference_key
    part: dict[str, CertificationPlan] = {}
    for name, plan in plans.items():
        if plan.reference_key != first:
            continue
        if part and saved_bytes([*part.values(), plan], network) > free_bytes:
            break
        part[name] = plan
    return part


def _saves(task: Task, network: Network) -> int:
    case, most = task.job.case, task.job.certify.sample
    scalars = sum(min(each.count, most or each.count) for each in network.parameters)
    sets = SETS_OF_INFERENCE if case.task == INFERENCE else SETS
    return memory.FLOAT * WIDTHS.get(case.settings.precision, 1) * scalars * sets


def needed_bytes(case: Case, network: Network) -> int:
    """Return the estimated peak memory of a process that computes a certificate's tensors of a case."""
    activations = memory.needed_bytes(network, case.optimizer, case.batch) - memory.needed_bytes(
        network, case.optimizer, 0
    )
    tensors = memory.FLOAT * sum(each.count for each in network.parameters)
    trains = case.task != INFERENCE
    copies = frameworks.framework(case.framework).certificate_copies if trains else COPIES_OF_INFERENCE
    return memory.PROCESS_BYTES + WIDTHS.get(case.settings.precision, 1) * (copies * tensors + activations)
