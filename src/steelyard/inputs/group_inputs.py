"""What every process of a group shares, made once: initial weights, prepared data with its order, a synthetic batch."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from steelyard.files import atomic
from steelyard.files.paths import cache_folder
from steelyard.inputs import data, weights
from steelyard.inputs.data.order import write_order
from steelyard.inputs.data.synthetic import synthesise
from steelyard_worker import tensors
from steelyard_worker.protocol import Data

if TYPE_CHECKING:
    from collections.abc import Callable

    from steelyard.plan.resolve import RunPlan

SYNTHETIC_SEED = 20
CERTIFIED_STEPS = 5


@dataclass(frozen=True)
class GroupInputs:
    """Folders that jobs name. `origin` says which data this is, in words; `identity` hashes everything."""

    weights: Path
    data: Data
    origin: str
    meta: dict[str, Any]
    identity: str


def prepare(plan: RunPlan, report: Callable[[data.Progress], None]) -> dict[str, GroupInputs]:
    """Make or reuse the inputs of every group."""
    return {group: _prepare(plan, group, report) for group in plan.groups}


def _prepare(plan: RunPlan, group: str, report: Callable[[data.Progress], None]) -> GroupInputs:
    workload, preset = plan.preset(group)
    network = workload.network(preset)
    batch, seed = preset.sizes["batch"], plan.options.seed
    initial = weights.initialise(network.parameters, seed)
    synthetic = synthesise(network, batch, SYNTHETIC_SEED, workload.spec_hash(preset))
    if not preset.data:
        found = Data(synthetic=str(synthetic))
        return GroupInputs(initial, found, "synthetic batches", {}, _identity(initial, found))
    options = {key: value for key, value in preset.data.items() if key != "name"}
    folder = Path(plan.options.data).expanduser() if plan.options.data else None
    prepared = data.prepare(data.DataRequest(preset.data["name"], folder, options), report)
    initial = _with_embedding(initial, prepared.folder)
    order = write_order(_train_count(prepared.folder), batch, _steps(plan), seed)
    limit = plan.study.evaluation_limit
    found = Data(str(synthetic), str(prepared.folder), str(order), limit)
    return GroupInputs(initial, found, _origin(prepared.meta), prepared.meta, _identity(initial, found))


def _with_embedding(initial: Path, prepared: Path) -> Path:
    """Put the data's own word vectors, where it has any, in the place of the drawn ones."""
    vectors = tensors.read(prepared).get("embedding")
    if vectors is None:
        return initial

    def fill(folder: Path) -> None:
        tensors.write(folder, {**tensors.read(initial), "embedding.weight": vectors}, tensors.read_meta(initial))

    return atomic.place(cache_folder() / "weights" / atomic.key("embedded", initial.name, prepared.name), fill)


def _origin(meta: dict[str, Any]) -> str:
    """Say which data this is, how much of it, and how far it was checked."""
    checked = {
        "official": "checksums agree with the official data",
        "pinned": "checksums agree with the known files",
    }
    part = "a subset, " if meta.get("subset") else ""
    verified = checked.get(meta["verified"], "only its layout could be checked")
    return (
        f"{meta['title']}: {part}{meta['train_count']:,} training and {meta['test_count']:,} test samples; {verified}."
    )


def _train_count(folder: Path) -> int:
    entries = tensors.read_index(folder)["tensors"]
    return int(entries["position/train"]["shape"][0])


def _steps(plan: RunPlan) -> int:
    """Rows of the order: past its end it starts again, so this only bounds how long no batch repeats."""
    shape = plan.protocol.plan
    return max(plan.study.train_steps + shape.warmup_cap_steps + shape.counted_max, 2000)


def _identity(initial: Path, found: Data) -> str:
    """Hash of the folders' names: each of them is named by the hash of what is in it."""
    names = [
        initial.name,
        *(Path(path).name for path in (found.synthetic, found.prepared, found.order) if path),
    ]
    return hashlib.sha256("\0".join(names).encode()).hexdigest()[:16]
