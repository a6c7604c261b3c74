"""Which rank failed and why, from what each rank has recorded."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Any

from steelyard.measure import failing_ranks
from steelyard_worker.protocol import EVENTS, rank_folder

if TYPE_CHECKING:
    from pathlib import Path

OTHERWISE = ("crash", "what the exit code says")
WAITING = """
import faulthandler, signal, sys, time
faulthandler.register(signal.SIGUSR1, open("place.txt", "w"), all_threads=True)
def waits_here():
    print("ready", flush=True)
    time.sleep(60)
waits_here()
"""


def record(trial: Path, *ranks: list[dict[str, Any]]) -> None:
    """Write the events of each rank; their times count up over all ranks in the order given unless they have their own."""
    for rank, events in enumerate(ranks):
        folder = rank_folder(trial, rank)
        folder.mkdir(parents=True, exist_ok=True)
        lines = [json.dumps({"v": 2, "t_ns": 10 * rank + number, **each}) for number, each in enumerate(events)]
        (folder / EVENTS).write_text("".join(line + "\n" for line in lines))


HELLO = {"event": "hello", "pid": 2**22}


def test_the_first_error_counts(tmp_path: Path) -> None:
    late = {"event": "error", "t_ns": 900, "kind": "crash", "message": "The connection was closed."}
    early = {"event": "error", "t_ns": 500, "kind": "out-of-memory", "message": "No memory."}
    record(tmp_path, [HELLO, late], [HELLO, early])
    assert failing_ranks.cause(tmp_path, 2, OTHERWISE) == ("out-of-memory", "Rank 1 of 2: No memory.")


def test_a_rank_without_an_end_was_killed_and_the_errors_of_others_follow_from_that(tmp_path: Path) -> None:
    record(tmp_path, [HELLO, {"event": "error", "kind": "crash", "message": "Connection reset."}], [HELLO])
    kind, message = failing_ranks.cause(tmp_path, 2, OTHERWISE)
    assert kind == "killed" and message.startswith("Rank 1 of 2 ended without a record.")


def test_an_error_of_its_own_comes_before_a_rank_that_the_launcher_killed(tmp_path: Path) -> None:
    error = {"event": "error", "kind": "unsupported", "message": "This layer has no gradient."}
    record(tmp_path, [HELLO], [HELLO, error])
    assert failing_ranks.cause(tmp_path, 2, OTHERWISE) == ("unsupported", "Rank 1 of 2: This layer has no gradient.")


def test_a_rank_that_aborts_because_of_another_is_not_to_blame(tmp_path: Path) -> None:
    error = {"event": "error", "kind": "crash", "message": "Timed out connecting."}
    record(tmp_path, [HELLO], [HELLO, error])
    aborted = ("crash", "The worker ended with exit code 1: Rank 0 was ended by signal 6.")
    assert failing_ranks.cause(tmp_path, 2, aborted) == ("crash", "Rank 1 of 2: Timed out connecting.")


def test_a_rank_that_was_stopped_is_not_to_blame(tmp_path: Path) -> None:
    error = {"event": "error", "kind": "unsupported", "message": "It cannot."}
    record(tmp_path, [HELLO, {"event": "stopped"}], [HELLO, error])
    assert failing_ranks.cause(tmp_path, 2, OTHERWISE) == ("unsupported", "Rank 1 of 2: It cannot.")


def test_a_full_disk_keeps_its_own_message(tmp_path: Path) -> None:
    record(tmp_path, [HELLO, {"event": "error", "kind": "crash", "message": "Connection reset."}], [HELLO])
    assert failing_ranks.cause(tmp_path, 2, ("disk-full", "The disk is full.")) == ("disk-full", "The disk is full.")


def test_without_any_record_the_exit_code_says_what_happened(tmp_path: Path) -> None:
    assert failing_ranks.cause(tmp_path, 2, OTHERWISE) == OTHERWISE


def test_damaged_records_and_unknown_kinds_are_survived(tmp_path: Path) -> None:
    record(tmp_path, [HELLO, {"event": "error", "kind": "strange", "message": "Odd."}], [HELLO, {"event": "stopped"}])
    with (tmp_path / EVENTS).open("a") as file:
        file.write('{"event": "err\n[1, 2]\n')
    assert failing_ranks.cause(tmp_path, 2, OTHERWISE) == ("crash", "Rank 0 of 2: Odd.")


def test_a_rank_that_hangs_says_where(tmp_path: Path) -> None:
    folder = rank_folder(tmp_path, 1)
    folder.mkdir()
    with subprocess.Popen([sys.executable, "-c", WAITING], cwd=folder, stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None
            process.stdout.readline()
            time.sleep(0.2)
            record(tmp_path, [HELLO, {"event": "done"}], [{"event": "hello", "pid": process.pid}])
            began = time.monotonic()
            text = failing_ranks.places(tmp_path, 2)
            assert text == "rank 1 was in waits_here (<string>, line 6)"
            assert time.monotonic() - began < failing_ranks.WRITING_S + 1
        finally:
            process.kill()


def test_a_process_number_that_nobody_has_is_survived(tmp_path: Path) -> None:
    record(tmp_path, [HELLO], [{"event": "hello", "pid": os.getpid(), "t_ns": 1}, {"event": "done"}])
    assert failing_ranks.places(tmp_path, 2) == ""
