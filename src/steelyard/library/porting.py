"""Check two existing models from a program, for tests of one's own ports."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

from steelyard.analysis import port_findings
from steelyard.console import Screen
from steelyard.errors import UserError

if TYPE_CHECKING:
    from steelyard.results.port_record import PortRecord

SILENCE_S = 600.0


class PortCheck:
    """What a check found. `record`: everything that was compared."""

    def __init__(self, record: PortRecord) -> None:
        self.record = record
        self._verdict = port_findings.verdict(record)

    @property
    def verdict(self) -> str:
        """`equal`, `different` or `unclear`."""
        return self._verdict.state

    @property
    def equal(self) -> bool:
        """Whether the two models have the same weights and compute the same."""
        return self._verdict.state == port_findings.EQUAL

    @property
    def sentences(self) -> tuple[str, ...]:
        """The verdict in words: where the models part, and why."""
        return self._verdict.sentences

    def require(self) -> None:
        """Do nothing if the models are equal. NotEqual: says where they part, and why."""
        if not self.equal:
            raise NotEqual("\n".join(self.sentences))

    def as_dict(self) -> dict[str, Any]:
        """Return the verdict and the record as plain values, as `steelyard port check --json` prints them."""
        return port_findings.json_of(self.record)

    def __repr__(self) -> str:
        """Return the verdict in words."""
        return "\n".join(self.sentences)


class NotEqual(UserError):
    """Two models are not the same."""


def port(folder: str | Path, *, silence_s: float = SILENCE_S) -> PortCheck:
    """Check the two models of a port's folder (`docs/port.md`); nothing but its map.toml is written.

    `silence_s`: how many seconds a side may take for one answer. UserError: the folder or a side does not allow a check.
    """
    from steelyard.ports import check, definition, interpreters

    known = definition.read(Path(folder))
    with closing(Screen()) as screen:
        return PortCheck(check.check(known, interpreters.of(known, screen), screen.say, silence_s))
