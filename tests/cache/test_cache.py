"""What the cache holds, and what `prune` removes of it."""

from __future__ import annotations

import json
import os
import time
from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any

import pytest
import recorded_trials

from steelyard import cache, environments
from steelyard.certificates import method, rule_checks
from steelyard.certificates import record as certificates
from steelyard.certificates.record import Certificate
from steelyard.environments import EnvironmentName
from steelyard.errors import UserError
from steelyard.host import exclusive, machine_lock
from steelyard.results import record, run_folders
from steelyard_worker.protocol import Data

if TYPE_CHECKING:
    from pathlib import Path

KEYS = [f"{number:020x}" for number in range(9)]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of the cache."""
    monkeypatch.setenv("STEELYARD_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def entry(path: Path, size: int = 1000) -> Path:
    """Make a folder with a file of some size, and its lock file."""
    path.mkdir(parents=True)
    (path / "content").write_bytes(b"x" * size)
    path.with_name(f"{path.name}.lock").touch()
    return path


def certificate(key: str, version: int) -> Path:
    """Store a certificate of some version of the method; its other fields do not matter here."""
    values: dict[str, Any] = dict.fromkeys((each.name for each in fields(Certificate)), "")
    return certificates.save(Certificate(**values | {"key": key, "passed": True, "method": version, "imported": {}}))


def run_with(runs: Path, weights: Path, data: Data, rates: str = "") -> Path:
    """Make a run of which a process was given these inputs."""
    folder = runs / "20260101-000000-cpu"
    job = replace(recorded_trials.job(folder), weights=str(weights), data=data, rates=rates)
    recorded_trials.write(folder / "trials" / "r01.0-fake", job, recorded_trials.events())
    (folder / record.FILE).write_text("{}")
    return folder


def test_inputs_that_no_run_names_are_removed(folder: Path, tmp_path: Path) -> None:
    kept = [
        entry(folder / "weights" / KEYS[0]),
        entry(folder / "data" / "synthetic" / KEYS[1]),
        entry(folder / "data" / "prepared" / f"digits-{KEYS[2]}"),
        entry(folder / "data" / "orders" / KEYS[3]),
        entry(folder / "data" / "rates" / KEYS[4]),
    ]
    unused = [
        entry(folder / "weights" / KEYS[4]),
        entry(folder / "data" / "prepared" / f"digits-{KEYS[5]}"),
        entry(folder / "weights" / f"{KEYS[0]}.partial"),
        entry(folder / "data" / "rates" / KEYS[5]),
    ]
    run_with(tmp_path / "runs", kept[0], Data(*map(str, kept[1:4])), str(kept[4]))
    removed = cache.prune(tmp_path / "runs")
    assert {each.path for each in removed} == set(unused)
    assert sum(each.size_bytes for each in removed) == 4000
    assert all(path.exists() for path in kept)
    assert not any(path.exists() or path.with_name(f"{path.name}.lock").exists() for path in unused)
    assert cache.prune(tmp_path / "runs") == []


def test_what_steelyard_has_not_made_is_left_alone(folder: Path, tmp_path: Path) -> None:
    own = [
        entry(folder / "weights" / "holiday"),
        entry(folder / "data" / "prepared" / "photos"),
        entry(folder / "letters"),
    ]
    downloads = entry(folder / "data" / "downloads" / "keras-imdb-1.0")
    assert cache.prune(tmp_path / "runs") == []
    assert all(path.exists() for path in (*own, downloads))


def test_environments_without_a_lock_file_are_removed(folder: Path, tmp_path: Path) -> None:
    (planned,) = environments.plan_environments([EnvironmentName("pytorch")]).values()
    assert isinstance(planned, environments.EnvironmentSpec)
    current = entry(folder / "environments" / planned.folder_name)
    older = entry(folder / "environments" / "pytorch-1.0.0-cpu-0123456789ab")
    entry(folder / "environments" / "logs")
    assert [each.path for each in cache.prune(tmp_path / "runs")] == [older]
    assert current.exists()
    assert not older.exists()


def test_certificates_that_this_version_does_not_accept_are_removed(folder: Path, tmp_path: Path) -> None:
    current = certificate("0" * 64, cache.method.VERSION)
    older = certificate("1" * 64, cache.method.VERSION - 1)
    damaged = certificate("2" * 64, cache.method.VERSION)
    damaged.write_text(damaged.read_text().replace("true", "false", 1))
    recent, old = (entry(folder / "certificates" / "references" / key) for key in KEYS[:2])
    long_ago = time.time() - (cache.KEPT_DAYS + 1) * 86_400
    os.utime(old, (long_ago, long_ago))
    assert {each.path for each in cache.prune(tmp_path / "runs")} == {older, damaged, old}
    assert current.exists()
    assert recent.exists()


def test_nothing_is_removed_while_a_run_uses_the_machine_or_its_folder(folder: Path, tmp_path: Path) -> None:
    unused = entry(folder / "weights" / KEYS[0])
    run = run_with(tmp_path / "runs", unused.with_name(KEYS[1]), Data("/synthetic"))
    with exclusive.use(lambda _: None), pytest.raises(UserError, match="A run is in progress, so nothing was removed"):
        cache.prune(tmp_path / "runs")
    with run_folders.claim(run), pytest.raises(UserError, match="A run is in progress, so nothing was removed"):
        cache.prune(tmp_path / "runs")
    assert unused.exists()


def test_runs_with_another_cache_do_not_keep_what_this_one_does_not_use(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    unused = entry(folder / "weights" / KEYS[0])
    monkeypatch.setenv(machine_lock.VARIABLE, str(tmp_path))
    lock = machine_lock.machine_lock()
    assert lock.acquire()
    assert [each.path for each in cache.prune(tmp_path / "runs")] == [unused]
    lock.release()


def test_the_sizes_are_summed_by_kind(folder: Path, tmp_path: Path) -> None:
    entry(folder / "weights" / KEYS[0], 5)
    entry(folder / "data" / "orders" / KEYS[1], 7)
    entry(folder / "data" / "downloads" / "x", 11)
    shares = {share.kind: share for share in cache.shares(cache.entries(tmp_path / "runs"))}
    assert (shares["inputs"].entries, shares["inputs"].size_bytes, shares["inputs"].unused_bytes) == (2, 12, 12)
    assert (shares["downloads"].size_bytes, shares["downloads"].unused) == (11, 0)
    assert shares["certificates"].entries == shares["environments"].size_bytes == 0
    assert json.loads(json.dumps(shares["inputs"].to_dict()))["folder"] == str(folder / "weights")


def test_a_damaged_job_is_no_obstacle(folder: Path, tmp_path: Path) -> None:
    used = entry(folder / "weights" / KEYS[0])
    run = run_with(tmp_path / "runs", used, Data("/synthetic"))
    for number, text in enumerate(("{", "[]", '{"weights": 3}', '{"weights": "/x", "data": 1}'), 2):
        other = run / "trials" / f"r0{number}.0-fake"
        other.mkdir()
        (other / "job.json").write_text(text)
    assert cache.prune(tmp_path / "runs") == []


def test_checks_of_update_rules_are_kept_unless_their_version_is_another(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = folder / "certificates" / "rules" / f"{KEYS[0]}.json"
    rule_checks.save(rule_checks.RuleCheck(KEYS[0], True, "", 200, 0.5, method.VERSION))
    assert cache.prune(tmp_path / "runs") == []
    monkeypatch.setattr(rule_checks, "VERSION", method.VERSION + 1)
    assert [each.path for each in cache.prune(tmp_path / "runs")] == [path]
    assert not path.exists()
