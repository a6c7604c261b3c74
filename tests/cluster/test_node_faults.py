"""Faults of a node's machine: a disk that fills up."""

from __future__ import annotations

import os
import shutil
import subprocess
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from cluster.records import counted, finished, kept_nodes, only_run
from cluster.simulated import LINE, ON_RAY, Running, Simulated

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Start = Callable[..., Running]

pytestmark = pytest.mark.end_to_end

TWO = (*LINE, "--no-guard", "-f", "fake", "--knob", "fake.step_us=10000,12000", "--protocol", "fixed:5+10000")
DISK_BYTES = 2**30


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


def test_a_node_whose_disk_is_full_is_given_up_and_no_finished_trial_is_lost(
    cluster: Simulated, start: Start, data_folder: Path, tmp_path: Path
) -> None:
    with small_disk(cluster.cache("full"), tmp_path / "disk"):
        cluster.add("full")
        running = start("run", *TWO, "--rounds", "5", *ON_RAY)
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
    assert len(counted(run)) == 10
    assert "full" not in kept_nodes(run)
