"""Results of checks of update rules by themselves: JSON files in the cache, one per key; one that cannot be read is missing."""

import json
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from threading import Lock

from steelyard.certificates import record
from steelyard.certificates.method import UNIT_ROUNDOFFS, VERSION
from steelyard.certificates.plan import Task, reference_optimizer
from steelyard.certificates.rule_judgement import judge_rule
from steelyard.certificates.rule_plan import RulePlan
from steelyard.certificates.sources import digest
from steelyard.certificates.tensors import Tensors
from steelyard.files import atomic
from steelyard_worker import records, tensors

FOLDER = "rules"
# JSON has no infinite numbers.
LARGEST = 1e300
_locks: dict[str, Lock] = defaultdict(Lock)


@dataclass(frozen=True)
class RuleCheck:
    """Whether an update rule by itself agrees with its formula over `steps` steps; the sentence says what differs.

    `worst`: largest error of an element as a part of its limit; infinite errors are the largest float. `method`: version.
    """

    key: str
    passed: bool
    sentence: str
    steps: int
    worst: float
    method: int


@contextmanager
def alone(key: str) -> Iterator[None]:
    """Let one thread at a time make the check with this key, so that the others find it."""
    with _locks[key]:
        yield


def conclude(plan: RulePlan, found: Tensors) -> RuleCheck:
    """Return the result of a check from what its process has saved, and save it."""
    job = plan.job
    rule = reference_optimizer(job.case.optimizer, plan.declared)
    rates = tensors.read(Path(job.rates))["rates"] if job.rates else None
    # Kernels hold constants in float32 in any precision (P-41).
    unit = max(UNIT_ROUNDOFFS[job.case.settings.precision], UNIT_ROUNDOFFS["float32"])
    judged = judge_rule(
        rule, tensors.read(Path(job.weights)), tensors.read(Path(job.data.synthetic)), rates, found, unit
    )
    worst = min(judged.worst, LARGEST)
    check = RuleCheck(plan.key, judged.passed, judged.sentence, judged.steps, worst, VERSION)
    save(check)
    return check


def save(check: RuleCheck) -> None:
    """Write a check to the cache."""
    values = asdict(check)
    path = _path(check.key)
    path.parent.mkdir(parents=True, exist_ok=True)
    atomic.write_text(path, json.dumps({"sha256": digest(values), **values}, indent=1))


def find(key: str) -> RuleCheck | None:
    """Return the check with this key; None when there is none, or it cannot be read, or was changed."""
    try:
        raw = records.parse(records.read_text(_path(key)))
        if not isinstance(raw, dict) or raw.pop("sha256", "") != digest(raw):
            return None
        found: RuleCheck = records.convert(RuleCheck, raw, FOLDER)
    except (OSError, ValueError):
        return None
    return found if found.key == key and found.method == VERSION else None


def forget(key: str) -> None:
    """Delete a check, so that it is made again."""
    _path(key).unlink(missing_ok=True)


def task_of(plan: RulePlan) -> Task:
    """Return the process of a check."""
    return Task(plan.environment, plan.job)


def _path(key: str) -> Path:
    return record.folder() / FOLDER / f"{key}.json"
