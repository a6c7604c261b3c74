"""The rule for everything in a user's folder: it is used, refused by name, or counted by reason.

What a reader leaves out, and what it uses in another form than the user has it, is counted in an `Inventory`. What cannot be
used is refused; `accepted` tries everything before it refuses, so that one error names all of it.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, TypedDict, TypeVar

from steelyard.errors import UserError

Item = TypeVar("Item")
Result = TypeVar("Result")

LEFT_OUT, CHANGED = "left_out", "changed"
NAMED = 3  # of the files or samples of one reason, so many are named; of the others only the number is given


class Tally(TypedDict):
    """The number of items with one reason, and the names of the first few."""

    count: int
    first: list[str]


class Inventory:
    """Counts by reason. A reason is a plural, such as "hidden files and folders"."""

    def __init__(self) -> None:
        self.left_out: dict[str, Tally] = {}
        self.changed: dict[str, Tally] = {}

    def leave_out(self, reason: str, name: str = "", count: int = 1) -> None:
        """Count files, lines or samples that are not used."""
        _count(self.left_out, reason, name, count)

    def change(self, reason: str, name: str = "", count: int = 1) -> None:
        """Count what is used, but not as the user has it."""
        _count(self.changed, reason, name, count)

    @property
    def facts(self) -> dict[str, dict[str, Tally]]:
        """The counts for the metadata of prepared data; the same tables continue to count."""
        return {LEFT_OUT: self.left_out, CHANGED: self.changed}


def joined(facts: Mapping[str, Any], others: Mapping[str, Any]) -> dict[str, dict[str, Tally]]:
    """Return the counts of two inventories, whose reasons differ, as one; prepared data of older versions has none."""
    return {kind: {**others.get(kind, {}), **facts.get(kind, {})} for kind in (LEFT_OUT, CHANGED)}


def sentences(facts: Mapping[str, Any]) -> list[str]:
    """Describe the counts: a sentence on what is left out, and one on what is changed; none where there is nothing."""
    kinds = {"Left out": facts.get(LEFT_OUT, {}), "Not used as it is": facts.get(CHANGED, {})}
    return [f"{title}: {'; '.join(map(_described, table.items()))}." for title, table in kinds.items() if table]


def shown(name: str) -> str:
    """Return a file name that can be printed: bytes that are no text, and control characters, are escaped."""
    return "".join(
        character if character.isprintable() else character.encode("unicode_escape").decode() for character in name
    )


def attempted(function: Callable[[Item], Result]) -> Callable[[Item], Result | UserError]:
    """Return the same function, which returns a UserError instead of raising it."""

    def attempt(item: Item) -> Result | UserError:
        try:
            return function(item)
        except UserError as error:
            return error

    return attempt


def accepted(results: Iterable[Result | UserError]) -> Iterator[Result]:
    """Yield the results of `attempted` up to the first refusal; all that follow are tried, then one error names them all."""
    refused: list[UserError] = []
    for result in results:
        if isinstance(result, UserError):
            refused.append(result)
        elif not refused:
            yield result
    refuse(refused)


def refuse(refused: list[UserError]) -> None:
    """Raise one error for all of these; nothing happens if there are none."""
    if len(refused) == 1:
        raise refused[0]
    if refused:
        named = " ".join(dict.fromkeys(str(error) for error in refused[:NAMED]))
        more = f" {len(refused) - NAMED:,} more are refused for reasons like these." if len(refused) > NAMED else ""
        raise type(refused[0])(f"{len(refused):,} files, folders or lines are refused. {named}{more}")


def _count(table: dict[str, Tally], reason: str, name: str, count: int) -> None:
    tally = table.setdefault(reason, {"count": 0, "first": []})
    tally["count"] += count
    if name and len(tally["first"]) < NAMED:
        tally["first"].append(shown(name))


def _described(item: tuple[str, Tally]) -> str:
    reason, tally = item
    names = ", ".join([*tally["first"], *(["..."] if tally["count"] > len(tally["first"]) else [])])
    return f"{reason}: {tally['count']:,}" + (f" ({names})" if tally["first"] else "")
