"""Trainers of strategies are set back on all ranks at once; single processes are checked by `checks/<framework>/restart.py`."""

from __future__ import annotations

import json
import os
import subprocess
from dataclasses import asdict
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from steelyard.catalog import frameworks, workloads
from steelyard.catalog.frameworks import WORKER
from steelyard.environments import clean_environ
from steelyard.measure import hosts, spread_process

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.conformance

SCRIPT = Path(__file__).parent / "checks" / "restart_of_ranks.py"
# What most users of each framework train with on several processes, and what is not like a single process. Horovod is compiled
# where it is needed, and its trainers begin again by the same few lines.
MAIN = {
    ("pytorch", "ddp"),
    ("jax", "distributed"),
    ("tensorflow", "mirrored"),
    ("mindspore", "data-parallel"),
    ("mxnet", "dist-sync"),
    ("pytorch", "fsdp"),
}
EVERY = [
    (known.name, name)
    for known in frameworks.contenders().values()
    for name, own in known.strategies.items()
    if not own.environment
]


@pytest.mark.skipif((os.cpu_count() or 1) < 2, reason="each of two ranks needs a core of its own")
@pytest.mark.parametrize(
    ("name", "strategy"), [pytest.param(*each, marks=() if each in MAIN else pytest.mark.slow) for each in EVERY]
)
def test_every_rank_of_a_strategy_begins_again(
    name: str, strategy: str, environment: Callable[[str], Path], tmp_path: Path
) -> None:
    known, workload, python = frameworks.framework(name), workloads.find()["lstm-imdb"], environment(name)
    spread = known.strategies[strategy]
    told: dict[str, Any] = {
        "framework": name,
        "strategy": f"{strategy}:2",
        "spread": asdict(spread),
        "mode": known.default_mode,
        "knobs": {knob: each.default for knob, each in known.knobs.items()} | spread.knobs,
        "workload": str(workload.folder),
        "sizes": workload.preset("tiny").sizes,
        "worker": str(WORKER),
        "rule": "adam",
    }
    line = tmp_path / "told.json"
    line.write_text(json.dumps(told))
    job = SimpleNamespace(
        case=SimpleNamespace(strategy=told["strategy"]), spread=spread, folder=str(tmp_path), kind="check"
    )
    with hosts.of(job, None) as here:  # type: ignore[arg-type]
        argv, environ = spread_process.started(job, spread, python, WORKER, clean_environ(python), here, line)  # type: ignore[arg-type]
        own = [str(SCRIPT) if part == str(WORKER / "__main__.py") else part for part in argv]
        done = subprocess.run(own, capture_output=True, text=True, env=environ, cwd=tmp_path, check=False, timeout=600)
    assert done.returncode == 0, (done.stdout + done.stderr)[-3000:]
