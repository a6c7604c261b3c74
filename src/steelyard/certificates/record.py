"""Certificates as JSON files in the cache, one per key; a file that cannot be read counts as missing."""

import json
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

from steelyard.certificates.sources import digest
from steelyard.files import atomic
from steelyard.files.paths import cache_folder
from steelyard.results import imported

# Format 6: the fields of Certificate as one JSON object, and their hash. Format 5 had nothing of kernels, imported files, update
# rules and the end of a trial, format 4 had no strategy, format 3 no outputs, format 2 no hash; in format 1, `float64_error` was
# called `exact`.
FORMAT = 6


@dataclass(frozen=True)
class Certificate:
    """The record that an implementation does or does not compute the same function as the reference, and how this was shown.

    `worst` is the tensor closest to its limit or farthest beyond it, with an error of `worst_units` rounding levels; `limit` is
    the usual limit in the same unit. `first` and `stage` are the first tensor beyond its limit and its stage (empty when passed).
    `agreement`: largest relative difference between the two float64 references (None: one reference only). `float64_error`: the
    same between the implementation's own float64 run and the reference (None where that run was not needed). `resolution`: for
    each stage, the relative error above which a deviation is detected; below one nat, errors of a likelihood are in nats.
    `losses`: of the implementation at each step, and `loss_limits` how far a trial's may be from them; empty if it did not pass.
    `outputs` and `output_limits` are the same for the fingerprints of an inference's outputs, by batch and output
    (`inference1/logits`). `task`: training or inference.
    `strategy`: over what it was spread.
    `imported`: path -> SHA-256 of what its processes imported from elsewhere; the certificate is valid while these files are so.
    `looked_at` and `not_looked_at`: what was compared and what was not, in words.
    `rule_steps`: steps over which its update rule was checked by itself, with given gradients; 0: it was not.
    `updates`: changes of some elements of each tensor in the first two steps, and `update_limits` how far a trial's may be from
    them, relative to the whole tensor's; empty where a trial has none to compare.
    `seen`: for each stage, the share of its tensors in which a mistake of `1 %`, and of `0.1 %`, would have been found.
    `declared`: how the update rule differs from the canonical formula. `key`: hash of everything that decides.
    `kernels`: how often oneDNN ran what in which precision at the batch that is timed, from its own log; empty where it ran
    nothing, or there is no log: nothing is known of the kernels then, nor of other libraries' kernels.
    """

    key: str
    passed: bool
    sentence: str
    framework: str
    version: str
    workload: str
    preset: str
    task: str
    strategy: str
    settings: dict[str, Any]
    optimizer: dict[str, Any]
    declared: str
    references: tuple[str, ...]
    agreement: float | None
    float64_error: float | None
    worst: str
    worst_units: float
    limit: float
    first: str
    stage: str
    tensors: int
    trainable_scalars: int
    resolution: dict[str, float]
    losses: tuple[float, ...]
    loss_limits: tuple[float, ...]
    outputs: dict[str, float]
    output_limits: dict[str, float]
    steps: int
    method: int
    inputs: str
    specification: str
    implementation: str
    created: str
    kernels: dict[str, int] = field(default_factory=dict)
    imported: dict[str, str] = field(default_factory=dict)
    looked_at: tuple[str, ...] = ()
    not_looked_at: tuple[str, ...] = ()
    rule_steps: int = 0
    updates: dict[str, list[float]] = field(default_factory=dict)
    update_limits: dict[str, float] = field(default_factory=dict)
    seen: dict[str, dict[str, float]] = field(default_factory=dict)

    def to_json(self) -> str:
        """Return the record as JSON text."""
        values = asdict(self)
        return json.dumps({"format": FORMAT, "sha256": digest(values), **values}, indent=1)

    @staticmethod
    def from_json(text: str) -> "Certificate":
        """Return the certificate in a JSON text; ValueError when it is damaged, incomplete or of another format."""
        raw = json.loads(text)
        names = {each.name for each in fields(Certificate)}
        if not isinstance(raw, dict) or raw.get("format") != FORMAT or raw.keys() != names | {"format", "sha256"}:
            message = "This is not a complete certificate of a known format."
            raise ValueError(message)
        del raw["format"]
        if not isinstance(raw["imported"], dict):
            message = "The imported files of this certificate are not listed by path."
            raise ValueError(message)
        if raw.pop("sha256") != digest(raw):
            message = "This certificate was changed after it was written."
            raise ValueError(message)
        lists = {name: tuple(value) for name, value in raw.items() if isinstance(value, list)}
        return Certificate(**raw | lists)


def folder() -> Path:
    """Return the cache folder of all certificates."""
    return cache_folder() / "certificates"


def save(certificate: Certificate) -> Path:
    """Write a certificate to the cache, complete or not at all; returns the file."""
    path = folder() / f"{certificate.key}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    return atomic.write_text(path, certificate.to_json())


def load_all() -> list[Certificate]:
    """Return every certificate in the cache that can be read."""
    found = (find(path.stem) for path in sorted(folder().glob("*.json")))
    return [certificate for certificate in found if certificate]


def find(key: str) -> Certificate | None:
    """Return the certificate with this key; None when there is none, it cannot be read, or an imported file is another one."""
    try:
        found = Certificate.from_json((folder() / f"{key}.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return found if found.key == key and not imported.changed(found.imported) else None
