"""The settings of a published value: those of its machine, its network and its entry."""

from __future__ import annotations

from typing import TYPE_CHECKING

from steelyard.statistics.conditions import TF32, Conditions

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from steelyard.published.documents import Document, Entry, Setup, Value

PRECISIONS = ("float16", "bfloat16", TF32, "float32", "float64")


def conditions(document: Document, entry: Entry, values: Sequence[Value]) -> tuple[Conditions, ...]:
    """Return the settings of a statement that follows from values of an entry: one for its cell or for every network it may mean.

    A statement without a machine is general and has no settings. `values`: one, or two that are compared.
    """
    setups = _setups(document, entry, values)
    if not setups:
        return (Conditions(),)
    first = values[0]
    networks = document.networks(setups)
    cells: list[tuple[str, ...]] = [(cell,) for cell in first.all_cells or networks]
    own = Conditions(batches=(first.batch,) if first.batch else first.batches, optimizer=first.optimizer)
    of_machine = _of_machine(setups)
    return tuple(
        own.over(entry.conditions).over(_of_network(document, setups, cell)).over(of_machine) for cell in cells or [()]
    )


def of_document(document: Document, cells: Collection[str]) -> tuple[Conditions, ...]:
    """Return the settings of these networks on every machine on which the document measured them."""
    return tuple(
        _of_network(document, [setup], (cell,)).over(_of_machine([setup]))
        for setup in document.setups
        for cell in document.networks([setup])
        if cell in cells
    )


def _setups(document: Document, entry: Entry, values: Sequence[Value]) -> list[Setup]:
    """Return the machines of values: those that they name; of several, the ones with the device that a value names."""
    named = list(dict.fromkeys(name for value in values for name in value.setup.split(", ") if name))
    if not named:
        named = [name for source in entry.computed_from for name in document.entry(source).setup]
    found = [each for each in document.setups if each.id in named]
    wanted = {_plain(value.device) for value in values if value.device}
    chosen = [each for each in found if any(device in _plain(f"{each.id} {each.hardware}") for device in wanted)]
    return chosen or found


def _plain(text: str) -> str:
    return text.lower().replace(" ", "")


def _of_machine(setups: Sequence[Setup]) -> Conditions:
    precisions = {each.precision.partition(";")[0] for each in setups}
    versions = list(dict.fromkeys(each.versions for each in setups if each.versions))
    return Conditions(
        devices=tuple(dict.fromkeys(each.device for each in setups)),
        device_names=" or ".join(dict.fromkeys(each.device_name for each in setups)),
        versions="; ".join(versions),
        precision=precisions.pop() if len(precisions) == 1 and precisions <= set(PRECISIONS) else "",
        assumed=tuple(dict.fromkeys(name for each in setups for name in each.assumed)),
    )


def _of_network(document: Document, setups: Sequence[Setup], cell: tuple[str, ...]) -> Conditions:
    """Return the settings of a network in the tables [[conditions]]. Later tables override earlier ones."""
    found = Conditions(cells=cell)
    for each in document.stated(setups):
        if not each.cells or set(each.cells) & set(cell):
            found = Conditions(cells=cell).over(each).over(found)
    return found
