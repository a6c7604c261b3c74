"""What a worker finds when it starts: its job, its folder, its interpreter and its environment; and the hash that identifies it."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import re
import tempfile
from pathlib import Path

import pytest
import recorded_trials

from measure.staged_workers import HANG, OPENING, PYTHON, Stage
from steelyard.catalog import frameworks
from steelyard.measure import launch
from steelyard.results import trials


def test_the_worker_gets_the_job_that_is_stored(stage: Stage) -> None:
    stage.play("json.dump(job, open('heard.json', 'w')); say('done')")
    heard = json.loads((stage.folder / "heard.json").read_text())
    assert heard == json.loads((stage.folder / "job.json").read_text())
    assert heard["spawned_ns"] > 0
    assert heard["worker_hash"] == launch.worker_hash(stage.root / "worker")


LEAVES_A_FILE = "import tempfile; tempfile.mkstemp(); open('where.txt', 'w').write(tempfile.gettempdir()); "


@pytest.mark.parametrize("end", ["say('done')", "os.kill(os.getpid(), signal.SIGKILL)", "sys.exit(1)"])
def test_temporary_files_do_not_outlive_the_worker(stage: Stage, end: str) -> None:
    stage.play(LEAVES_A_FILE + end)
    folder = Path((stage.folder / "where.txt").read_text())
    assert folder.parent == Path(tempfile.gettempdir())
    assert not folder.exists()


def test_a_worker_runs_where_no_temporary_folder_can_be_made(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(**_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(tempfile, "TemporaryDirectory", full)
    assert stage.play("assert 'steelyard-' not in os.environ.get('TMPDIR', ''); say('done')").done


def test_an_interpreter_that_is_missing_or_cannot_be_executed_is_named(stage: Stage) -> None:
    missing = stage.root / "gone" / "python"
    trial = stage.play("", missing)
    assert trial.error is not None
    assert trial.error[0] == "crash"
    assert f"The interpreter {missing} could not be started (No such file or directory)" in trial.error[1]
    assert trials.read(stage.folder).error == trial.error
    (stage.root / "text").write_bytes(b"\x00\x01")
    (stage.root / "text").chmod(0o755)
    trial = stage.play("", stage.root / "text")
    assert trial.error is not None
    assert "could not be started (Exec format error)" in trial.error[1]


def test_the_folder_of_an_interrupted_process_is_renamed_and_not_mixed_with_the_next(stage: Stage) -> None:
    stage.play("block(0, 7); open('samples.i64', 'ab').write(b'0' * 56); " + HANG)
    trial = stage.play("block(0, 5); open('samples.i64', 'ab').write(b'0' * 40); say('done')")
    assert [block.steps for block in trial.blocks] == [5]
    assert (stage.folder / "samples.i64").stat().st_size == 40
    aside = trials.read(stage.folder.with_name("r01.0-fake.earlier1"))
    assert [block.steps for block in aside.blocks] == [7]


def test_the_worker_hash_depends_on_every_source_file_and_on_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("1")
    (tmp_path / "b.toml").write_text("x = 1")
    first = launch.worker_hash(tmp_path)
    (tmp_path / "__pycache__").mkdir()
    (tmp_path / "__pycache__" / "a.pyc").write_bytes(b"0")
    assert launch.worker_hash(tmp_path) == first
    (tmp_path / "b.toml").write_text("x = 2")
    assert launch.worker_hash(tmp_path) != first
    os.rename(tmp_path / "a.py", tmp_path / "c.py")  # noqa: PTH104
    (tmp_path / "b.toml").write_text("x = 1")
    assert launch.worker_hash(tmp_path) != first


def test_a_workers_hash_includes_the_adapter_of_the_users_own(tmp_path: Path) -> None:
    worker, own, other = (tmp_path / name for name in ("worker", "own", "other"))
    for folder, text in ((worker, "1"), (own, "2"), (other, "3")):
        folder.mkdir()
        (folder / "adapter.py").write_text(text)
    without = launch.worker_hash(worker)
    hashes = {without, launch.worker_hash(worker, str(own)), launch.worker_hash(worker, str(other))}
    assert len(hashes) == 3
    assert all(re.fullmatch("[0-9a-f]{16}", each) for each in hashes)
    text = b"adapter.py\0" + (worker / "adapter.py").read_bytes()
    assert without == hashlib.sha256(text).hexdigest()[:16]


def test_the_job_names_the_adapter_of_a_framework_of_the_users_own(stage: Stage) -> None:
    folder = stage.root / "frameworks" / "mine"
    folder.mkdir(parents=True)
    (folder / "framework.toml").write_text((frameworks.BUILT_IN / "fake" / "framework.toml").read_text())
    frameworks.use((str(folder.parent),))
    try:
        worker = stage.root / "worker"
        worker.mkdir()
        (worker / "__main__.py").write_text(OPENING + "say('done')")
        job = recorded_trials.job(stage.folder, framework="mine")
        trial = launch.launch(job, PYTHON, stage.heard.append, launch.Guard(), worker)
        assert trial.job.adapter_folder == str(folder)
        assert trial.job.worker_hash == launch.worker_hash(worker, str(folder)) != launch.worker_hash(worker)
    finally:
        frameworks.use(())
    assert stage.play("say('done')").job.adapter_folder == ""


def test_the_stored_job_can_be_read_by_people(stage: Stage) -> None:
    stage.play("say('done')")
    assert len((stage.folder / "job.json").read_text().splitlines()) > 20


def test_a_worker_runs_in_its_folder_without_the_users_python_settings(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", "/somewhere")
    script = "json.dump([os.getcwd(), sys.path, sys.flags.isolated, os.getpgid(0) == os.getpid()], open('heard', 'w'))"
    stage.play(f"{script}; say('done'); print('out'); print('err', file=sys.stderr)")
    folder, path, isolated, leads_its_group = json.loads((stage.folder / "heard").read_text())
    assert folder == str(stage.folder)
    assert "/somewhere" not in path
    assert (isolated, leads_its_group) == (1, True)
    assert sorted((stage.folder / "output.log").read_text().split()) == ["err", "out"]
    assert trials.read(stage.folder).job.spawned_ns > 0


def test_several_interrupted_processes_are_kept_apart(stage: Stage) -> None:
    for _ in range(3):
        stage.play("block(0, 7); say('done')")
    names = sorted(folder.name for folder in stage.folder.parent.iterdir())
    assert names == ["r01.0-fake", "r01.0-fake.earlier1", "r01.0-fake.earlier2"]


def test_a_folder_without_events_is_used(stage: Stage) -> None:
    stage.folder.mkdir(parents=True)
    (stage.folder / "note").write_text("")
    assert stage.play("say('done')").done
    assert (stage.folder / "note").exists()


def test_a_worker_finds_the_programs_of_its_environment_first(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONSTARTUP", "/somewhere")
    monkeypatch.setenv("ONEDNN_DEFAULT_FPMATH_MODE", "BF16")
    monkeypatch.setenv("LC_TEST", "kept")
    stage.play("json.dump(dict(os.environ), open('heard', 'w')); say('done')")
    found = json.loads((stage.folder / "heard").read_text())
    assert found["PATH"].split(os.pathsep)[0] == str(PYTHON.parent)
    assert "PYTHONSTARTUP" not in found
    assert "ONEDNN_DEFAULT_FPMATH_MODE" not in found
    assert found["LC_TEST"] == "kept"
    assert found["OF_THE_JOB"] == "set"
