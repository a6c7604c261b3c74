"""One run at a time on a machine: the second waits, or says that it does not."""

from __future__ import annotations

import contextlib
import fcntl
import multiprocessing
import os
import subprocess
import sys
import threading
import time
from typing import TYPE_CHECKING

import pytest

from steelyard.host import exclusive, machine_lock
from steelyard.host.machine_lock import MachineLock

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

HOLD = """
import sys, time
from steelyard.host import exclusive
with exclusive.use(print, name="the secret study") as alone:
    print("held", alone, flush=True)
    time.sleep(60)
"""


@pytest.fixture(autouse=True)
def _cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STEELYARD_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(exclusive, "POLL_S", 0.02)


@pytest.fixture
def other() -> Iterator[subprocess.Popen[str]]:
    """Another process that holds the lock."""
    with subprocess.Popen([sys.executable, "-c", HOLD], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held True\n"
        yield process
        process.kill()


def test_alone_on_the_machine_nothing_is_said(tmp_path: Path) -> None:
    said: list[str] = []
    for wait in (True, False):
        with exclusive.use(said.append, wait) as alone:
            assert alone
    assert said == []
    assert (tmp_path / "cache").stat().st_mode & 0o777 == 0o700


def test_the_second_run_says_that_it_waits_and_starts_when_the_first_is_killed(other: subprocess.Popen[str]) -> None:
    said: list[str] = []
    started: list[bool] = []

    def run() -> None:
        with exclusive.use(said.append) as alone:
            started.append(alone)

    thread = threading.Thread(target=run)
    thread.start()
    time.sleep(0.3)
    assert (said, started) == ([exclusive.WAITING.format(exclusive.WHO)], [])
    other.kill()
    thread.join(30)
    assert started == [True]


def test_without_waiting_the_second_run_continues_with_a_warning(other: subprocess.Popen[str]) -> None:
    said: list[str] = []
    with exclusive.use(said.append, wait=False) as alone:
        assert not alone
    assert said == [exclusive.BESIDE.format(exclusive.WHO)]


def test_an_error_during_a_run_frees_the_machine() -> None:
    with pytest.raises(ZeroDivisionError), exclusive.use(lambda _: None):
        raise ZeroDivisionError
    with exclusive.use(lambda _: None, wait=False) as alone:
        assert alone


def test_the_holder_of_a_turn_is_named_while_it_is_held(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STEELYARD_CACHE", str(tmp_path))
    assert exclusive.holder() == ""
    with exclusive.use(lambda _: None, name="20260101-study"):
        assert exclusive.holder() == "20260101-study"
        exclusive._name_path().unlink()
        assert exclusive.holder() == "another run"
    with exclusive.use(lambda _: None):
        assert exclusive.holder() == "another run"
    assert exclusive.holder() == ""


@pytest.fixture
def locks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder that stands for the one in which all users of the machine can write."""
    folder = tmp_path / "locks"
    folder.mkdir()
    folder.chmod(0o1777)
    monkeypatch.setenv(machine_lock.VARIABLE, str(folder))
    return folder


@pytest.fixture
def elsewhere(
    locks: Path, other: subprocess.Popen[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> subprocess.Popen[str]:
    """A run with another cache that has the turn."""
    monkeypatch.setenv("STEELYARD_CACHE", str(tmp_path / "mine"))
    return other


def test_a_run_with_another_cache_is_waited_for(elsewhere: subprocess.Popen[str]) -> None:
    said: list[str] = []
    started: list[bool] = []

    def run() -> None:
        with exclusive.use(said.append, name="mine") as alone:
            started.append(alone)

    with exclusive.use(lambda _: None, wait=False, name="an earlier one", of_machine=False):
        assert exclusive.holder() == "an earlier one"
    thread = threading.Thread(target=run)
    thread.start()
    time.sleep(0.3)
    assert (said, started) == ([exclusive.WAITING.format(exclusive.WHO_ELSE)], [])
    assert exclusive.holder() == exclusive.OTHER, "neither this run, which waits, nor the one before it"
    elsewhere.kill()
    thread.join(30)
    assert started == [True]
    assert exclusive.holder() == ""


def test_beside_a_run_with_another_cache_a_run_that_does_not_wait_says_so(elsewhere: subprocess.Popen[str]) -> None:
    said: list[str] = []
    with exclusive.use(said.append, wait=False) as alone:
        assert not alone
    assert said == [exclusive.BESIDE.format(exclusive.WHO_ELSE)]


def test_of_a_run_with_another_cache_nothing_is_told(elsewhere: subprocess.Popen[str], locks: Path) -> None:
    assert exclusive.holder() == exclusive.OTHER
    assert [path.read_bytes() for path in locks.iterdir()] == [b""]


def test_what_concerns_one_cache_alone_does_not_wait_for_runs_with_others(elsewhere: subprocess.Popen[str]) -> None:
    said: list[str] = []
    with exclusive.use(said.append, wait=False, of_machine=False) as alone:
        assert alone
    assert said == []


@pytest.mark.parametrize("own", ["", "nodes/b"])
def test_a_node_that_is_simulated_on_the_machine_of_others_has_a_turn_of_its_own(
    own: str, elsewhere: subprocess.Popen[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "nodes" / "b").mkdir(parents=True)
    monkeypatch.setenv(machine_lock.VARIABLE, own and str(tmp_path / own))
    assert exclusive.holder() == ""
    with exclusive.use(pytest.fail) as alone:
        assert alone


@pytest.mark.parametrize("in_its_place", ["symbolic link", "folder", "pipe", "no folder"])
def test_a_lock_that_cannot_be_opened_is_done_without(in_its_place: str, locks: Path, tmp_path: Path) -> None:
    with exclusive.use(pytest.fail):
        (path,) = locks.iterdir()
    path.unlink()
    if in_its_place == "symbolic link":
        (tmp_path / "target").touch()
        path.symlink_to(tmp_path / "target")
    elif in_its_place == "folder":
        path.mkdir()
    elif in_its_place == "pipe":
        os.mkfifo(path)
    else:
        locks.rmdir()
    with contextlib.ExitStack() as held:
        if in_its_place in ("symbolic link", "pipe"):  # its owner holds it for ever
            file = os.open(path, os.O_RDWR)
            held.callback(os.close, file)
            fcntl.flock(file, fcntl.LOCK_EX)
        for _ in range(2):
            with exclusive.use(pytest.fail) as alone:
                assert alone
        assert exclusive.holder() == ""


def _without_rights(locks: str, found: multiprocessing.Queue[bool]) -> None:
    os.environ[machine_lock.VARIABLE] = locks
    os.setgroups([])
    os.setuid(65534)
    found.put(MachineLock().acquire())


@pytest.mark.skipif(sys.platform != "linux" or os.geteuid() != 0, reason="only root can be another user as well")
def test_the_lock_of_one_user_is_seen_by_another(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    import tempfile
    from pathlib import Path

    with tempfile.TemporaryDirectory() as name:
        for folder in (Path(name), Path(name) / "locks"):
            folder.mkdir(exist_ok=True)
            folder.chmod(0o1777)
        monkeypatch.setenv(machine_lock.VARIABLE, f"{name}/locks")
        before = os.umask(0o077)
        lock = MachineLock()
        try:
            assert lock.acquire()
        finally:
            os.umask(before)
        (path,) = Path(name, "locks").iterdir()
        assert path.stat().st_mode & 0o777 == 0o666
        assert _seen_by_another(f"{name}/locks") is False
        lock.release()
        assert _seen_by_another(f"{name}/locks") is True


def _seen_by_another(locks: str) -> bool:
    method = multiprocessing.get_context("fork")
    found = method.Queue()
    process = method.Process(target=_without_rights, args=(locks, found))
    process.start()
    taken = found.get(timeout=30)
    process.join(30)
    return taken


def test_the_folder_is_one_in_which_all_users_can_write_and_none_can_remove_what_others_wrote(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(machine_lock.VARIABLE)
    monkeypatch.setenv("TMPDIR", str(tmp_path))  # of one user
    folders = {name: tmp_path / name for name in ("missing", "of-root", "unsafe", "good", "second")}
    for name, mode in (("of-root", 0o755), ("unsafe", 0o777), ("good", 0o1777), ("second", 0o1777)):
        folders[name].mkdir()
        folders[name].chmod(mode)
    monkeypatch.setattr(machine_lock, "FOLDERS", tuple(map(str, folders.values())))
    with exclusive.use(pytest.fail):
        assert [path.parent.name for path in tmp_path.rglob("steelyard-*.lock")] == ["good"]
    monkeypatch.setattr(machine_lock, "FOLDERS", (str(folders["unsafe"]),))
    with exclusive.use(pytest.fail) as alone:
        assert alone
    assert not list(folders["unsafe"].iterdir())
