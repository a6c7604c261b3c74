"""Faults of a node's machine: a disk that fills up, and a clock that jumps."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from cluster.records import certificates, counted, finished, kept_nodes, only_run, verdicts
from cluster.simulated import LINE, ON_RAY, Running, Simulated, until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Start = Callable[..., Running]

pytestmark = pytest.mark.end_to_end

TWO = (*LINE, "--no-guard", "-f", "fake", "--knob", "fake.step_us=10000,12000", "--protocol", "fixed:5+10000")
DISK_BYTES = 9 * 2**30  # enough for all environments: on less a node is not fit

# Moves the clock of calendar time for every program that loads it, as long as a file exists.
JUMPING_CLOCK = r"""
#define _GNU_SOURCE
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static time_t jump(void) {
    const char *file = getenv("JUMP_FILE");
    return file && access(file, F_OK) == 0 ? -7200 : 0;
}

int clock_gettime(clockid_t clock, struct timespec *now) {
    int failed = syscall(SYS_clock_gettime, clock, now);
    if (!failed && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) now->tv_sec += jump();
    return failed;
}

int gettimeofday(struct timeval *now, void *zone) {
    struct timespec precise;
    int failed = clock_gettime(CLOCK_REALTIME, &precise);
    (void)zone;
    now->tv_sec = precise.tv_sec;
    now->tv_usec = precise.tv_nsec / 1000;
    return failed;
}

time_t time(time_t *where) {
    struct timespec precise;
    clock_gettime(CLOCK_REALTIME, &precise);
    if (where) *where = precise.tv_sec;
    return precise.tv_sec;
}
"""


@contextmanager
def small_disk(folder: Path, image: Path) -> Iterator[None]:
    """Mount a disk of its own at a folder. It takes hardly any space, because nothing is written where it is allocated."""
    folder.mkdir()
    image.touch()
    os.truncate(image, DISK_BYTES)
    for command in (["mkfs.ext4", "-q", "-F", image], ["mount", "-o", "loop", image, folder]):
        try:
            subprocess.run(command, capture_output=True, text=True, check=True)
        except (OSError, subprocess.CalledProcessError) as error:
            pytest.skip(f"the full disk of one node alone is a file that root mounts ({error})")
    try:
        yield
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


def fill(folder: Path) -> None:
    """Allocate all space on the disk of a folder."""
    with pytest.raises(OSError, match="No space left"), (folder / "filler").open("wb") as file:
        os.posix_fallocate(file.fileno(), 0, 2 * DISK_BYTES)
    assert shutil.disk_usage(folder).free < 2**20


def test_a_node_whose_disk_is_full_is_given_up_and_keeps_nothing_from_the_record(
    cluster: Simulated, start: Start, data_folder: Path, tmp_path: Path
) -> None:
    with small_disk(cluster.cache("full"), tmp_path / "disk"):
        cluster.add("full")
        running = start("run", *TWO, "--rounds", "8", *ON_RAY)
        running.wait_for(", on full")
        before = finished(only_run(data_folder))
        fill(cluster.cache("full"))
        code, _ = running.end()
        cluster.kill("full")
    assert code == 0, running.stderr
    (sentence,) = [line for line in running.lines if "Node full was given up: " in line]
    assert " is full. Free some space, " in sentence or " MiB left. Free at least 200 MiB, " in sentence
    run = only_run(data_folder)
    assert before.items() <= finished(run).items()
    assert len(counted(run)) == 16
    assert "full" not in kept_nodes(run)


@pytest.fixture
def jumping(tmp_path: Path) -> dict[str, str]:
    """Return the variables of a node whose clock jumps when the file exists that JUMP_FILE names.

    They do not reach the measuring processes, which use no clock of calendar time at all: a rule of the source, which is tested.
    """
    compiler = shutil.which("cc")
    if not compiler:
        pytest.skip("a clock that jumps for one node alone is a small library, which needs a C compiler")
    (tmp_path / "clock.c").write_text(JUMPING_CLOCK)
    library = tmp_path / "clock.so"
    subprocess.run([compiler, "-shared", "-fPIC", "-o", library, tmp_path / "clock.c"], check=True)
    return {"LD_PRELOAD": str(library), "RAY_LD_PRELOAD_ON_WORKERS": "1", "JUMP_FILE": str(tmp_path / "jump")}


def test_a_clock_that_jumps_moves_no_time_and_loses_no_node(
    cluster: Simulated, start: Start, data_folder: Path, steelyard: Any, jumping: dict[str, str], tmp_path: Path
) -> None:
    (tmp_path / "jump").touch()
    shown = [sys.executable, "-c", "import time; print(time.time())"]
    before_s = float(subprocess.run(shown, env={**os.environ, **jumping}, capture_output=True, check=True).stdout)
    assert time.time() - before_s > 7000, "the library moves no clock"
    (tmp_path / "jump").unlink()
    cluster.add("unsteady", **jumping)
    try:
        running = start("run", *TWO, "--rounds", "8", *ON_RAY)
        running.wait_for(", on unsteady")
        until(lambda: any(jumping["LD_PRELOAD"] in _libraries(each.ppid()) for each in cluster.workers()), "its agent")
        (tmp_path / "jump").touch()
        running.wait_for("round 7")
        (tmp_path / "jump").unlink()
        code, _ = running.end()
    finally:
        cluster.kill("unsteady")
    assert code == 0, running.stderr
    assert "was given up" not in running.stderr
    run, local = only_run(data_folder), data_folder.parent / "local"
    assert "unsteady" in kept_nodes(run)
    assert steelyard("run", *TWO, "--rounds", "8", STEELYARD_RUNS=str(local)).returncode == 0
    assert counted(run) == counted(only_run(local))
    assert certificates(run) == certificates(only_run(local))
    assert verdicts(run) == verdicts(only_run(local))


def _libraries(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/maps").read_text(encoding="utf-8")
    except OSError:
        return ""
