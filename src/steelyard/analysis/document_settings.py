"""The settings that documents state for their networks, and those of the run that is compared with them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from steelyard.statistics.conditions import Conditions
from steelyard.wording.formatted import NO_VALUE

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from steelyard.analysis.published_tables import Table
    from steelyard.published.gathering import Source

OF_DOCUMENT = ("network", "device", "stated", "assumed", "not stated")
OF_RUN = ("group", "device", "settings")


@dataclass(frozen=True)
class Settings:
    """The settings that a document states for its networks: headings, and one row for every network."""

    title: str
    versions: str
    headings: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


def tables(sources: Iterable[Source], redone: Sequence[Table]) -> tuple[Settings, ...]:
    """Return a table for every document that states settings, and one for this run if it is compared with any."""
    return (*(_of_document(each) for each in sources if each.conditions), *_of_run(redone))


def _of_document(source: Source) -> Settings:
    rows = tuple(_settings_row(each) for each in source.conditions)
    return Settings(f"Settings of {source.cite}", _versions(source.conditions), OF_DOCUMENT, rows)


def _versions(several: Iterable[Conditions]) -> str:
    return "; ".join(dict.fromkeys(each.versions for each in several if each.versions)) or "not stated"


def _of_run(found: Sequence[Table]) -> list[Settings]:
    """Return the settings of this run's groups that are compared with documents; empty if there are none."""
    groups = {row.group: _as_text(row.here) for table in found for row in table.rows if row.here}
    if not groups:
        return []
    rows = tuple((name, *_settings_row(each)[1:3]) for name, each in groups.items())
    return [Settings("Settings of this run", _versions(groups.values()), OF_RUN, rows)]


def _as_text(found: Conditions) -> Conditions:
    """Return the settings of a group with its sizes as text: in a run, a list is one value and not a choice of several."""
    return replace(found, sizes={name: str(value).lower() for name, value in found.sizes.items()})


def _settings_row(found: Conditions) -> tuple[str, ...]:
    """Return the cells of a row: network, device, stated, assumed and unstated settings; without versions."""
    device = Conditions(devices=found.devices, device_names=found.device_names).parts()
    rest = replace(found, versions="", devices=(), device_names="").parts()
    return ", ".join(found.cells), _and(device), _and(rest), _and(found.parts(assumed=True)), _and(found.not_stated)


def _and(parts: Sequence[str]) -> str:
    return ", ".join(parts) or NO_VALUE
