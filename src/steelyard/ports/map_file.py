"""`map.toml`: which tensor of one side is which of the other, written by every check and corrected by the user."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from steelyard.errors import nearest
from steelyard.files import atomic, settings_files
from steelyard.ports.mapping import GIVEN, Mapping, Pair
from steelyard.ports.transforms import Transform

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from steelyard.ports.side_tensors import SideTensor

FILE = "map.toml"
HEADER = """\
# Which tensors of {left} (left) and {right} (right) belong together. A check writes this file anew, except for the pairs with
# found_by = "given": correct a pair, or add one, and say so there.
# right = blocks(left.reshape(first).transpose(axes).reshape(last))
"""


@dataclass(frozen=True)
class _Entry:
    """One table [[pair]]; the fields are those of `Pair` and `Transform`."""

    left: tuple[str, ...]
    right: tuple[str, ...]
    found_by: str = GIVEN
    first: tuple[int, ...] = ()
    axes: tuple[int, ...] = ()
    last: tuple[int, ...] = ()
    along: int = 0
    blocks: tuple[int, ...] = ()
    sum: bool = False


@dataclass(frozen=True)
class _File:
    pair: tuple[Any, ...] = ()


def read(folder: Path, left: Sequence[SideTensor], right: Sequence[SideTensor]) -> list[Pair]:
    """Return the pairs that the user has given. UserError: a tensor of one does not exist, or the shapes do not fit."""
    path = folder / FILE
    if not path.is_file():
        return []
    raw: _File = settings_files.build(path, settings_files.read(path), "", _File)
    entries = (settings_files.build(path, table, f"pair[{number}]", _Entry) for number, table in enumerate(raw.pair))
    known = [{each.name: each for each in side} for side in (left, right)]
    return [
        _pair(path, number, entry, known[0], known[1])
        for number, entry in enumerate(entries)
        if entry.found_by == GIVEN
    ]


def write(folder: Path, mapping: Mapping, names: tuple[str, str]) -> None:
    """Write all pairs, and as comments what has no partner. `names`: of the two sides."""
    parts = [HEADER.format(left=names[0], right=names[1]), *map(_table, mapping.pairs)]
    for side, only in (("left", mapping.only_left), ("right", mapping.only_right)):
        parts += [f"# Without a partner: {side} {json.dumps(name)}" for name in only]
    atomic.write_text(folder / FILE, "\n".join(parts) + "\n")


def _pair(path: Path, number: int, entry: _Entry, left: dict[str, SideTensor], right: dict[str, SideTensor]) -> Pair:
    where = f"pair[{number}]"
    for key, names, known in (("left", entry.left, left), ("right", entry.right, right)):
        for name in names:
            if name not in known:
                sentence = f"'{name}' is no tensor of the {key} side.{nearest(name, list(known))}"
                raise settings_files.wrong(path, key, where, sentence)
    transform = Transform(entry.first, entry.axes, entry.last, entry.along, entry.blocks)
    if len(entry.left) != 1 or len(entry.right) != 1:
        return Pair(entry.left, entry.right, transform, GIVEN, True, entry.along, entry.sum)
    one, other = left[entry.left[0]], right[entry.right[0]]
    try:
        moved = transform.apply(one.values)
    except ValueError as error:
        raise settings_files.wrong(
            path, "axes", where, f"this does not fit the shape {list(one.shape)} ({error})."
        ) from None
    if moved.shape != other.shape:
        sentence = f"this gives the shape {list(moved.shape)}, and '{other.name}' has {list(other.shape)}."
        raise settings_files.wrong(path, "right", where, sentence)
    return Pair(entry.left, entry.right, transform, GIVEN, bool((moved == other.values).all()))


def _table(pair: Pair) -> str:
    transform = pair.transform
    fields: dict[str, Any] = {"left": list(pair.left), "right": list(pair.right), "found_by": pair.found_by}
    for name in ("first", "axes", "last", "blocks"):
        if value := getattr(transform, name):
            fields[name] = list(value)
    if along := transform.along or pair.along:
        fields["along"] = along
    if pair.is_sum:
        fields["sum"] = True
    lines = [f"{name} = {json.dumps(value, ensure_ascii=False)}" for name, value in fields.items()]
    return "\n".join(["[[pair]]", *lines, ""])
