"""What decides a certificate, as hashes: the files that take part in the computation, and what they run on."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from steelyard.catalog import frameworks
from steelyard.catalog.frameworks import WORKER
from steelyard_worker.network import implementation_file

if TYPE_CHECKING:
    from steelyard_worker.protocol import Job

# Parts of the worker through which no certified number goes: they time, or only carry the job.
APART = {"__init__.py", "__main__.py", "contract.py", "measure.py", "protocol.py", "steady.py"}


def digest(*parts: Any) -> str:
    """Return the SHA-256 of the JSON form of the parts (64 hexadecimal digits)."""
    text = json.dumps(parts, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()


def implementation_hash(job: Job, worker: Path = WORKER) -> str:
    """Hash of every file that decides what a job computes."""
    return implementation_of(job.case.framework, Path(job.workload_folder), job.case.workload, worker)


def implementation_of(framework: str, workload: Path, name: str, worker: Path = WORKER) -> str:
    """Hash of a workload's files, an adapter's, and the worker's shared parts; `name` is the workload's."""
    known = frameworks.all_frameworks().get(framework)
    own = known.user_folder if known else ""
    adapter = Path(own) if own else worker / "frameworks" / framework
    found = {path.name: path for path in sorted(worker.glob("*.py")) if path.name not in APART}
    found["frameworks/base.py"] = worker / "frameworks" / "base.py"
    found |= {f"adapter/{path.relative_to(adapter)}": path for path in sorted(adapter.rglob("*.py"))}
    found["workload/network.py"] = workload / "network.py"
    found[f"workload/{framework}.py"] = implementation_file(workload, name, framework, own)
    return digest({name: _text_hash(path) for name, path in found.items()})


def specification_hash(job: Job) -> str:
    """Hash of what is to be computed: the network's text, its sizes, the update rule."""
    from dataclasses import asdict

    network = _text_hash(Path(job.workload_folder) / "network.py")
    return digest(network, job.case.workload, job.case.sizes, asdict(job.case.optimizer))


def _text_hash(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else "absent"
