"""Records of a contender beside the rounds, from processes of their own: profiles, the graph of its step, its exchange."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from steelyard.errors import UserError
from steelyard.profiles import graphs, recorded
from steelyard.results import communication

if TYPE_CHECKING:
    from pathlib import Path

    from steelyard.plan.run_plan import Variant
    from steelyard.profiles.graphs import Counted
    from steelyard.profiles.recorded import Explained
    from steelyard.results.communication import Communication


@dataclass(frozen=True)
class SideRecords:
    """The records of one contender. `profiles`: by number.

    `not_profiled`, `no_graph` and `no_communication` say why something is missing; empty if it is there, or was not asked for.
    """

    profiles: dict[int, Explained] = field(default_factory=dict)
    not_profiled: str = ""
    graphs: tuple[Counted, ...] = ()
    no_graph: str = ""
    communication: Communication | None = None
    no_communication: str = ""


def read(folder: Path, variant: Variant) -> SideRecords:
    """Read the records of a contender from the folder of its run."""
    profiles, not_profiled = _profiles(folder, variant)
    counted, no_graph = _graphs(folder, variant)
    exchanged, no_communication = _communication(folder, variant)
    return SideRecords(profiles, not_profiled, counted, no_graph, exchanged, no_communication)


def _profiles(folder: Path, variant: Variant) -> tuple[dict[int, Explained], str]:
    profiles: dict[int, Explained] = {}
    reason = ""
    for number in recorded.numbers(folder, variant.file_name):
        try:
            profile = recorded.read(folder, variant.file_name, number)
        except UserError as error:
            reason = reason or str(error)
        else:
            profiles |= {number: profile} if profile else {}
    return profiles, "" if profiles else reason


def _graphs(folder: Path, variant: Variant) -> tuple[tuple[Counted, ...], str]:
    try:
        return graphs.read(folder, variant.file_name), ""
    except UserError as error:
        return (), str(error)


def _communication(folder: Path, variant: Variant) -> tuple[Communication | None, str]:
    try:
        return communication.read(folder, variant.file_name), ""
    except UserError as error:
        return None, str(error)
