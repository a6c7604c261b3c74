"""A certificate as it is kept and shown: JSON in the cache, one file per key; what cannot be read is made again."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, fields
from typing import TYPE_CHECKING, Any

from steelyard.files.paths import cache_folder

if TYPE_CHECKING:
    from pathlib import Path

# Format 1: the fields of Certificate as one JSON object.
FORMAT = 1


@dataclass(frozen=True)
class Certificate:
    """The record that an implementation computes the same function as the reference, and how it was shown.

    `worst` names the tensor closest to or farthest beyond its limit, at `worst_units` rounding levels of `limit`; `first` and
    `stage` the first one beyond it (empty when passed). `agreement`: largest relative difference between the two float64
    references (None: one reference only); `exact`: between the implementation's own float64 run and the reference, where
    rounding alone could not decide (None: it could). `resolution`: per stage, the relative error that would have been seen.
    `declared`: where the update rule differs from the canonical formula. `key` hashes everything that decides.
    """

    key: str
    passed: bool
    sentence: str
    framework: str
    version: str
    workload: str
    preset: str
    settings: dict[str, Any]
    optimizer: dict[str, Any]
    declared: str
    references: tuple[str, ...]
    agreement: float | None
    exact: float | None
    worst: str
    worst_units: float
    limit: float
    first: str
    stage: str
    tensors: int
    trainable_scalars: int
    resolution: dict[str, float]
    steps: int
    method: int
    inputs: str
    specification: str
    implementation: str
    created: str

    def to_json(self) -> str:
        """Return the record as JSON text."""
        return json.dumps({"format": FORMAT, **asdict(self)}, indent=1)

    @staticmethod
    def from_json(text: str) -> Certificate:
        """Read a record; ValueError when it is damaged, incomplete or of another format."""
        raw = json.loads(text)
        names = {each.name for each in fields(Certificate)}
        if not isinstance(raw, dict) or raw.get("format") != FORMAT or raw.keys() != names | {"format"}:
            message = "This is not a whole certificate of a known format."
            raise ValueError(message)
        del raw["format"]
        if not isinstance(raw["passed"], bool) or not isinstance(raw["references"], list):
            message = "This certificate holds values of unexpected types."
            raise ValueError(message)
        return Certificate(**raw | {"references": tuple(raw["references"])})


def folder() -> Path:
    """Where certificates are kept."""
    return cache_folder() / "certificates"


def save(certificate: Certificate) -> Path:
    """Keep a certificate under its key, whole or not at all."""
    path = folder() / f"{certificate.key}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_suffix(".partial")
    partial.write_text(certificate.to_json(), encoding="utf-8")
    partial.replace(path)
    return path


def kept() -> list[Certificate]:
    """Return every certificate that is kept and can be read."""
    found = (find(path.stem) for path in sorted(folder().glob("*.json")))
    return [certificate for certificate in found if certificate]


def find(key: str) -> Certificate | None:
    """Return the certificate of this key; None when there is none or it cannot be read."""
    try:
        found = Certificate.from_json((folder() / f"{key}.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return found if found.key == key else None
