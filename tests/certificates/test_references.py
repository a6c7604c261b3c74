"""Two independent frameworks compute the same numbers in float64: what every certificate stands on."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import subjects

from steelyard.certificates import reference
from steelyard.certificates.method import AGREEMENT
from steelyard.measure import launch

if TYPE_CHECKING:
    from collections.abc import Callable

    from steelyard.results.trials import Trial

pytestmark = pytest.mark.conformance

AT_ONCE = 2
PEERS = ("pytorch", "jax")


@pytest.mark.parametrize(
    ("workload", "preset"), [("resnet18", "tiny"), ("lstm-imdb", "tiny"), ("lstm-imdb", "tiny-bidirectional")]
)
def test_two_frameworks_agree_in_float64(
    workload: str, preset: str, tmp_path: Path, interpreter: Callable[[str], Path]
) -> None:
    found = subjects.subject(PEERS[0], workload, preset, tmp_path)
    proceedings = reference.jobs_for(found, [subjects.peer(name) for name in PEERS], tmp_path / "references")

    def run(task: reference.Task) -> Trial:
        return launch.launch(task.job, interpreter(task.environment), lambda event: None, launch.Guard())

    with ThreadPoolExecutor(AT_ONCE) as pool:
        for trial in pool.map(run, (*proceedings.references, proceedings.candidate)):
            assert trial.done, trial.error
    certificate = reference.conclude(proceedings)
    assert certificate.passed, certificate.sentence
    assert certificate.agreement is not None
    assert certificate.agreement < AGREEMENT / 100
