"""In what two measurements differ that must be equal for a comparison: settings of the cases, and how they were measured."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any, NamedTuple

from steelyard_worker.case import differences

if TYPE_CHECKING:
    from collections.abc import Collection

    from steelyard.plan.run_plan import Group
    from steelyard_worker.case import Case

FIELDS = {
    "inputs": "data or initial weights",
    "weights": "initial weights",
    "specification": "network",
    "settings": "",
    "sizes": "",
    "loader_workers": "loader workers",
}
"""How a field of a case is called in sentences."""
NOT_SET = "not set"
"""What `differences` returns for a field that a case leaves out, because it has the default that it had before there was one."""


class Unlike(NamedTuple):
    """A setting in which two measurements differ, with both of its values as text."""

    name: str
    first: str
    second: str


def of_cases(first: Case, second: Case, without: Collection[str] = ()) -> list[Unlike]:
    """Return the fields in which two cases differ. `without`: names of fields, with a dot where they are inside of others."""
    found = {} if first.id == second.id else differences(first, second)
    # Inputs follow from sizes, data, given weights and seed, so they are mentioned only if nothing else has changed.
    explained = {"sizes", "data", "seed", "weights", "specification"} & {name.partition(".")[0] for name in found}
    follows = ("inputs", "specification" if "sizes" in explained else "") if explained else ()
    return [
        Unlike(field(name), shown(name, a), shown(name, b))
        for name, (a, b) in found.items()
        if name not in follows and name not in without
    ]


def of_schedules(first: Group, second: Group) -> list[Unlike]:
    """Return in what the measuring of two groups differs."""
    ours, theirs = _terms(first), _terms(second)
    return [Unlike(name, _plain(ours[name]), _plain(theirs[name])) for name in ours if ours[name] != theirs[name]]


def field(name: str) -> str:
    """Return how sentences call a field of a case, such as `learning rate` for `optimizer.learning_rate`."""
    first, _, rest = name.partition(".")
    return " ".join(filter(None, (FIELDS.get(first, first), rest.replace(".", " "))))


def shown(name: str, value: Any) -> str:
    """Return the value of a field of a case as text; a digest of given weights says what it is of."""
    if name == "weights":
        return "drawn" if value in ("", NOT_SET) else f"file {value}"
    return _plain(value)


def _terms(group: Group) -> dict[str, Any]:
    """Return the settings of measuring a group: {shown name: value}."""
    schedule = {f"schedule {name.replace('_', ' ')}": each for name, each in asdict(group.protocol.schedule).items()}
    return {**schedule, "training steps before the warm-up": group.train_steps}


def _plain(value: Any) -> str:
    if isinstance(value, dict):  # a length: {"unit": "steps", "count": 10}
        return " ".join(str(each) for each in reversed(value.values()) if each)
    return str(value)
