"""What is timed has the machine alone, what is not timed shares it; the others wait, or say that they do not."""

from __future__ import annotations

import contextlib
import fcntl
import getpass
import multiprocessing
import os
import re
import subprocess
import sys
import threading
import time
from typing import TYPE_CHECKING

import pytest

from steelyard.host import exclusive, holders, kernel_lock
from steelyard.host import machine_lock as of_machine
from steelyard.host.exclusive import Patience
from steelyard.host.machine_lock import machine_lock

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

HOLD = """
import sys, time
from steelyard.host import exclusive
shared = len(sys.argv) > 1
with exclusive.use(print, name="the secret study", command="steelyard run secret", shared=shared) as alone:
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
    with _holding() as process:
        yield process


@pytest.fixture
def sharing() -> Iterator[subprocess.Popen[str]]:
    """Another process that shares the lock, as a certification does."""
    with _holding("shared") as process:
        yield process


@contextlib.contextmanager
def _holding(*how: str) -> Iterator[subprocess.Popen[str]]:
    with subprocess.Popen([sys.executable, "-c", HOLD, *how], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held True\n"
        yield process
        process.kill()


def _until(true: Callable[[], bool]) -> None:
    end_s = time.monotonic() + 60
    while not true():
        assert time.monotonic() < end_s
        time.sleep(0.01)


def _named(process: subprocess.Popen[str]) -> str:
    """Return how a process that has the turn is named, up to the time since when it has it."""
    return f"This machine is in use by process {process.pid} of user {getpass.getuser()} (steelyard run secret, since "


def test_alone_on_the_machine_nothing_is_said(tmp_path: Path) -> None:
    said: list[str] = []
    for patience in (Patience(), Patience(beside=True), Patience(0)):
        with exclusive.use(said.append, patience) as alone:
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
    (sentence,) = said
    assert re.fullmatch(rf"{re.escape(_named(other))}\d\d:\d\d\)\. This command waits until it is free\.", sentence)
    assert started == []
    other.kill()
    thread.join(30)
    assert started == [True]


@pytest.mark.parametrize(
    ("patience", "because"),
    [
        (Patience(0), "This command was told not to wait, so nothing was done."),
        (Patience(0.06), "It was not free within 0.001 minutes (--wait), so nothing was done."),
    ],
)
def test_a_command_waits_no_longer_than_it_may(patience: Patience, because: str, other: subprocess.Popen[str]) -> None:
    said: list[str] = []
    with pytest.raises(exclusive.Busy) as refused, exclusive.use(said.append, patience):
        pytest.fail("has the turn of another")
    assert str(refused.value).startswith(_named(other))
    assert str(refused.value).endswith(because)
    assert refused.value.exit_code != 0
    assert len(said) == (1 if patience.limit_s else 0), "only who waits says so"
    assert all("for 0.001 minutes at most" in sentence for sentence in said)


def test_who_is_stopped_while_waiting_is_told_apart_from_who_is_stopped_at_work(
    other: subprocess.Popen[str],
) -> None:
    def stop(_: str) -> None:
        raise KeyboardInterrupt

    with pytest.raises(exclusive.StoppedWaiting), exclusive.use(stop):
        pytest.fail("has the turn of another")
    other.kill()
    other.wait()
    with pytest.raises(KeyboardInterrupt) as stopped, exclusive.use(stop):
        raise KeyboardInterrupt
    assert stopped.type is KeyboardInterrupt


def test_what_shares_a_turn_does_not_wait_for_others_that_share(sharing: subprocess.Popen[str]) -> None:
    with exclusive.use(pytest.fail, Patience(0), shared=True) as alone:
        assert alone
    with pytest.raises(exclusive.Busy, match=str(sharing.pid)), exclusive.use(pytest.fail, Patience(0)):
        pytest.fail("is timed beside what shares")
    assert exclusive.holder() == "the secret study"


def test_what_shares_a_turn_waits_for_what_is_timed(other: subprocess.Popen[str]) -> None:
    with pytest.raises(exclusive.Busy, match=str(other.pid)), exclusive.use(pytest.fail, Patience(0), shared=True):
        pytest.fail("disturbs what is timed")


def test_all_that_share_a_turn_are_named(sharing: subprocess.Popen[str]) -> None:
    with _holding("shared") as second:
        with pytest.raises(exclusive.Busy) as refused, exclusive.use(pytest.fail, Patience(0)):
            pytest.fail("is timed beside what shares")
        assert all(f"process {each.pid} of user " in str(refused.value) for each in (sharing, second))


def test_a_new_holder_is_named_when_the_first_has_ended(sharing: subprocess.Popen[str]) -> None:
    said: list[str] = []

    def run() -> None:
        with contextlib.suppress(exclusive.Busy), exclusive.use(said.append, Patience(30)):
            pass

    with _holding("shared") as second:
        thread = threading.Thread(target=run)
        thread.start()
        _until(lambda: len(said) == 1)
        sharing.kill()
        _until(lambda: len(said) == 2)
        assert str(sharing.pid) in said[0]
        assert str(second.pid) in said[1]
        assert str(sharing.pid) not in said[1]
    thread.join(30)


def test_without_waiting_the_second_run_continues_with_a_warning(other: subprocess.Popen[str]) -> None:
    said: list[str] = []
    with exclusive.use(said.append, Patience(beside=True)) as alone:
        assert not alone
    (sentence,) = said
    assert sentence.startswith(_named(other))
    assert sentence.endswith("Both disturb each other, and this one does not wait (--no-guard).")


def test_an_error_during_a_run_frees_the_machine() -> None:
    with pytest.raises(ZeroDivisionError), exclusive.use(lambda _: None):
        raise ZeroDivisionError
    with exclusive.use(pytest.fail, Patience(0)) as alone:
        assert alone


def test_the_holder_of_a_turn_is_named_while_it_is_held(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STEELYARD_CACHE", str(tmp_path))
    assert exclusive.holder() == ""
    with exclusive.use(lambda _: None, name="20260101-study"):
        assert exclusive.holder() == "20260101-study"
        (note,) = (tmp_path).glob("turns-on-*/*.json")
        assert note.stat().st_mode & 0o077 == 0 or note.parent.stat().st_mode & 0o077 == 0
        note.write_text("damaged")
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
    monkeypatch.setenv(of_machine.VARIABLE, str(folder))
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

    with exclusive.use(lambda _: None, Patience(0), name="an earlier one", of_machine=False):
        assert exclusive.holder() == "an earlier one"
    thread = threading.Thread(target=run)
    thread.start()
    time.sleep(0.3)
    assert (said, started) == ([exclusive.WAITING.format(_process_of(elsewhere), "")], [])
    assert exclusive.holder() == exclusive.OTHER, "neither this run, which waits, nor the one before it"
    elsewhere.kill()
    thread.join(30)
    assert started == [True]
    assert exclusive.holder() == ""


def test_beside_a_run_with_another_cache_a_run_that_does_not_wait_says_so(elsewhere: subprocess.Popen[str]) -> None:
    said: list[str] = []
    with exclusive.use(said.append, Patience(beside=True)) as alone:
        assert not alone
    assert said == [exclusive.BESIDE.format(_process_of(elsewhere))]


def test_where_the_system_does_not_tell_who_it_is_nobody_is_named(
    elsewhere: subprocess.Popen[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kernel_lock, "LOCKS", tmp_path / "missing")
    with pytest.raises(exclusive.Busy) as refused, exclusive.use(pytest.fail, Patience(0)):
        pytest.fail(f"has the turn of {elsewhere.pid}")
    assert str(refused.value).startswith(exclusive.IN_USE.format(exclusive.UNKNOWN))


def _process_of(other: subprocess.Popen[str]) -> str:
    (found,) = holders.of_processes([other.pid])
    assert found.title.startswith(f"process {other.pid} of user {getpass.getuser()} (steelyard, since ")
    return found.title


def test_of_a_command_of_others_only_what_it_does_is_told() -> None:
    """Its arguments may hold names and passwords."""
    hold = [
        "-c",
        "import time; print(flush=True); time.sleep(60)",
        "/opt/bin/steelyard",
        "run",
        "secret",
        "--store",
        "x:y@z",
    ]
    with subprocess.Popen([sys.executable, *hold], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        process.stdout.readline()
        (found,) = holders.of_processes([process.pid])
        assert found.command == "steelyard run"
        process.kill()
        process.wait()
        assert holders.of_processes([process.pid]) == []


def test_of_a_run_with_another_cache_nothing_is_written_for_all_to_read(
    elsewhere: subprocess.Popen[str], locks: Path
) -> None:
    assert exclusive.holder() == exclusive.OTHER
    assert [path.read_bytes() for path in locks.iterdir()] == [b""]


def test_what_concerns_one_cache_alone_does_not_wait_for_runs_with_others(elsewhere: subprocess.Popen[str]) -> None:
    said: list[str] = []
    with exclusive.use(said.append, Patience(0), of_machine=False) as alone:
        assert alone
    assert said == []


@pytest.mark.parametrize("own", ["", "nodes/b"])
def test_a_node_that_is_simulated_on_the_machine_of_others_has_a_turn_of_its_own(
    own: str, elsewhere: subprocess.Popen[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "nodes" / "b").mkdir(parents=True)
    monkeypatch.setenv(of_machine.VARIABLE, own and str(tmp_path / own))
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
    os.environ[of_machine.VARIABLE] = locks
    os.setgroups([])
    os.setuid(65534)
    found.put(machine_lock().acquire())


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
        monkeypatch.setenv(of_machine.VARIABLE, f"{name}/locks")
        before = os.umask(0o077)
        lock = machine_lock()
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
    monkeypatch.delenv(of_machine.VARIABLE)
    monkeypatch.setenv("TMPDIR", str(tmp_path))  # of one user
    folders = {name: tmp_path / name for name in ("missing", "of-root", "unsafe", "good", "second")}
    for name, mode in (("of-root", 0o755), ("unsafe", 0o777), ("good", 0o1777), ("second", 0o1777)):
        folders[name].mkdir()
        folders[name].chmod(mode)
    monkeypatch.setattr(of_machine, "FOLDERS", tuple(map(str, folders.values())))
    with exclusive.use(pytest.fail):
        assert [path.parent.name for path in tmp_path.rglob("steelyard-*.lock")] == ["good"]
    monkeypatch.setattr(of_machine, "FOLDERS", (str(folders["unsafe"]),))
    with exclusive.use(pytest.fail) as alone:
        assert alone
    assert not list(folders["unsafe"].iterdir())
