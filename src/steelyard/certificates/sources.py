"""Hashes of the files and sizes that decide a certificate."""

import hashlib
import json
from pathlib import Path
from typing import Any

from steelyard.catalog import frameworks
from steelyard.catalog.frameworks import WORKER
from steelyard_worker import records
from steelyard_worker.network import implementation_file
from steelyard_worker.protocol import Job

# Files of the worker that do not affect any certified number: they measure time, check adapters, or start the process.
NOT_COMPUTING = {
    "__init__.py",
    "__main__.py",
    "contract.py",
    "end_check.py",
    "evaluation.py",
    "inference.py",
    "measure.py",
    "placed.py",
    "steady.py",
    "timing.py",
}
# Not part of a workload's implementation: what a specification decides is in the key as resolved values.
SPECIFICATION = "spec.toml"


def digest(*parts: Any) -> str:
    """Return the SHA-256 of the JSON form of the parts (64 hexadecimal digits)."""
    text = json.dumps(parts, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()


def implementation_hash(job: Job, worker: Path = WORKER) -> str:
    """Return the hash of every file that affects what a job computes."""
    return implementation_of(job.case.framework, Path(job.workload_folder), job.case.workload, worker)


def implementation_of(framework: str, workload: Path, name: str, worker: Path = WORKER) -> str:
    """Return the hash of a workload's files, a framework's adapter, and the shared files of the worker.

    `name` is the workload's. Modules and data that an implementation may read lie in the workload's folder, so every file there
    counts, except the implementations for other frameworks.
    """
    known = frameworks.all_frameworks().get(framework)
    own = known.user_folder if known else ""
    adapter = Path(own) if own else worker / "frameworks" / framework
    found = {path.name: path for path in sorted(worker.glob("*.py")) if path.name not in NOT_COMPUTING}
    found |= {f"frameworks/{path.name}": path for path in sorted((worker / "frameworks").glob("*.py"))}
    found |= {f"adapter/{path.relative_to(adapter)}": path for path in sorted(adapter.rglob("*.py"))}
    found["adapter/framework.toml"] = adapter / "framework.toml"  # it holds the defaults of the knobs
    found |= {f"workload/{path.relative_to(workload)}": path for path in _workload_files(workload, framework)}
    found[f"workload/{framework}.py"] = implementation_file(workload, name, framework, own)
    return digest({name: _text_hash(path) for name, path in found.items()})


def specification_hash(job: Job) -> str:
    """Return the hash of what a job should compute: the task, the network's description, its sizes, the update rule."""
    network = _text_hash(Path(job.workload_folder) / "network.py")
    return digest(network, job.case.workload, job.case.task, job.case.sizes, records.plain(job.case.optimizer))


def _workload_files(workload: Path, framework: str) -> list[Path]:
    others = {SPECIFICATION, *(f"{each}.py" for each in frameworks.all_frameworks() if each != framework)}
    found = (path for path in sorted(workload.rglob("*")) if path.is_file() and "__pycache__" not in path.parts)
    return [path for path in found if str(path.relative_to(workload)) not in others]


def _text_hash(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else "absent"
