"""The inner tensors of every implementation are those of the float64 reference: all are there, and all match."""

from __future__ import annotations

from threading import Semaphore
from typing import TYPE_CHECKING

import pytest
import subjects
from mutant_bench import REFERENCE, Server

from steelyard.catalog import frameworks, workloads
from steelyard.certificates import inner
from steelyard.certificates.method import method_for
from steelyard.certificates.plan import plan_certification
from steelyard_worker.case import INFERENCE, TRAINING
from steelyard_worker.protocol import EVENTS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

# In `make test`, mutants show that the inner tensors before a mistake match, in every framework.
CELLS = [
    (workload, framework)
    for workload, known in workloads.find().items()
    for framework in frameworks.contenders()
    if known.implemented_by(framework) and framework not in known.unsupported
]


@pytest.fixture(scope="module")
def server(
    tmp_path_factory: pytest.TempPathFactory, interpreter: Callable[[str], Path]
) -> Iterator[Callable[..., Server]]:
    """Return a function from a framework to its process."""
    found: dict[str, Server] = {}

    def get(framework: str) -> Server:
        if framework not in found:
            folder = tmp_path_factory.mktemp(framework)
            found[framework] = Server(framework, interpreter(framework), folder, Semaphore(1))
        return found[framework]

    yield get
    for each in found.values():
        each.close()


@pytest.fixture(scope="module")
def references(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder that all frameworks share."""
    return tmp_path_factory.mktemp("references")


@pytest.mark.conformance
@pytest.mark.slow
@pytest.mark.parametrize(("workload", "framework"), CELLS)
@pytest.mark.parametrize("task", [TRAINING, INFERENCE])
def test_the_inner_tensors_match(
    server: Callable[[str], Server], references: Path, tmp_path: Path, workload: str, framework: str, task: str
) -> None:
    candidate = subjects.candidate(framework, workload, "tiny", tmp_path, task=task)
    shared = references / f"{task} {workload} {sorted(candidate.declared.items())}"
    plan = plan_certification(candidate, [subjects.installation(REFERENCE)], shared)
    pair = plan.reference_tasks[0], plan.candidate_task
    for each in inner.next_tasks(plan, pair):
        server(each.job.case.framework).run(each.job)
    names = candidate.network.probes
    assert inner.sentence(plan, pair, method_for("float32")) == (
        f' All {len(names)} inner tensors match, from "{names[0]}" to "{names[-1]}".'
    ), (tmp_path / "candidate" / "inner" / EVENTS).read_text(encoding="utf-8")


def test_every_workload_names_inner_tensors() -> None:
    for known in workloads.find().values():
        names = known.network(known.preset("tiny")).probes
        assert len(set(names)) == len(names) > 1
