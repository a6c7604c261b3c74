"""Counters of the machine and of this run's processes, from recorded texts and from this machine."""

import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import psutil
import pytest
from recorded_proc import MEMINFO, STAT, VMSTAT

from steelyard.host import available_memory_bytes, counters, processes
from steelyard.host.counters import take_sample

LINUX = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
TICKS_PER_S = 100
SLEEP = "import time; time.sleep(60)"
START_A_SLEEPER = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {SLEEP!r}])"


@pytest.fixture
def recorded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let psutil read recorded texts in place of /proc."""
    for name, text in (("stat", STAT), ("meminfo", MEMINFO), ("vmstat", VMSTAT)):
        (tmp_path / name).write_text(text)
    monkeypatch.setattr(psutil, "PROCFS_PATH", str(tmp_path))


@LINUX
@pytest.mark.usefixtures("recorded")
def test_cpu_times_are_read_in_seconds_and_time_of_guests_is_counted_once() -> None:
    times = counters.cpu_times()
    assert times.busy_s == pytest.approx((5411 + 10 + 3753) / TICKS_PER_S)
    assert times.interrupt_s == pytest.approx(106 / TICKS_PER_S)
    assert times.steal_s == pytest.approx(24 / TICKS_PER_S)
    assert times.total_s == pytest.approx(sum((5411, 10, 3753, 140564, 277, 5, 101, 24)) / TICKS_PER_S)


@LINUX
@pytest.mark.usefixtures("recorded")
def test_swap_and_available_memory_are_read_in_bytes() -> None:
    assert counters.swapped_bytes() == (30 + 12) * 4096
    assert available_memory_bytes() == 12 * 1024


def test_a_frequency_is_unknown_without_frequency_control(monkeypatch: pytest.MonkeyPatch) -> None:
    nominal, controlled = SimpleNamespace(current=2600.0, max=0.0), SimpleNamespace(current=2500.0, max=3000.0)
    for found, expected in ((nominal, None), (None, None), (controlled, 2500.0)):
        monkeypatch.setattr(psutil, "cpu_freq", lambda found=found: found)
        assert counters.frequency_mhz() == expected


def test_a_frequency_that_cannot_be_read_is_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail() -> None:
        raise NotImplementedError

    monkeypatch.setattr(psutil, "cpu_freq", fail)
    assert counters.frequency_mhz() is None


def test_thermal_throttling_is_summed_over_processors_where_it_is_counted(tmp_path: Path) -> None:
    assert counters.thermal_throttles(tmp_path) is None
    for number in (0, 1):
        folder = tmp_path / f"sys/devices/system/cpu/cpu{number}/thermal_throttle"
        folder.mkdir(parents=True)
        (folder / "core_throttle_count").write_text("3")
    assert counters.thermal_throttles(tmp_path) == 6


@pytest.fixture
def child() -> Iterator[psutil.Process]:
    """A child of this process that has a child of its own; both sleep."""
    with subprocess.Popen([sys.executable, "-c", START_A_SLEEPER]) as started:
        process = psutil.Process(started.pid)
        try:
            wait_until(lambda: bool(process.children()))
            yield process
        finally:
            for each in (*process.children(), process):
                each.kill()


@pytest.fixture
def orphan() -> Iterator[int]:
    """The id of a sleeping process whose parent has ended."""
    shell = f"'{sys.executable}' -c '{SLEEP}' > /dev/null 2>&1 & echo $!"
    pid = int(subprocess.run(["sh", "-c", shell], capture_output=True, text=True, check=True).stdout)
    yield pid
    psutil.Process(pid).kill()


def wait_until(condition: object) -> None:
    limit = time.monotonic() + 20
    while not condition():  # type: ignore[operator]
        assert time.monotonic() < limit
        time.sleep(0.01)


@pytest.mark.parametrize("kernel_lists_children", [True, False])
def test_children_of_children_are_own_processes_and_orphans_are_not(
    child: psutil.Process, orphan: int, kernel_lists_children: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not kernel_lists_children:
        monkeypatch.setattr(processes, "PROC", tmp_path)
    found = {process.pid for process in processes.own_processes()}
    assert {psutil.Process().pid, child.pid, *(each.pid for each in child.children())} <= found
    assert orphan not in found
    assert child.parent().ppid() not in found


@LINUX
def test_a_childs_cpu_time_is_counted_after_it_ended() -> None:
    before = processes.own_work().cpu_s
    busy = "import time; end = time.process_time() + 0.5\nwhile time.process_time() < end: pass"
    subprocess.run([sys.executable, "-c", busy], check=True)
    assert processes.own_work().cpu_s - before > 0.45


@LINUX
def test_a_living_grandchilds_cpu_time_is_counted() -> None:
    busy = "import time; end = time.process_time() + 0.5\nwhile time.process_time() < end: pass\ntime.sleep(60)"
    start = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {busy!r}])"
    before = processes.own_work().cpu_s
    with subprocess.Popen([sys.executable, "-c", start]) as started:
        try:
            wait_until(lambda: processes.own_work().cpu_s - before > 0.5)
        finally:
            for each in (*psutil.Process(started.pid).children(), started):
                each.kill()


@LINUX
def test_a_process_that_ends_while_its_time_is_read_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    with subprocess.Popen([sys.executable, "-c", ""]) as ended:
        gone = psutil.Process(ended.pid)
    this = psutil.Process()
    monkeypatch.setattr(processes, "own_processes", lambda: [gone, this])
    assert processes.own_work().cpu_s >= sum(this.cpu_times()[:2]) - 0.1


@LINUX
def test_a_sample_costs_little() -> None:
    began = time.process_time()
    for _ in range(20):
        take_sample()
    # At one sample per second: less than half a percent of one core.
    assert (time.process_time() - began) / 20 < 0.005
