"""What the processes of a certificate imported from elsewhere; its files are part of what decides the certificate."""

from collections.abc import Iterable
from itertools import chain
from pathlib import Path

from steelyard.certificates.plan import CertificationPlan, Task
from steelyard.results import imported


def of_task(task: Task) -> dict[str, str]:
    """Return path -> SHA-256 of what the process of a task has imported; nothing if it did not run or its record is damaged."""
    try:
        return imported.of_process(Path(task.job.folder))
    except (OSError, ValueError):
        return {}


def of_candidate(plan: CertificationPlan) -> list[Task]:
    """Return all tasks of a certificate besides those whose results are cached as references."""
    return [plan.candidate_task, *chain.from_iterable(plan.further_tasks)]


def joined(found: Iterable[dict[str, str]]) -> tuple[dict[str, str], str]:
    """Return the files of several processes, and the first one that was not the same in all of them; empty if all were."""
    files: dict[str, str] = {}
    odd = ""
    for each in found:
        odd = odd or next((path for path in each if files.get(path, each[path]) != each[path]), "")
        files |= each
    return files, odd
