"""The estimated time of a plan: what is part of it, and what counts once."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from steelyard.catalog import frameworks
from steelyard.cli import dry_run
from steelyard.plan import estimate, resolve
from steelyard.plan.options import Options
from steelyard.plan.run_plan import RunPlan

WORKLOADS = Path(__file__).resolve().parent.parent / "workloads"
LINE: dict[str, Any] = {"workloads": ("line",), "workload_folders": (str(WORKLOADS),)}
TURNS: dict[str, Any] = {**LINE, "frameworks": ("fake",), "knobs": ("fake.step_us=1,2",)}


def test_the_latency_is_part_of_the_estimate() -> None:
    plan = resolve.plan(Options(**LINE, frameworks=("fake", "dummy"), tasks=("inference",)))
    schedule, step = plan.groups[0].protocol.schedule, estimate.step_s(plan, plan.variants[0])
    none = replace(schedule, latency_fewest=0, latency_most=0)
    groups = (replace(plan.groups[0], protocol=replace(plan.groups[0].protocol, schedule=none)),)
    alone = estimate.estimate(plan)["rounds"] - estimate.estimate(replace(plan, groups=groups))["rounds"]
    assert alone == pytest.approx(3 * 2 * 500 * step)


def test_a_mode_that_starts_slowly_takes_longer_by_estimate() -> None:
    options = Options(workloads=("resnet18:tiny",), frameworks=("pytorch",), rounds="2")
    eager, compiled = (
        estimate.estimate(resolve.plan(replace(options, modes=(f"pytorch={mode}",)))) for mode in ("eager", "compiled")
    )
    later = frameworks.framework("pytorch").start_s("compiled") - frameworks.framework("pytorch").start_s("eager")
    assert later > 0
    assert compiled["rounds"] >= eager["rounds"] + 2 * later
    assert compiled["certificates"] > eager["certificates"]


def certificates_s(known: estimate.Known = estimate.NOTHING_KNOWN, **options: Any) -> float:
    asked = Options(**{"workloads": ("resnet18:tiny",), "frameworks": ("pytorch",), "rounds": "2"} | options)
    return estimate.estimate(resolve.plan(asked), known)["certificates"]


def test_what_certificates_compute_is_part_of_the_estimate() -> None:
    slow, fast = (certificates_s(estimate.Known(core_flops=each)) for each in (1e9, 2e9))
    fixed = 2 * fast - slow
    assert slow > fast > fixed > 0
    two_batches = certificates_s(estimate.Known(core_flops=1e9), batches=(8, 16)) - 2 * fixed
    of_eight = certificates_s(estimate.Known(core_flops=1e9), batches=(8,)) - fixed
    assert two_batches == pytest.approx(3 * of_eight)


def test_what_shares_a_certificate_or_its_references_counts_once_by_estimate() -> None:
    alone = certificates_s()
    digits = {"workloads": ("resnet18:digits",)}
    assert certificates_s(loader_workers=(0, 1, 2), **digits) == certificates_s(**digits) > 0
    assert certificates_s(knobs=("dropout=off,on",), workloads=("vgg16:tiny",)) == certificates_s(
        workloads=("vgg16:tiny",)
    )
    another = certificates_s(modes=("pytorch=eager,compiled",))
    assert alone < another < 2 * alone
    one, both = (
        certificates_s(optimizers=("adam",), frameworks=each) for each in (("pytorch",), ("pytorch", "tensorflow"))
    )
    assert frameworks.framework("tensorflow").optimizers["adam"] != frameworks.framework("pytorch").optimizers["adam"]
    assert both - one > certificates_s(frameworks=("pytorch", "tensorflow")) - alone


def test_long_steps_are_estimated_by_as_few_as_a_process_runs() -> None:
    plan = resolve.plan(
        Options(workloads=("vgg16:imagenet",), frameworks=("pytorch",), batches=(8,), synthetic=True, certify=False)
    )
    step, start = estimate.step_s(plan, plan.variants[0]), frameworks.framework("pytorch").start_s("eager")
    assert step > 5
    counted = math.ceil(2 * math.sqrt((start + 4 * step) / step))
    assert estimate.estimate(plan)["rounds"] == pytest.approx(3 * (start + (1 + 4 + counted) * step))


def test_steps_take_longer_by_estimate_on_a_slower_core() -> None:
    options = Options(workloads=("vgg16:imagenet",), frameworks=("pytorch",), synthetic=True, protocol="fixed:10+200")
    plan = resolve.plan(options)
    fast, slow = (estimate.Known(core_flops=each * 1e9) for each in (100, 25))
    dispatch, start = estimate.DISPATCH_S["training"], frameworks.framework("pytorch").start_s("eager")
    steps = [estimate.step_s(plan, plan.variants[0], each) for each in (fast, slow)]
    assert steps[1] - dispatch == pytest.approx(4 * (steps[0] - dispatch))
    rounds = plan.groups[0].protocol.rounds_min
    seconds = [estimate.estimate(plan, each)["rounds"] / rounds - start for each in (fast, slow)]
    assert seconds == pytest.approx([211 * each for each in steps])


def test_epochs_of_fewer_training_samples_are_shorter_by_estimate() -> None:
    options = {"workloads": ("resnet18:digits",), "frameworks": ("pytorch",), "protocol": "epochs:40"}
    known = estimate.Known({"mnist-5k": 4000})
    usual, limited, more = (resolve.plan(Options(**options, train_limits=limits)) for limits in ((), (1000,), (9000,)))
    seconds = [estimate.estimate(plan, known)["rounds"] for plan in (usual, limited, more)]
    assert seconds[1] < seconds[0] / 2 < seconds[0] == seconds[2]


def test_turns_are_part_of_the_estimate() -> None:
    plan = resolve.plan(Options(**TURNS))
    groups = tuple(
        replace(each, protocol=replace(each.protocol, schedule=replace(each.protocol.schedule, turns=0)))
        for each in plan.groups
    )
    alone, turns = (estimate.estimate(each)["rounds"] for each in (replace(plan, groups=groups), plan))
    assert alone != turns
    single = resolve.plan(Options(**{**TURNS, "knobs": ()}))
    assert single.groups[0].takes_turns
    assert estimate.estimate(single)["rounds"] == pytest.approx(alone / 2)


@pytest.mark.parametrize(
    ("workload", "batch", "sizes", "seconds"),
    [
        ("gnmt:wmt16", 4, (), 2.73),
        ("deepspeech2:librispeech", 2, ("frames=130", "transcript=20"), 1.95),
        ("tacotron2:ljspeech", 1, ("frames=80",), 0.88),
        ("tacotron2:ljspeech", 2, ("frames=80",), 1.44),
        ("tacotron2:ljspeech", 2, (), 10.1),
        ("vgg16:imagenet", 2, (), 2.55),
        ("bert:wikitext", 2, (), 1.49),
        ("resnet18:digits", 64, (), 0.061),
        ("lstm-imdb:reviews", 64, (), 0.024),
    ],
)
def test_steps_that_were_measured_are_near_their_estimate(
    workload: str, batch: int, sizes: tuple[str, ...], seconds: float
) -> None:
    """`seconds` is the mean of PyTorch and TensorFlow on two cores of an AMD EPYC, whose peak and bandwidth were measured.

    Of Tacotron 2 at its published length, TensorFlow alone was measured.
    """
    known = estimate.Known(core_flops=92.2e9, bandwidth=27.4e9)
    plan = resolve.plan(
        Options(workloads=(workload,), frameworks=("pytorch",), batches=(batch,), set=sizes, synthetic=True)
    )
    assert 0.6 < seconds / estimate.step_s(plan, plan.variants[0], known) < 1.6


def of_strategy(strategy: str) -> RunPlan:
    return resolve.plan(
        Options(
            workloads=("lstm-imdb:keras",),
            frameworks=("pytorch",),
            strategies=(strategy,),
            threads=(1,),
            synthetic=True,
        )
    )


def test_gradients_that_cross_a_slow_link_make_steps_longer_by_estimate() -> None:
    here, slow, slower = (of_strategy(f"processes:2{link}") for link in ("", "@100mbit", "@10mbit"))
    bits = 32 * here.groups[0].parameters
    step = estimate.step_s(here, here.variants[0])
    # A step over a link of 10 Mbit/s took 3.2 to 6.8 s in the five frameworks, one over 100 Mbit/s 0.5 to 0.8 s.
    assert 3 < estimate.step_s(slower, slower.variants[0]) < 4
    for plan, rate in ((slow, 1e8), (slower, 1e7)):
        assert estimate.step_s(plan, plan.variants[0]) - step == pytest.approx(bits / rate)


def test_the_exchange_of_ranks_by_itself_is_part_of_the_estimate() -> None:
    assert estimate.estimate(of_strategy("single:1"))["exchange"] == 0
    assert estimate.estimate(of_strategy("alone:2"))["exchange"] == 0
    here, slower = (of_strategy(f"processes:2{link}") for link in ("", "@10mbit"))
    # It took 4.3 s, and 28.6 s over the slow link, without the start of the interpreter.
    assert 4 < estimate.estimate(here)["exchange"] < 7
    assert 20 < estimate.estimate(slower)["exchange"] < 35


def test_the_updates_of_an_asynchronous_training_are_part_of_the_estimate() -> None:
    plan = resolve.plan(
        Options(
            workloads=("lstm-imdb:keras",),
            frameworks=("mxnet",),
            strategies=("asynchronous:2",),
            threads=(1,),
            synthetic=True,
        )
    )
    step, start = estimate.step_s(plan, plan.variants[0]), frameworks.framework("mxnet").start_s("hybridized")
    assert estimate.estimate(plan)["exchange"] == pytest.approx(start + 110 * step)


def test_slow_memory_makes_loops_over_time_slower_by_estimate() -> None:
    def step_s(workload: str, bandwidth: float) -> float:
        plan = resolve.plan(Options(workloads=(workload,), frameworks=("pytorch",), synthetic=True))
        return estimate.step_s(plan, plan.variants[0], estimate.Known(bandwidth=bandwidth))

    assert step_s("resnet18:tiny", 1e9) == step_s("resnet18:tiny", 2e9)
    none, slow, fast = (step_s("gnmt:tiny", bandwidth) for bandwidth in (math.inf, 1e9, 2e9))
    assert slow - none == pytest.approx(2 * (fast - none))
    assert fast > none


def test_certificates_have_a_range_as_long_as_they_have_taken(capsys: pytest.CaptureFixture[str]) -> None:
    plan = resolve.plan(Options(**LINE, frameworks=("fake", "dummy")))
    found = estimate.estimate(plan)
    assert found["most_certificates"] == estimate.MOST_OF_CERTIFICATES * found["certificates"] > found["certificates"]
    dry_run.show(plan)
    text = " ".join(capsys.readouterr().out.split())
    least, most = (estimate.in_words(found[name]) for name in ("certificates", "most_certificates"))
    assert f"about {least}, at the longest {most}, more for certificates if none is stored" in text
    dry_run.show(resolve.plan(Options(**LINE, frameworks=("fake", "dummy"), certify=False)))
    assert "certificates" not in capsys.readouterr().out
