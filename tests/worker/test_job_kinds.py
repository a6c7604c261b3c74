"""What follows from the kind of a job: one table decides it in both packages."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from worker.scripted_training import LINE, SIZES

from steelyard.catalog import frameworks
from steelyard_worker import job_kinds, protocol, work
from steelyard_worker.case import Case, Optimizer, Settings
from steelyard_worker.protocol import Data, Job

if TYPE_CHECKING:
    from pathlib import Path

SETTINGS = frameworks.framework("fake").complete(Settings("scripted"))
CASE = Case("line", "small", SIZES, "", {}, Optimizer("sgd", 0.1), "fake", SETTINGS, memory_limit=1)


def first_error(kind: str, folder: Path) -> str:
    """Return the message with which a process of a job ends that may use one byte of memory."""
    job = Job(kind, CASE, str(LINE), "", Data(""), str(folder))
    subprocess.run(
        [sys.executable, str(frameworks.WORKER)],
        input=protocol.to_line(job) + "\n",
        text=True,
        check=False,
        cwd=folder,
        capture_output=True,
    )
    events = protocol.read_events(folder / protocol.EVENTS)
    return next(f"{each['kind']}: {each['message']}" for each in events if each["event"] == "error")


@pytest.mark.parametrize("kind", ["measure", "probe", "search"])
def test_a_process_that_is_timed_compares_its_exact_peak_with_the_limit(kind: str, tmp_path: Path) -> None:
    """What a search chooses is measured in rounds, so a setting that exceeds the limit must fail in the search."""
    assert first_error(kind, tmp_path).startswith("out-of-memory: The process used ")


def test_a_certificate_may_use_more_memory_than_the_limit(tmp_path: Path) -> None:
    assert not first_error("certify", tmp_path).startswith("out-of-memory")


def test_every_kind_but_one_that_only_reads_settings_has_its_work() -> None:
    assert work.RUNS.keys() == job_kinds.KINDS.keys() - {job_kinds.SETTINGS}


def test_a_kind_of_another_version_is_refused_by_a_worker_and_counts_nowhere(tmp_path: Path) -> None:
    assert first_error("remeasure", tmp_path) == (
        "unsupported: There is no kind of job 'remeasure' in this version of steelyard."
    )
    assert job_kinds.of("remeasure") == job_kinds.UNKNOWN
    assert not any((job_kinds.UNKNOWN.in_rounds, job_kinds.UNKNOWN.limited, job_kinds.UNKNOWN.timed))
