"""How quiet the machine was, from recorded counters and from this machine."""

import json
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
from recorded_proc import PRESSURE, PROCESS, STAT, VMSTAT

from steelyard.host import noise, proc
from steelyard.host.gpu import foreign_of, parse_apps, parse_throttles
from steelyard.host.noise import HostNoise, Sample, Sampler, judge, summarise, take_sample, unequal_frequencies

LINUX = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
QUIET = HostNoise(seconds=10.0, samples=11, frequency_mhz=3000.0)


def sample(second: float, **values: object) -> Sample:
    """A sample of a two-core machine, idle unless told otherwise."""
    cpu = proc.CpuTimes(0.0, 0.0, 0.0, 2 * second)
    idle = Sample(int(second * 1e9), cpu, 0.0, 0.0, 0.5, None, None, 0)
    return replace(idle, **values)  # type: ignore[arg-type]


def test_processor_times_are_read_in_seconds() -> None:
    times = proc.parse_stat(STAT)
    ticks = proc.TICKS_PER_S
    assert times.busy_s == pytest.approx((5411 + 10 + 3753) / ticks)
    assert times.interrupt_s == pytest.approx(106 / ticks)
    assert times.steal_s == pytest.approx(24 / ticks)
    assert times.total_s == pytest.approx(sum((5411, 10, 3753, 140564, 277, 5, 101, 24)) / ticks)


def test_a_process_with_brackets_in_its_name_is_read_with_the_children_it_waited_for() -> None:
    parent, seconds = proc.parse_process(PROCESS)
    assert parent == 42
    assert seconds == pytest.approx((150 + 50 + 30 + 20) / proc.TICKS_PER_S)


def test_pressure_load_and_swap_are_read() -> None:
    assert proc.parse_pressure(PRESSURE) == pytest.approx(5.617536)
    assert proc.parse_pressure("") is None
    assert proc.parse_load("0.06 0.08 0.07 2/86 3914\n") == 0.06
    assert proc.parse_swapped(VMSTAT) == 42


def test_frequency_and_throttling_are_read_where_the_system_tells(tmp_path: Path) -> None:
    assert proc.frequency_mhz(tmp_path) is None
    assert proc.throttles(tmp_path) is None
    for number, kilohertz in ((0, "3000000"), (1, "2000000")):
        cpu = tmp_path / f"sys/devices/system/cpu/cpu{number}"
        (cpu / "cpufreq").mkdir(parents=True)
        (cpu / "cpufreq" / "scaling_cur_freq").write_text(kilohertz)
        (cpu / "thermal_throttle").mkdir()
        (cpu / "thermal_throttle" / "core_throttle_count").write_text("3")
    assert proc.frequency_mhz(tmp_path) == 2500.0
    assert proc.throttles(tmp_path) == 6


@pytest.mark.parametrize("lists_children", [True, False])
def test_a_tree_counts_children_and_not_strangers(tmp_path: Path, lists_children: bool) -> None:
    for pid, parent, children in ((1, 0, "2"), (2, 1, ""), (3, 0, "")):
        folder = tmp_path / f"proc/{pid}"
        (folder / "task" / str(pid)).mkdir(parents=True)
        (folder / "stat").write_text(PROCESS.replace("S 42", f"S {parent}"))
        if lists_children:
            (folder / "task" / str(pid) / "children").write_text(children)
    assert proc.descendants(1, tmp_path) == {1, 2}
    assert proc.tree_seconds(1, tmp_path) == pytest.approx(2 * 250 / proc.TICKS_PER_S)


def test_our_own_work_is_not_foreign_and_the_rest_is() -> None:
    end = sample(10.0, cpu=proc.CpuTimes(12.0, 0.0, 0.0, 20.0), own_s=10.0)
    found = summarise([sample(0.0), end])
    assert found.own_cores == pytest.approx(1.0)
    assert found.foreign_cores == pytest.approx(0.2)
    assert judge(found) == ["other processes used 0.20 cores"]


def test_the_worst_second_is_kept_beside_the_mean() -> None:
    busy = [0.0, 0.0, 1.0, 1.0]
    samples = [sample(t, cpu=proc.CpuTimes(b, 0.0, 0.0, 2.0 * t)) for t, b in enumerate(busy)]
    found = summarise(samples)
    assert found.foreign_cores_worst == pytest.approx(1.0)
    assert found.foreign_cores == pytest.approx(1 / 3)


def test_steal_is_a_share_of_all_processors() -> None:
    found = summarise([sample(0.0), sample(10.0, cpu=proc.CpuTimes(0.0, 0.0, 0.5, 20.0))])
    assert found.steal_share == pytest.approx(0.025)
    assert judge(found) == ["the host took 2.5% of the processors away (steal)"]


def test_a_quiet_interval_has_no_reasons() -> None:
    assert judge(QUIET) == []
    assert judge(summarise([sample(0.0), sample(10.0)])) == []


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        ({"steal_share": 0.011}, "steal"),
        ({"foreign_cores": 0.051}, "other processes"),
        ({"throttles": 1}, "heat"),
        ({"swapped_pages": 257}, "swapped"),
        ({"gpu_foreign": ("train (7)",)}, "others used the GPU: train (7)"),
        ({"gpu_throttles": ("hardware slowdown",)}, "the GPU was slowed"),
    ],
)
def test_each_limit_has_its_reason(values: dict[str, object], reason: str) -> None:
    (found,) = judge(replace(QUIET, **values))  # type: ignore[arg-type]
    assert reason in found


@pytest.mark.parametrize(
    "values",
    [{"steal_share": 0.009}, {"foreign_cores": 0.049}, {"swapped_pages": 255}, {"pressure_share": 0.9}],
)
def test_below_a_limit_there_is_no_reason(values: dict[str, object]) -> None:
    assert judge(replace(QUIET, **values)) == []  # type: ignore[arg-type]


def test_contenders_of_unequal_frequency_cannot_be_compared() -> None:
    slower = replace(QUIET, frequency_mhz=2900.0)
    assert judge(slower) == []
    said = ["the processors' mean frequency differed by 3.4% between contenders"]
    assert unequal_frequencies([QUIET, slower]) == said
    assert unequal_frequencies([QUIET, replace(QUIET, frequency_mhz=2920.0)]) == []
    assert unequal_frequencies([QUIET, replace(slower, seconds=0.5)]) == []
    assert unequal_frequencies([QUIET, replace(slower, frequency_mhz=None)]) == []


def test_too_short_an_interval_is_not_judged() -> None:
    assert judge(HostNoise(seconds=0.5, samples=2, steal_share=0.5)) == []


def test_what_is_not_told_has_a_reason() -> None:
    assert "too short" in summarise([]).unknown["all"] or "does not have" in summarise([]).unknown["all"]
    unknown = summarise([sample(0.0), sample(5.0)]).unknown
    assert "virtual machines" in unknown["frequency_mhz"]


def test_without_proc_nothing_is_sampled_and_the_reason_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(noise.sys, "platform", "darwin")
    with Sampler(period_s=0.01) as sampler:
        time.sleep(0.03)
    assert sampler.summary().unknown["all"] == "noise is read from /proc, which darwin does not have"
    assert judge(sampler.summary()) == []


@LINUX
def test_a_childs_work_is_our_own_even_after_it_ended() -> None:
    before = take_sample()
    burn = "import time; end = time.process_time() + 0.5\nwhile time.process_time() < end: pass"
    subprocess.run([sys.executable, "-c", burn], check=True)
    assert take_sample().own_s - before.own_s > 0.45


@LINUX
def test_foreign_work_is_seen(tmp_path: Path) -> None:
    burn = "import time; end = time.time() + 2.5\nwhile time.time() < end: pass"
    # A double fork: the grandchild's parent dies, and it is nobody's work of ours any more.
    shell = f"'{sys.executable}' -c '{burn}' > /dev/null 2>&1 &"
    subprocess.run(["sh", "-c", shell], check=True)
    with Sampler(period_s=0.2) as sampler:
        time.sleep(2.2)
    found = sampler.summary()
    assert found.samples >= 8
    assert found.foreign_cores > 0.05
    assert judge(found)
    json.dumps(found.to_dict())


@LINUX
def test_a_part_of_the_time_can_be_asked_for() -> None:
    with Sampler(period_s=0.02) as sampler:
        time.sleep(0.1)
        middle = time.monotonic_ns()
        time.sleep(0.1)
    assert sampler.summary(until_ns=middle).samples < sampler.summary().samples


@LINUX
def test_a_sample_costs_little() -> None:
    began = time.process_time()
    for _ in range(20):
        take_sample()
    # At one sample a second: below half a percent of one core.
    assert (time.process_time() - began) / 20 < 0.005


def test_gpu_users_are_ours_foreign_or_unknowable(tmp_path: Path) -> None:
    apps = parse_apps("100, /usr/bin/python3\n200, /opt/train\n300, [Not Found]\n")
    for pid in (100, 200):
        (tmp_path / f"proc/{pid}").mkdir(parents=True)
    assert foreign_of(apps, {100}, tmp_path) == ["train (200)"]


def test_the_ordinary_power_cap_is_no_throttling() -> None:
    assert parse_throttles("0x0000000000000004\n0x0000000000000001\n") == []
    assert parse_throttles("0x0000000000000000\n0x0000000000000048\n") == [
        "hardware slowdown",
        "hardware thermal slowdown",
    ]
