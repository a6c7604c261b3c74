"""Code that a framework's compiler keeps: shared between processes, without what a failed one has left."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import recorded_trials

from steelyard import host
from steelyard.environments import Environment
from steelyard.files import paths
from steelyard.measure import compiled
from steelyard.results.trials import Trial

if TYPE_CHECKING:
    from collections.abc import Callable

    from steelyard_worker.protocol import Job

VARIABLE = "TORCHINDUCTOR_CACHE_DIR"


@pytest.fixture
def environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Environment:
    monkeypatch.setenv("STEELYARD_CACHE", str(tmp_path / "cache"))
    return Environment("pytorch", "pytorch", "2.0", Path("/python"), "3.11", {}, contents="abc")


def job(folder: Path, mode: str = "compiled") -> Job:
    known = recorded_trials.job(folder)
    settings = replace(known.case.settings, mode=mode)
    return replace(known, case=replace(known.case, framework="pytorch", settings=settings), variables={"A": "1"})


def process(files: dict[str, str], done: bool = True) -> Callable[[Job], Trial]:
    """Return a process that writes these files into its folder for compiled code, and records what was there before."""

    def run(given: Job) -> Trial:
        own = Path(given.variables[VARIABLE])
        before = {str(path.relative_to(own)): path.read_text() for path in own.rglob("*") if path.is_file()}
        for name, text in files.items():
            (own / name).parent.mkdir(parents=True, exist_ok=True)
            (own / name).write_text(text)
        return Trial(Path(given.folder), given, applied=before, done=done)

    return run


def test_a_process_finds_what_earlier_ones_have_compiled(environment: Environment, tmp_path: Path) -> None:
    first = compiled.launched(job(tmp_path), environment, process({"ab/kernel.so": "whole"}))
    second = compiled.launched(job(tmp_path), environment, process({"cd/kernel.so": "other"}))
    third = compiled.launched(job(tmp_path), environment, process({}))
    assert first.applied == {}
    assert second.applied == {"ab/kernel.so": "whole"}
    assert third.applied == {"ab/kernel.so": "whole", "cd/kernel.so": "other"}
    assert third.job.variables["A"] == "1"


def test_what_a_failed_process_has_written_is_gone(environment: Environment, tmp_path: Path) -> None:
    compiled.launched(job(tmp_path), environment, process({"ab/kernel.so": ""}, done=False))
    assert compiled.launched(job(tmp_path), environment, process({})).applied == {}

    def killed(_: Job) -> Trial:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        compiled.launched(job(tmp_path), environment, killed)
    folder = paths.cache_folder() / compiled.FOLDER
    assert [path.name for path in folder.iterdir() if path.suffix == compiled.PARTIAL] == []


def test_another_environment_shares_nothing(environment: Environment, tmp_path: Path) -> None:
    compiled.launched(job(tmp_path), environment, process({"ab/kernel.so": "whole"}))
    changed = replace(environment, contents="def")
    assert compiled.launched(job(tmp_path), changed, process({})).applied == {}


def test_another_machine_with_the_same_cache_shares_nothing(
    environment: Environment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    compiled.launched(job(tmp_path), environment, process({"ab/kernel.so": "whole"}))
    other = replace(host.describe(), cpu_flags=("sse2",))
    monkeypatch.setattr(host, "describe", lambda: other)
    assert compiled.launched(job(tmp_path), environment, process({})).applied == {}


def test_modes_that_keep_nothing_get_no_folder(environment: Environment, tmp_path: Path) -> None:
    def run(given: Job) -> Trial:
        return Trial(Path(given.folder), given, done=True)

    assert VARIABLE not in compiled.launched(job(tmp_path, "eager"), environment, run).job.variables
    assert not (paths.cache_folder() / compiled.FOLDER).exists()
