"""A single process that has recorded everything ends at once, without the handlers that a framework has for its end."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest
from worker.scripted_training import LINE, SIZES, points, trained

from steelyard.catalog import frameworks
from steelyard_worker import measure, protocol, tensors, trial
from steelyard_worker.case import Case, Optimizer, Settings
from steelyard_worker.frameworks.fake.adapter import Adapter
from steelyard_worker.protocol import Data, Job

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

ENDS = """
import atexit, ctypes, sys
from steelyard_worker import trial
atexit.register(print, "handler")
sys.stdout.write("text of Python\\n")
ctypes.CDLL(None).printf(b"text of a library\\n")
trial.end(int(sys.argv[1]), sys.stdin.readline())
"""
SETTINGS = frameworks.framework("fake").complete(Settings("scripted"))
MEASURE = Job(
    "measure",
    Case("line", "small", SIZES, "", {}, Optimizer("sgd", 0.1), "fake", SETTINGS),
    str(LINE),
    "",
    Data(""),
    "",
)
RANKS = frameworks.framework("fake").strategies


def ended(job: Job, code: int = 0) -> tuple[int, set[str]]:
    command = [sys.executable, "-c", ENDS, str(code)]
    environ = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    done = subprocess.run(
        command, input=protocol.to_line(job) + "\n", env=environ, capture_output=True, text=True, check=False
    )
    assert done.stderr == ""
    return done.returncode, set(done.stdout.splitlines())


@pytest.mark.parametrize("kind", ["settings", "certify", "measure", "probe", "rule", "search"])
def test_a_process_that_has_recorded_everything_ends_at_once_and_loses_no_output(kind: str) -> None:
    assert ended(replace(MEASURE, kind=kind)) == (0, {"text of Python", "text of a library"})


@pytest.mark.parametrize("kind", ["profile", "graph", "export", "contract", "communication"])
def test_what_may_still_write_at_its_end_ends_as_usual(kind: str) -> None:
    assert ended(replace(MEASURE, kind=kind)) == (0, {"text of Python", "text of a library", "handler"})


def test_a_process_with_loader_processes_or_other_ranks_ends_as_usual() -> None:
    loading = replace(MEASURE, case=replace(MEASURE.case, loader_workers=2))
    rank = replace(MEASURE, spread=RANKS["copies"])
    assert [("handler" in ended(job)[1]) for job in (loading, rank, MEASURE)] == [True, True, False]


def test_a_process_that_failed_keeps_its_exit_code_and_ends_as_usual() -> None:
    code, printed = ended(MEASURE, trial.EXIT_CRASHED)
    assert (code, "handler" in printed) == (trial.EXIT_CRASHED, True)


@pytest.mark.parametrize(
    ("inputs", "closed"), [(("pipeline",), 0), (("cached", "pipeline"), 0), (("pipeline", "cached"), 1)]
)
def test_only_the_pipeline_that_is_measured_last_stays_open_after_the_measurement(
    inputs: tuple[str, ...], closed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    count: list[int] = []
    pipeline = Adapter.pipeline

    def noticed(batches: Iterable[object]) -> Iterator[object]:
        try:
            yield from batches
        finally:
            count.append(1)

    monkeypatch.setattr(Adapter, "pipeline", lambda *given: noticed(pipeline(*given)))
    (tmp_path / "data").mkdir()
    batch = {"point": np.zeros((16, 8), np.float32), "label": np.zeros(16, np.int32)}
    tensors.write(tmp_path / "synthetic", batch)
    data = replace(points(tmp_path / "data"), synthetic=str(tmp_path / "synthetic"))
    trained("sequential", tmp_path / "trial", data, inputs=inputs, train_steps=20, turns=0)
    assert len(count) == closed
    measure.release_pipeline()
    assert len(count) == 1
