"""How alike two names of tensors are, written as different frameworks write them."""

from __future__ import annotations

import re
from difflib import SequenceMatcher
from functools import cache

# Words of frameworks for the same role.
ROLES = {
    "kernel": "weight",
    "embedding": "weight",
    "embeddings": "weight",
    "w": "weight",
    "b": "bias",
    "gamma": "scale",
    "beta": "bias",
    "moving_mean": "mean",
    "moving_variance": "variance",
    "running_mean": "mean",
    "running_var": "variance",
    "var": "variance",
}
COLLECTIONS = r"^(params|batch_stats)/"
"""What names of Flax begin with, which says nothing about the module."""
WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")


@cache
def words(name: str) -> tuple[str, ...]:
    """Return the words of a name, its last part as a role: `enc/LayerNorm_0/gamma` -> enc, layer, norm, 0, scale."""
    *parents, role = [part for part in re.split(r"[./:]", name) if part] or [name]
    found = [each.lower() for part in parents for each in WORD.findall(part)]
    lower = role.lower()
    return (*found, *(ROLES.get(lower, lower).split("_")))


def parent(name: str) -> str:
    """Return the name without its last part: that of the module that has the tensor."""
    return re.split(r"[./:](?=[^./:]*$)", name)[0]


def role(name: str) -> str:
    """Return the last part of a name."""
    return re.split(r"[./:]", name)[-1]


def likeness(one: str, other: str) -> float:
    """Return how alike two names are, from 0 to 1."""
    return SequenceMatcher(None, words(one), words(other), autojunk=False).ratio()
