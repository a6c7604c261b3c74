"""What the processes of one certificate have left behind so far, and a candidate held against it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from steelyard.certificates import judge, record
from steelyard.certificates.method import method
from steelyard.errors import UserError
from steelyard.files import atomic
from steelyard_worker import protocol, tensors

if TYPE_CHECKING:
    from collections.abc import Mapping

    from steelyard.certificates.method import Method
    from steelyard.certificates.proceedings import Proceedings, Task
    from steelyard.certificates.tensors import Tensors
    from steelyard_worker.network import Network


@dataclass(frozen=True)
class Evidence:
    """One certificate's folders. `meta`: rounding levels and agreement of its references."""

    proceedings: Proceedings
    meta: dict[str, Any]

    @property
    def network(self) -> Network:
        """The candidate's network."""
        return self.proceedings.subject.network

    @property
    def wanted(self) -> Method:
        """How the candidate's precision is judged."""
        return method(self.proceedings.subject.job.case.settings.precision)

    @property
    def reference(self) -> Tensors:
        """The references' tensors, of the first."""
        return tensors.read(reference_folder(self.proceedings))

    @property
    def candidate(self) -> Tensors:
        """The candidate's tensors, in its own precision."""
        return read(self.proceedings.candidate)

    def hold(
        self, candidate: Tensors, reference: Tensors | None = None, granted: Mapping[str, float] | None = None
    ) -> judge.Judgement:
        """Hold tensors against the references, or against another run of theirs, with relative errors granted besides."""
        against = self.reference if reference is None else reference
        return judge.compare(
            self.network, against, self._scales, candidate, self.wanted, self.meta["agreement"], granted
        )

    def changes(self, task: Task) -> dict[str, float]:
        """Return the relative change of every tensor in a noisy run of the reference."""
        return judge.measure_sums(self.network, self.reference, self._scales, read(task))

    @property
    def _scales(self) -> dict[str, judge.Scale]:
        return {key: judge.Scale(**scale) for key, scale in self.meta["scales"].items()}


def reference_folder(proceedings: Proceedings) -> Path:
    """Return where the references of a certificate are kept."""
    return record.folder() / "references" / proceedings.reference_key[:20]


def read(task: Task, variant: int | None = None) -> Tensors:
    """Return what a task dumped, of its only variant or of the one named; UserError with the reason where it did not."""
    folder = Path(task.job.folder)
    path = next(folder.glob("variant*"), folder / "variant0") if variant is None else folder / f"variant{variant}"
    try:
        return tensors.read(path)
    except (ValueError, OSError) as error:
        refused = refusal(path)
        reason = refused[1] if refused else f"{error}"
        raise UserError(
            f"The float64 reference in {folder} is not there, so nothing can be certified: {reason}"
        ) from None


def is_done(task: Task) -> bool:
    """Say whether a task of one variant has left its tensors."""
    return any(map(atomic.is_whole, Path(task.job.folder).glob("variant*")))


def refusal(dump: Path) -> tuple[str, str] | None:
    """Return (kind, message) of why a process left no such dump, None when it is there."""
    if atomic.is_whole(dump):
        return None
    errors = [event for event in protocol.read_events(dump.parent / protocol.EVENTS) if event["event"] == "error"]
    if errors:
        return errors[-1]["kind"], errors[-1]["message"]
    return "crash", f"The process that should have filled {dump.parent} left no tensors."
