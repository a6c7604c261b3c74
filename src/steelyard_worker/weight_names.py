"""How the tensors of a file of weights differ by name and shape from those that are needed, in sentences.

A worker compares with the tensors of an implementation, the orchestrator with those of a network.
"""

from __future__ import annotations

from difflib import get_close_matches
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    Shape = tuple[int, ...]

# Names of one kind that a sentence lists; the others are counted.
MOST = 3


def differences(
    needed: Mapping[str, Shape],
    held: Mapping[str, Shape],
    owner: str,
    why: Callable[[str], str] = lambda _: "",
) -> list[str]:
    """Return a sentence for every kind of difference; empty where names and shapes are those that are needed.

    `needed`, `held`: shapes by name; `owner`: what has the needed ones; `why(name)`: the likely reason for the shape of a tensor.
    """
    missing = [name for name in needed if name not in held]
    extra = [name for name in held if name not in needed]
    shapes = [name for name in needed if name in held and tuple(held[name]) != tuple(needed[name])]
    found = []
    if prefix := _common_prefix(needed, held):
        found.append(f"All names in it begin with '{prefix}'; write them without that.")
    elif missing:
        found.append(f"It lacks {_listed([_with_nearest(each, extra) for each in _few(missing)], missing)}.")
    if extra and not prefix:
        what = "it" if len(extra) == 1 else "them"
        advice = f"rename {what}" if missing else f"leave {what} out"
        found.append(f"It has {_listed(_few(extra), extra)}, which {owner} does not have; {advice}.")
    if shapes:
        found.append(f"{_listed([_shape(each, needed, held, why) for each in _few(shapes)], shapes)}.")
    return found


def _common_prefix(needed: Mapping[str, Shape], held: Mapping[str, Shape]) -> str:
    """Return what all names have before those that are needed, such as `model.`; empty if there is nothing."""
    first = next(iter(held), "")
    for name in needed:
        prefix = first.removesuffix(name)
        if prefix and prefix != first and {f"{prefix}{each}" for each in needed} == set(held):
            return prefix
    return ""


def _few(names: Sequence[str]) -> list[str]:
    return [f"'{name}'" for name in names[:MOST]]


def _listed(texts: Sequence[str], names: Collection[str]) -> str:
    """Return the texts, and the number of names that have none."""
    more = [f"{len(names) - len(texts)} more"] if len(names) > len(texts) else []
    *first, last = [*texts, *more]
    return f"{', '.join(first)} and {last}" if first else last


def _with_nearest(quoted: str, known: Sequence[str]) -> str:
    close = get_close_matches(quoted.strip("'"), known, n=1, cutoff=0.5)
    return f"{quoted} (nearest: '{close[0]}')" if close else quoted


def _shape(quoted: str, needed: Mapping[str, Shape], held: Mapping[str, Shape], why: Callable[[str], str]) -> str:
    name = quoted[1:-1]
    reason = why(name)
    return f"{quoted} has the shape {tuple(held[name])} instead of {tuple(needed[name])}" + (
        f" ({reason})" if reason else ""
    )
