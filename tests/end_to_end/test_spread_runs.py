"""Trainings over several ranks through the command line: certificates, verdicts, and ranks that fail."""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import time
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import psutil
import pytest
from finished_runs import LINE, CommandLine, Finished, contender, finished

from steelyard.cli.main import EXIT_LEFT_OUT
from steelyard.host import links
from steelyard.measure import hosts
from steelyard_worker.protocol import EVENTS, LOSSES, SAMPLES

if TYPE_CHECKING:
    from collections.abc import Callable

    from finished_runs import Steelyard

pytestmark = pytest.mark.end_to_end

SPREAD = ("-f", "fake", "--threads", "1")
# fault of the second rank -> (kind of the recorded event, part of the message)
FAULTS = {
    "die": ("killed", "Rank 1 of 2 ended without a record."),
    "hang": ("hung", "rank 1 was in cause (adapter.py, line"),
    "memory": ("out-of-memory", "Rank 1 of 2: Unable to allocate 1.00 PiB"),
    "import": ("crash", "Rank 1 of 2: ImportError: No module named 'fake'."),
    "unsupported": ("unsupported", "Rank 1 of 2: The script says that this cannot be done."),
    "nan": ("nan-loss", "The loss of training step 20 is nan."),
}
root = pytest.mark.skipif(bool(links.obstacle()), reason="only root can make network namespaces, and only on Linux")
two_cores = pytest.mark.skipif((os.cpu_count() or 1) < 2, reason="each of two ranks needs a core of its own")


@pytest.fixture(scope="module")
def spread(tmp_path_factory: pytest.TempPathFactory, shared_steelyard: Steelyard) -> Finished:
    """A certified run: one process, two ranks, and two ranks that exchange nothing. Tests must not change it."""
    data_folder = tmp_path_factory.mktemp("spread")
    strategies = ("--strategy", "single:1", "--strategy", "processes:2", "--strategy", "alone:2")
    return finished(
        data_folder,
        shared_steelyard(data_folder, "run", *LINE, *SPREAD, *strategies, "--rounds", "2", "--profiles", "1", "--json"),
    )


@two_cores
def test_ranks_that_stop_exchanging_are_left_out(steelyard: Steelyard) -> None:
    """The first rank goes its own way from step 8 on, after the certified ones."""
    knobs = ("--knob", "fake.fault=none,apart", "--knob", "fake.fault_step=8", "--protocol", "fixed:3+8")
    done = steelyard("run", *LINE, *SPREAD, "--strategy", "copies:2", "--rounds", "1", *knobs, "--json")
    found = json.loads(done.stdout)
    right, wrong = (
        contender(found, "fault=none,fault_step=8,strategy=copies:2"),
        contender(found, "fault=apart,fault_step=8,strategy=copies:2"),
    )
    assert right["certificate_of_processes"].endswith("computed once more, are the certified ones.")
    assert (wrong["certificate"], wrong["speeds"]) == ("certified", {})
    assert "At the end of the process, " in wrong["failure"]


@pytest.fixture(scope="module")
def faulty(tmp_path_factory: pytest.TempPathFactory, shared_steelyard: Steelyard) -> Finished:
    """A run in which the second rank has every fault once; a single process has none. Tests must not change it."""
    data_folder = tmp_path_factory.mktemp("faulty-ranks")
    knobs = ("--knob", f"fake.fault={','.join(FAULTS)}", "--knob", "fake.fault_rank=1", "--silence", "9")
    strategies = ("--strategy", "copies:2", "--strategy", "single:1")
    options = ("--rounds", "1", "--no-certify", "--json")
    return finished(data_folder, shared_steelyard(data_folder, "run", *LINE, *SPREAD, *knobs, *strategies, *options))


@two_cores
def test_two_ranks_compute_what_one_process_computes(spread: Finished) -> None:
    for strategy in ("single:1", "copies:2"):
        found = spread.contender(f"strategy={strategy}")
        assert found["certificate"] == "certified"
        assert found["settings"]["strategy"] == strategy
    alone = spread.contender("strategy=alone:2")
    assert alone["certificate"] == "none"
    assert "Another algorithm: the ranks exchange nothing" in alone["certificate_sentence"]


@two_cores
def test_weights_of_ranks_that_train_alone_do_not_move(spread: Finished) -> None:
    """Otherwise a rank whose share alone diverges would end the trial. Every step has the same batch, so the loss stays."""
    fallen = {}
    for name in ("single", "alone"):
        (trial,) = spread.folder.glob(f"trials/r01.0-*{name}*")
        losses = np.fromfile(trial / LOSSES, "<f4")
        fallen[name] = abs(losses[-1] / losses[0] - 1)
    assert fallen["alone"] < 1e-6 < 1e-3 < fallen["single"], fallen


@two_cores
def test_every_rank_leaves_a_record(spread: Finished) -> None:
    (trial,) = spread.folder.glob("trials/r01.0-*copies*")
    for folder in (trial, trial / "rank1"):
        assert {EVENTS, LOSSES, SAMPLES} <= {path.name for path in folder.iterdir()}
        assert '"event": "done"' in (folder / EVENTS).read_text()
    assert (trial / SAMPLES).stat().st_size == (trial / "rank1" / SAMPLES).stat().st_size


@two_cores
def test_what_ranks_exchange_is_counted_and_measured_by_itself(spread: Finished) -> None:
    (comparison,) = spread.result["comparisons"]
    copies, alone = sorted(comparison["communication"], key=lambda each: "alone" in each["case"])
    gradients = 4 * (8 * 3 + 3)
    assert copies["all_reduce"]["bytes"] == gradients
    assert len(copies["all_reduce"]["sent_bytes"]) == 2
    for of_rank in (copies["sent_bytes_per_step"], copies["received_bytes_per_step"]):
        assert len(of_rank) == 2
        assert min(of_rank) >= gradients
    assert alone["sent_bytes_per_step"] == [0, 0]
    assert alone["all_reduce"] is None


@two_cores
def test_a_wrong_all_reduce_is_a_reason_and_no_figure(steelyard: Steelyard, data_folder: Path) -> None:
    options = ("--strategy", "copies:2", "--rounds", "1", "--no-certify", "--knob", "fake.fault=reduce", "--json")
    found = finished(data_folder, steelyard("run", *LINE, *SPREAD, *options))
    (row,) = found.result["comparisons"][0]["communication"]
    assert row["all_reduce"] is None
    assert "Exchange.mean did not return the mean of what 2 ranks brought" in row["not_measured"]
    assert sum(row["sent_bytes_per_step"])


@two_cores
def test_a_rank_above_the_memory_limit_is_stopped(steelyard: Steelyard, data_folder: Path) -> None:
    """A batch of 4,000 samples of 40 kB, of which each of two ranks has half."""
    size = ("--set", "features=10000", "--batch", "4000", "--memory-limit", "150MB")
    options = ("--protocol", "fixed:1+2", "--rounds", "1", "--no-certify", "--json")
    done = steelyard("run", *LINE, *SPREAD, "--strategy", "copies:2", *size, *options)
    found = contender(json.loads(done.stdout), "strategy=copies:2")
    assert re.search(
        r"(A rank or a server|The process) used 0\.\d\d GB of memory.*its limit of 0\.15 GB", found["failure"]
    )


@two_cores
def test_the_first_rank_is_profiled_while_the_others_take_part(spread: Finished) -> None:
    (folder,) = spread.folder.glob("profiles/1-*copies*")
    for rank in (folder, folder / "rank1"):
        events = [json.loads(line) for line in (rank / EVENTS).read_text().splitlines()]
        assert {"profiled", "plain"} <= {each["phase"] for each in events if each["event"] == "samples"}
        assert events[-1]["event"] == "done"
    assert "could not be profiled" not in spread.stderr


@two_cores
@pytest.mark.parametrize("fault", FAULTS)
def test_a_rank_that_fails_is_named_with_its_cause(faulty: Finished, fault: str) -> None:
    kind, message = FAULTS[fault]
    (line,) = (line for line in faulty.stderr.splitlines() if message in line)
    assert f"failed ({kind})" in line
    assert "Traceback" not in faulty.stderr


@two_cores
def test_a_failing_rank_leaves_no_process_and_no_other_result_is_lost(faulty: Finished) -> None:
    folder = str(faulty.folder)
    left = [
        each.pid
        for each in psutil.process_iter(["cmdline"])
        if any(folder in part for part in each.info["cmdline"] or ())
    ]
    assert not left
    found = contender(faulty.result, "fault=nan,fault_rank=1,strategy=single:1")
    assert found["speeds"]["cached"]["processes"] == 1


@two_cores
def test_ranks_end_with_a_run_that_is_killed(
    command: list[str], environ_for: Callable[..., dict[str, str]], data_folder: Path
) -> None:
    argv = [*command, "run", *LINE, *SPREAD, "--strategy", "copies:2", "--no-certify", "--knob", "fake.fault=hang"]
    with subprocess.Popen(
        argv, env=environ_for(data_folder), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as run:
        _until(lambda: len(_ranks(data_folder)) == 2)
        run.kill()
    _until(lambda: not _ranks(data_folder))


@two_cores
def test_a_port_that_is_taken_is_named(cli: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        monkeypatch.setattr(hosts, "_free_ports", lambda count: (taken.getsockname()[1],) * count)
        code, out, err = cli("run", *LINE, *SPREAD, "--strategy", "copies:2", "--no-certify", "--rounds", "1")
    assert code == 1
    assert "Rank 0 of 2: OSError: [Errno 98] Address already in use" in err
    assert "Traceback" not in out + err


@two_cores
def test_a_rank_with_other_samples_is_not_certified(cli: CommandLine) -> None:
    faulty = ("--knob", "fake.fault=order", "--knob", "fake.fault_rank=1")
    code, _, err = cli(
        "certify", *LINE[:-2], "--plain", *SPREAD, "--strategy", "single:1", "--strategy", "copies:2", *faulty
    )
    assert code == EXIT_LEFT_OUT
    (line,) = (line for line in err.splitlines() if line.startswith("Not certified"))
    assert "strategy=copies:2" in line


@two_cores
@root
def test_ranks_on_two_hosts_leave_no_host_behind(cli: CommandLine, data_folder: Path) -> None:
    strategies = ("--strategy", "copies:2", "--strategy", "copies:2@100mbit")
    code, out, _ = cli("run", *LINE, *SPREAD, *strategies, "--rounds", "2", "--json")
    assert code == 0
    found = contender(json.loads(out), "strategy=copies:2@100mbit")
    assert (found["certificate"], found["settings"]["strategy"]) == ("certified", "copies:2")
    (trial,) = data_folder.glob("**/r01.0-*100mbit*")
    assert '"event": "done"' in (trial / "rank1" / EVENTS).read_text()
    assert not _hosts(os.getpid())


@two_cores
@root
def test_a_link_that_breaks_is_noticed_in_time(
    command: list[str], environ_for: Callable[..., dict[str, str]], data_folder: Path
) -> None:
    endless = ("--protocol", "fixed:10+2000000", "--no-certify", "--rounds", "1", "--silence", "5")
    argv = [*command, "run", *LINE, *SPREAD, "--strategy", "copies:2@100mbit", *endless]
    with subprocess.Popen(
        argv, env=environ_for(data_folder), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as run:
        _until(lambda: any('"phase"' in path.read_text() for path in data_folder.glob("**/rank1/events.jsonl")))
        (first, _) = sorted(_hosts(run.pid))
        subprocess.run(["ip", "-n", first, "link", "set", "dev", "host0", "down"], check=True)
        said, _ = run.communicate(timeout=60)
    assert re.search(r"failed \(hung\): The worker wrote no event for 5 s and was stopped: rank [01] was in ", said)
    assert not _hosts(run.pid)


def _hosts(owner: int) -> list[str]:
    """Return the namespaces that a process has made."""
    return [path.name for path in Path("/run/netns").glob(f"steelyard-{owner}-*")]


def _ranks(data_folder: Path) -> list[int]:
    """Return the processes of ranks below a folder."""
    found = []
    for each in psutil.process_iter(["cmdline", "status"]):
        line = " ".join(each.info["cmdline"] or ())
        if str(data_folder) in line and "launcher.py" not in line and each.info["status"] != psutil.STATUS_ZOMBIE:
            found.append(each.pid)
    return found


def _until(true: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not true():
        assert time.monotonic() < deadline
        time.sleep(0.1)
