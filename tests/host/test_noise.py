"""Host noise: how samples become an interval, which limits it must meet, and sampling on this machine."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from dataclasses import replace
from types import SimpleNamespace

import pytest

from steelyard.host import sampler as sampling
from steelyard.host.counters import CpuTimes, Sample, take_sample
from steelyard.host.gpu import GpuLoad
from steelyard.host.noise import HostNoise, is_unusual, judge, summarise, unequal_frequencies
from steelyard.host.sampler import Sampler

LINUX = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="host noise is measured on Linux only")
QUIET = HostNoise(seconds=10.0, samples=11, frequency_mhz=3000.0)


def sample(second: float, **values: object) -> Sample:
    """A sample of a two-core machine, idle except for the given values."""
    idle = Sample(int(second * 1e9), CpuTimes(0.0, 0.0, 0.0, 2 * second), 0.0, None, None, 0)
    return replace(idle, **values)  # type: ignore[arg-type]


def test_work_of_this_run_is_own_and_all_other_work_is_foreign() -> None:
    end = sample(10.0, cpu=CpuTimes(12.0, 0.0, 0.0, 20.0), own_s=10.0)
    found = summarise([sample(0.0), end])
    assert found.own_cores == pytest.approx(1.0)
    assert found.foreign_cores == pytest.approx(0.2)
    assert judge(found) == [(pytest.approx(4.0), "other processes used 0.20 cores")]


def test_the_worst_second_is_recorded_with_the_mean() -> None:
    busy = [0.0, 0.0, 1.0, 1.0]
    samples = [sample(t, cpu=CpuTimes(b, 0.0, 0.0, 2.0 * t)) for t, b in enumerate(busy)]
    found = summarise(samples)
    assert found.foreign_cores_worst == pytest.approx(1.0)
    assert found.foreign_cores == pytest.approx(1 / 3)


def test_steal_is_a_share_of_all_processors() -> None:
    found = summarise([sample(0.0), sample(10.0, cpu=CpuTimes(0.0, 0.0, 0.5, 20.0))])
    assert found.steal_share == pytest.approx(0.025)
    assert judge(found) == [(pytest.approx(2.5), "the hypervisor withheld 2.5% of the CPU time (steal)")]


def test_throttling_and_swapping_are_counted_within_the_interval() -> None:
    found = summarise([sample(0.0, throttles=5, swapped_bytes=2**20), sample(10.0, throttles=7, swapped_bytes=2**22)])
    assert (found.throttles, found.swapped_bytes) == (2, 3 * 2**20)
    assert judge(found) == [
        (3.0, "the processors were throttled 2 times because of heat"),
        (3.0, "3.0 MiB of memory were swapped"),
    ]


def test_a_quiet_interval_has_no_reasons() -> None:
    assert judge(QUIET) == []
    assert judge(summarise([sample(0.0), sample(10.0)])) == []


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        ({"steal_share": 0.011}, "steal"),
        ({"foreign_cores": 0.051}, "other processes"),
        ({"throttles": 1}, "heat"),
        ({"swapped_bytes": 2**20 + 4096}, "swapped"),
        ({"gpu_foreign": ("train (7)",)}, "other processes used the GPU: train (7)"),
        ({"gpu_throttles": ("hardware slowdown",)}, "the GPU was throttled"),
    ],
)
def test_each_limit_has_its_reason(values: dict[str, object], reason: str) -> None:
    (found,) = judge(replace(QUIET, **values))  # type: ignore[arg-type]
    assert reason in found.reason
    assert found.severity > 1


@pytest.mark.parametrize("values", [{"steal_share": 0.009}, {"foreign_cores": 0.049}, {"swapped_bytes": 2**20 - 4096}])
def test_below_a_limit_there_is_no_reason(values: dict[str, object]) -> None:
    assert judge(replace(QUIET, **values)) == []  # type: ignore[arg-type]


def test_contenders_of_unequal_frequency_cannot_be_compared() -> None:
    slower = replace(QUIET, frequency_mhz=2900.0)
    assert judge(slower) == []
    (found,) = unequal_frequencies([QUIET, slower])
    assert found.reason == "the processors' mean frequency differed by 3.4% between contenders"
    assert found.severity == pytest.approx((3000 / 2900 - 1) / 0.03)
    assert unequal_frequencies([QUIET, replace(QUIET, frequency_mhz=2920.0)]) == []
    assert unequal_frequencies([QUIET, replace(slower, seconds=0.5)]) == []
    assert unequal_frequencies([QUIET, replace(slower, frequency_mhz=None)]) == []


def test_too_short_an_interval_is_not_judged() -> None:
    assert judge(HostNoise(seconds=0.5, samples=2, steal_share=0.5)) == []


def test_unknown_values_have_a_reason() -> None:
    unknown = summarise([sample(0.0), sample(5.0)]).unknown
    assert set(unknown) == {"frequency_mhz", "throttles"}
    assert "virtual machines" in unknown["frequency_mhz"]
    assert summarise([sample(0.0), sample(5.0, frequency_mhz=3000.0, throttles=0)]).unknown == {}


@LINUX
def test_one_sample_is_no_interval() -> None:
    assert summarise([sample(0.0)]).unknown == {"all": "the interval was too short to sample"}


def test_on_other_systems_nothing_is_sampled_and_the_reason_is_given(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    with Sampler(period_s=0.01) as sampler:
        time.sleep(0.03)
    assert sampler.summary().unknown["all"] == "host noise is measured on Linux only, not on darwin"
    assert judge(sampler.summary()) == []


@LINUX
def test_foreign_work_is_detected() -> None:
    busy = "import sys, time; sys.stdin.read()\nwhile time.process_time() < 0.5: pass"
    # The shell ends at once, so its child is no longer a descendant of this process. It begins when its input ends.
    shell = f"exec 3<&0; '{sys.executable}' -c '{busy}' <&3 &"
    with subprocess.Popen(["sh", "-c", shell], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as started:
        started.wait()
        assert started.stdin
        assert started.stdout
        with Sampler() as sampler:
            started.stdin.close()
            started.stdout.read()  # until the child has ended
    found = sampler.summary()
    assert found.foreign_cores * found.seconds > 0.4
    json.dumps(found.to_dict())


@LINUX
def test_samples_are_taken_until_the_block_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    taken, many = [], threading.Event()

    def take() -> Sample:
        taken.append(sample(float(len(taken))))
        if len(taken) >= 8:
            many.set()
        return taken[-1]

    monkeypatch.setattr(sampling, "take_sample", take)
    with Sampler(period_s=0.001) as sampler:
        assert many.wait(60)
    assert sampler.summary().samples == len(taken) >= 9


@LINUX
def test_work_of_a_child_is_own_work() -> None:
    busy = "import time; end = time.process_time() + 0.5\nwhile time.process_time() < end: pass"
    with Sampler(period_s=0.2) as sampler:
        subprocess.run([sys.executable, "-c", busy], check=True)
    found = sampler.summary()
    assert found.own_cores * found.seconds > 0.45


@LINUX
def test_a_part_of_the_time_can_be_summarised() -> None:
    with Sampler(period_s=0.02) as sampler:
        time.sleep(0.1)
        middle = time.monotonic_ns()
        time.sleep(0.1)
    assert sampler.summary(until_ns=middle).samples < sampler.summary().samples


@LINUX
def test_load_of_gpus_is_collected_while_sampling(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sampling.gpu, "names", lambda: ("a GPU",))
    monkeypatch.setattr(sampling.gpu, "load", lambda own: GpuLoad(["train (7)"], ["power brake"]))
    with Sampler(period_s=0.02) as sampler:
        time.sleep(0.2)
    found = sampler.summary()
    assert (found.gpu_foreign, found.gpu_throttles) == (("train (7)",), ("power brake",))


def test_a_disturbance_is_unusual_if_it_is_twice_as_severe_as_those_before() -> None:
    assert is_unusual(1.1, [])
    assert not is_unusual(1.0, []), "at the limit there is no disturbance"
    assert is_unusual(1.1, [0.0, 0.0, 5.0]), "most rounds were undisturbed"
    assert not is_unusual(5.9, [0.0, 3.0, 5.0])
    assert is_unusual(6.1, [0.0, 3.0, 5.0])


@LINUX
def test_a_process_that_was_stopped_is_in_the_samples() -> None:
    with subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"]) as process:
        try:
            os.kill(process.pid, signal.SIGSTOP)
            os.waitpid(process.pid, os.WUNTRACED)
            assert take_sample().stopped == {process.pid}
            os.kill(process.pid, signal.SIGCONT)
            os.waitpid(process.pid, os.WCONTINUED)
            assert take_sample().stopped == set()
        finally:
            process.kill()


@LINUX
def test_a_sampler_that_wakes_late_says_by_how_much_and_its_samples_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    now, spans = [0.0], iter([1.0, 3.5, 0.2])

    class Stop(threading.Event):
        """Waiting takes as long as the test says; the third wait is cut short by the end."""

        def wait(self, timeout: float | None = None) -> bool:
            now[0] += next(spans)
            return now[0] > 4.6

    monkeypatch.setattr(sampling, "take_sample", lambda: sample(now[0]))
    monkeypatch.setattr(sampling, "time", SimpleNamespace(monotonic=lambda: now[0]))
    sampler = Sampler()
    sampler._stop = Stop()
    with sampler:
        sampler._thread.join()
        assert sampler.samples
    assert [each.late_s for each in sampler.samples] == [0.0, 0.0, pytest.approx(2.5), 0.0]
