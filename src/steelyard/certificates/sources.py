"""What decides a certificate, as hashes: the files that take part in the computation, and what they run on."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from steelyard.catalog.frameworks import WORKER

if TYPE_CHECKING:
    from steelyard_worker.protocol import Job

# Parts of the worker through which no certified number goes: they time, or only carry the job.
APART = {"__init__.py", "__main__.py", "measure.py", "protocol.py", "steady.py"}


def digest(*parts: Any) -> str:
    """Return the SHA-256 of the JSON form of the parts (64 hexadecimal digits)."""
    text = json.dumps(parts, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()


def implementation_hash(job: Job, worker: Path = WORKER) -> str:
    """Hash of every file that decides what a job computes."""
    return implementation_of(job.framework, Path(job.workload_folder), worker)


def implementation_of(framework: str, workload: Path, worker: Path = WORKER) -> str:
    """Hash of a workload's files, an adapter's, and the worker's shared parts."""
    adapter = worker / "frameworks" / framework
    found = {path.name: path for path in sorted(worker.glob("*.py")) if path.name not in APART}
    found |= {f"frameworks/{path.name}": path for path in sorted((worker / "frameworks").glob("*.py"))}
    found |= {f"adapter/{path.relative_to(adapter)}": path for path in sorted(adapter.rglob("*.py"))}
    found["adapter/framework.toml"] = adapter / "framework.toml"  # it holds the defaults of the knobs
    found |= {f"workload/{name}": workload / name for name in ("network.py", f"{framework}.py")}
    return digest({name: _text_hash(path) for name, path in found.items()})


def specification_hash(job: Job) -> str:
    """Hash of what is to be computed: the network's text, its sizes, the update rule."""
    from dataclasses import asdict

    network = _text_hash(Path(job.workload_folder) / "network.py")
    return digest(network, job.workload, job.sizes, asdict(job.optimizer))


def _text_hash(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else "absent"
