"""Inputs that processes share: made once however many want them, whole after a kill, and made again when a byte of one changes."""

from __future__ import annotations

import multiprocessing
import os
import shutil
import signal
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from steelyard.catalog import workloads
from steelyard.files import atomic
from steelyard.inputs import data, rates, weights
from steelyard.inputs.data.order import write_order
from steelyard.inputs.data.synthetic import synthesise, synthesise_adversarial, synthesise_set
from steelyard_worker import tensors
from steelyard_worker.case import Optimizer, RateSchedule

if TYPE_CHECKING:
    from collections.abc import Callable
    from multiprocessing.synchronize import Barrier, Event

NETWORK = workloads.described(
    Path(__file__).parents[1] / "workloads" / "line", {"features": 8, "classes": 3, "batch": 16}
)
RISING = Optimizer("sgd", 0.1, schedule=RateSchedule(unit="steps", warmup=3))
LIMIT_S = 100


def _prepared(digits: Path) -> Path:
    return data.prepare(data.DataRequest("mnist-5k", digits)).folder


# Each makes or finds one kind of input in the cache; it gets a folder with a data set.
KINDS: dict[str, Callable[[Path], Path | None]] = {
    "weights": lambda _: weights.initialise(NETWORK.parameters, 1),
    "synthetic batch": lambda _: synthesise(NETWORK, 16, 1),
    "adversarial batch": lambda _: synthesise_adversarial(NETWORK, 16, 1, ""),
    "synthetic set": lambda _: synthesise_set(NETWORK, 80, 1, ""),
    "prepared data": _prepared,
    "order": lambda _: write_order(80, 16, 100, 1),
    "rates": lambda _: rates.write(RISING, 100, 0),
}


@pytest.fixture
def digits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a small data set; the cache is empty."""
    monkeypatch.setenv("STEELYARD_CACHE", str(tmp_path / "cache"))
    rows = np.zeros((50, 785), np.uint8)
    rows[:, -1] = np.arange(50) % 10
    folder = tmp_path / "digits"
    folder.mkdir()
    np.savetxt(folder / "mnist_5k.csv.gz", rows, fmt="%d", delimiter=",")
    return folder


def _counting(log: Path, pause_s: float = 0.0) -> None:
    """Have every folder that is made from now on written into a file, by its name."""
    fill = atomic._fill

    def counted(folder: Path, make: Callable[[Path], object]) -> None:
        with log.open("a") as file:
            file.write(f"{folder.name}\n")
        time.sleep(pause_s)  # the others arrive meanwhile
        fill(folder, make)

    atomic._fill = counted


def _make_all(start: Barrier, digits: Path, log: Path) -> None:
    _counting(log, 0.1)
    start.wait(LIMIT_S)
    for make in KINDS.values():
        assert tensors.is_unchanged(make(digits))


def _begun(target: Callable[..., None], *arguments: Any) -> Any:
    process = multiprocessing.get_context("spawn").Process(target=target, args=arguments)
    process.start()
    return process


def test_processes_that_want_the_same_inputs_at_once_all_get_them_and_each_is_made_once(
    digits: Path, tmp_path: Path
) -> None:
    start = multiprocessing.get_context("spawn").Barrier(4)
    processes = [_begun(_make_all, start, digits, tmp_path / "log") for _ in range(4)]
    for each in processes:
        each.join(LIMIT_S)
    assert [each.exitcode for each in processes] == [0] * 4
    made = (tmp_path / "log").read_text().split()
    assert len(made) == len(KINDS)
    assert sorted(made) == sorted(make(digits).name for make in KINDS.values())
    assert not list((tmp_path / "cache").rglob("*.partial"))


def _make_and_stand_still(folder: Path, part: str, reached: Event) -> None:
    def fill(partial: Path) -> None:
        if part == "half":
            (partial / tensors.BYTES).write_bytes(b"\0" * 12)
        else:
            tensors.write(partial, {"x": np.zeros(3)})
        reached.set()
        time.sleep(LIMIT_S)

    atomic.place(folder, fill)


def _make(folder: Path, log: Path, ready: Event) -> None:
    _counting(log)
    ready.set()
    atomic.place(folder, lambda partial: tensors.write(partial, {"x": np.ones(3)}))


@pytest.mark.parametrize("part", ["half", "whole"])
def test_what_a_killed_process_was_making_is_not_trusted_by_those_that_waited_for_it(part: str, tmp_path: Path) -> None:
    folder, method = tmp_path / "thing", multiprocessing.get_context("spawn")
    reached, ready = method.Event(), [method.Event() for _ in range(2)]
    killed = _begun(_make_and_stand_still, folder, part, reached)
    assert reached.wait(LIMIT_S)
    waiting = [_begun(_make, folder, tmp_path / "log", each) for each in ready]
    assert all(each.wait(LIMIT_S) for each in ready)
    time.sleep(0.2)
    assert all(each.is_alive() for each in waiting)
    assert not (tmp_path / "log").exists()
    os.kill(killed.pid, signal.SIGKILL)
    for each in (killed, *waiting):
        each.join(LIMIT_S)
    assert [each.exitcode for each in (killed, *waiting)] == [-signal.SIGKILL, 0, 0]
    np.testing.assert_array_equal(tensors.read(folder)["x"], np.ones(3))
    assert (tmp_path / "log").read_text() == "thing\n"
    assert {path.name for path in tmp_path.iterdir()} == {"thing", "thing.lock", "log"}


def _flip_a_byte(path: Path) -> None:
    """Change one byte in the middle of a file, as a bad disk may: its length and its modification time stay."""
    before = path.stat()
    time.sleep(0.02)  # the system's clock of files advances in steps
    with path.open("r+b") as file:
        file.seek(before.st_size // 2)
        (value,) = file.read(1)
        file.seek(-1, os.SEEK_CUR)
        file.write(bytes([value ^ 4]))
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    after = path.stat()
    assert (after.st_size, after.st_mtime_ns, after.st_ino) == (before.st_size, before.st_mtime_ns, before.st_ino)


@pytest.mark.parametrize("name", [tensors.BYTES, tensors.INDEX])
@pytest.mark.parametrize("kind", KINDS)
def test_an_input_with_a_flipped_byte_is_named_and_made_again(
    kind: str, name: str, digits: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    make = KINDS[kind]
    folder = make(digits)
    assert make(digits) == folder  # checked, and noted as such
    assert (folder / atomic.VERIFIED).is_file()
    content = (folder / name).read_bytes()
    capsys.readouterr()
    _flip_a_byte(folder / name)
    assert make(digits) == folder
    assert (
        capsys.readouterr().err
        == f"steelyard: {folder} was changed or damaged after it was written, so it is not used.\n"
    )
    assert (folder / name).read_bytes() == content
    assert make(digits) == folder
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("copied", [shutil.copy2, os.link], ids=["copied", "linked"])
def test_a_copy_of_a_cache_is_used_as_it_is(
    copied: Callable[[str, str], object],
    digits: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """A copy is checked completely once, as is a cache whose files get another name somewhere else."""
    made = {kind: make(digits) for _ in range(2) for kind, make in KINDS.items()}
    copy = shutil.copytree(tmp_path / "cache", tmp_path / "copy", copy_function=copied)
    monkeypatch.setattr(atomic, "_fill", lambda folder, fill: pytest.fail(f"{folder} was made again"))
    for cache in (copy, tmp_path / "cache"):
        with monkeypatch.context() as patch:
            patch.setenv("STEELYARD_CACHE", str(cache))
            for kind, make in KINDS.items():
                assert make(digits) == cache / made[kind].relative_to(tmp_path / "cache")
            patch.setattr(tensors, "is_unchanged", lambda folder: pytest.fail(f"{folder} was read again"))
            for make in KINDS.values():
                make(digits)
    assert capsys.readouterr().err == ""
