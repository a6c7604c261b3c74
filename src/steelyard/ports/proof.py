"""What a port check proves of the two contenders that a run times, in the place of their certificates."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from steelyard.analysis import port_findings
from steelyard.errors import UserError
from steelyard.files import atomic
from steelyard.results import port_record

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from steelyard.results.port_record import PortRecord


def require(record: PortRecord) -> None:
    """UserError: the two models are not the same, so that their times would be of two computations."""
    found = port_findings.verdict(record)
    if found.state != port_findings.EQUAL:
        raise UserError(
            f"{found.sentences[0]} Times of two computations that differ decide nothing. For all that was found: steelyard port "
            f"check. To time them all the same, without a verdict: --no-certify."
        )


def certificates(folder: Path, cases: Iterable[str]) -> dict[str, dict[str, Any]]:
    """Return {case id: what was proved} from the record of a port check in a run's folder; empty without one."""
    if not (folder / port_record.FILE).is_file():
        return {}
    record = port_record.read(folder)
    found = port_findings.verdict(record)
    proved = {
        "passed": found.state == port_findings.EQUAL,
        "key": atomic.key(port_record.as_dict(record)),
        "by": port_record.PORT_CHECK,
        "sentence": " ".join(found.sentences),
        "declared": "",
        "parameters": record.left.parameters,
        "models": {side.name: f"{side.kind}, {side.tensors} tensors" for side in (record.left, record.right)},
        "losses": [],
        "loss_limits": [],
    }
    return dict.fromkeys(cases, proved)
