"""Two independent frameworks compute the same numbers in float64, which every certificate relies on."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import subjects

from steelyard.certificates.conclusion import conclude
from steelyard.certificates.method import AGREEMENT
from steelyard.certificates.plan import plan_certification
from steelyard.measure import launch

if TYPE_CHECKING:
    from collections.abc import Callable

    from steelyard.certificates.plan import Task
    from steelyard.results.trials import Trial

pytestmark = pytest.mark.conformance

AT_ONCE = 2
REFERENCES = ("pytorch", "jax")


@pytest.mark.parametrize(
    ("workload", "preset"), [("resnet18", "tiny"), ("lstm-imdb", "tiny"), ("lstm-imdb", "tiny-bidirectional")]
)
def test_two_frameworks_agree_in_float64(
    workload: str, preset: str, tmp_path: Path, interpreter: Callable[[str], Path]
) -> None:
    candidate = subjects.candidate(REFERENCES[0], workload, preset, tmp_path)
    references = [subjects.installation(name) for name in REFERENCES]
    plan = plan_certification(candidate, references, tmp_path / "references")

    def run(task: Task) -> Trial:
        return launch.launch(task.job, interpreter(task.environment), lambda event: None, launch.Guard())

    with ThreadPoolExecutor(AT_ONCE) as pool:
        for trial in pool.map(run, (*plan.reference_tasks, plan.candidate_task)):
            assert trial.done, trial.error
    certificate = conclude(plan)
    assert certificate.passed, certificate.sentence
    assert certificate.agreement is not None
    assert certificate.agreement < AGREEMENT / 100
