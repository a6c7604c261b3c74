"""Every strategy of every framework with two parts: certified, or known to compute something else, and timed."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from typing import TYPE_CHECKING, Any

import decides
import pytest
from decides import Sources

from steelyard.catalog import frameworks, strategies, workloads
from steelyard.host import links
from steelyard_worker.strategy import ALONE, parts_of
from steelyard_worker.strategy_kinds import ASYNCHRONOUS

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from steelyard.catalog.frameworks import Framework
    from steelyard_worker.strategy import Spread

    # Framework, preset, strategies, further options -> contenders by strategy.
    Measured = Callable[..., dict[str, dict[str, Any]]]

pytestmark = pytest.mark.conformance

SMALL = "lstm-imdb:tiny"
# Where a loss is no plain mean of samples, or there are statistics of a batch, other things can go wrong.
FURTHER = ("vgg16:tiny", "resnet18:tiny")
STEPS = ("--protocol", "fixed:2+3")
# Sent by a rank in a step, relative to its gradients: a ring sends them once, and a server's ranks at most twice.
MOST_SENT = 2.5
two_cores = pytest.mark.skipif((os.cpu_count() or 1) < 2, reason="each of two ranks needs a core of its own")


def decided(name: str) -> Sources:
    """Return what decides the strategies of a framework: its own, and the references of its certificates."""
    able = sorted(
        (each for each in frameworks.contenders().values() if each.reference), key=lambda each: each.reference
    )
    names = tuple(sorted({name, *(each.name for each in able[:2])}))
    return Sources(name, names, tuple(preset.partition(":")[0] for preset in (SMALL, *FURTHER)), modules=decides.RUN)


def decided_proof(name: str) -> Sources:
    """Return what decides a proof, which runs alone in its framework's interpreter."""
    return Sources(name, (name,))


def spread(known: Framework, *, compiled: bool = False) -> list[str]:
    """Return every strategy of a framework, with two parts: those that need an environment of their own, or all others."""
    found = [f"{name}:2" for name, own in known.strategies.items() if bool(own.environment) == compiled]
    return [*found, "alone:2"]


@pytest.fixture
def measured(environment: Callable[[str], Path], command: list[str], tmp_path: Path) -> Measured:
    """Run strategies of a framework once, with certificates; return the contenders by strategy."""

    def run(known: Framework, preset: str, wanted: list[str], *more: str) -> dict[str, dict[str, Any]]:
        environment(known.name)
        given = [part for each in ("single:1", *wanted) for part in ("--strategy", each)]
        limits = ("--rounds", "1", "--threads", "1", "--no-guard", "--plain", "--json")
        argv = [*command, "run", "-w", preset, "-f", known.name, *given, *limits, *(more or STEPS)]
        done = subprocess.run(
            argv, capture_output=True, text=True, env=os.environ | {"STEELYARD_RUNS": str(tmp_path)}, check=False
        )
        assert "Traceback" not in done.stderr
        assert done.returncode == 0, done.stderr
        (comparison,) = json.loads(done.stdout)["comparisons"]
        exchanged = {each["case"]: each for each in comparison.get("communication", ())}
        return {
            each["case"].rpartition("strategy=")[2].split(",")[0]: each | {"exchanged": exchanged.get(each["case"])}
            for each in comparison["contenders"]
        }

    return run


@two_cores
@pytest.mark.decided(by=decided)
@pytest.mark.parametrize("name", frameworks.contenders())
def test_every_strategy_is_certified_and_timed(name: str, measured: Measured) -> None:
    known = frameworks.framework(name)
    check(known, SMALL, measured(known, SMALL, spread(known)), spread(known))


@two_cores
@pytest.mark.decided(by=decided)
@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=[] if name == "mxnet" else pytest.mark.slow) for name in frameworks.contenders()],
)
def test_training_goes_on_after_the_statistics_of_all_ranks_were_averaged(name: str, measured: Measured) -> None:
    """An evaluation averages batch-norm statistics over the ranks; MXNet's servers then went on without their update rule."""
    known = frameworks.framework(name)
    wanted = [
        f"{strategy}:2"
        for strategy, own in known.strategies.items()
        if own.several_processes and own.does.averages and not own.environment
    ]
    found = measured(known, "resnet18:digits", wanted, "--protocol", "epochs:2", "--no-certify")
    assert found.keys() >= set(wanted)
    for strategy in wanted:
        (training,) = found[strategy]["trainings"]
        first, second = training["losses"]
        assert second < 0.5 * first, strategy


WITHIN = {
    known.name: found
    for known in frameworks.contenders().values()
    if (
        found := [
            f"{name}:2"
            for name, own in known.strategies.items()
            if own.kind in ("devices", "local") and not own.several_processes
        ]
    )
}


@two_cores
@pytest.mark.decided(by=decided)
@pytest.mark.parametrize("name", WITHIN)
def test_devices_of_one_process_do_not_wait_for_each_other_for_ever(name: str, measured: Measured) -> None:
    """JAX's pool needs a thread for every device that waits for the others; without it a loop comes to a stop by chance."""
    long = ("--protocol", "fixed:2+300", "--no-certify")
    found = measured(frameworks.framework(name), SMALL, WITHIN[name], *long)
    assert found.keys() == {*WITHIN[name], "single:1"}
    assert [contender["failure"] for contender in found.values()] == [""] * len(found)


# To compile what these need takes minutes for each framework, and least for the first of them.
COMPILED = [known.name for known in frameworks.contenders().values() if len(spread(known, compiled=True)) > 1]


@two_cores
@pytest.mark.skipif(
    not (shutil.which("g++") and shutil.which("make")), reason="there is no g++, or no make, to compile with"
)
@pytest.mark.decided(by=decided)
@pytest.mark.parametrize("name", [COMPILED[0], *(pytest.param(name, marks=pytest.mark.slow) for name in COMPILED[1:])])
def test_strategies_of_a_library_that_is_compiled_here(name: str, measured: Measured) -> None:
    known = frameworks.framework(name)
    reaching = [] if links.obstacle() else [name for name, own in known.strategies.items() if own.across_hosts]
    wanted = [*spread(known, compiled=True), *(f"{name}:2@1gbit" for name in reaching)]
    check(known, SMALL, measured(known, SMALL, wanted), wanted)


@two_cores
@pytest.mark.slow
@pytest.mark.parametrize("preset", FURTHER)
@pytest.mark.parametrize("name", frameworks.contenders())
def test_strategies_of_other_networks(name: str, preset: str, measured: Measured) -> None:
    known = frameworks.framework(name)
    check(known, preset, measured(known, preset, spread(known)), spread(known))


def check(known: Framework, preset: str, found: dict[str, dict[str, Any]], wanted: list[str]) -> None:
    """Check that a run has every wanted strategy that the workload allows, as its framework.toml declares it."""
    workload, _, size = preset.partition(":")
    network = workloads.find()[workload].network(workloads.find()[workload].preset(size))
    expected = {
        each for each in wanted if (own := known.spread(each)) and workload not in own.workloads and _mode(known, each)
    }
    assert found.keys() == {*expected, "single:1"}
    for strategy, contender in found.items():
        assert not contender["failure"], strategy
        assert all(speed["counted_steps"] for speed in contender["speeds"].values()), strategy
        otherwise = strategies.otherwise(known.spread(strategy), network)
        assert contender["certificate"] == ("none" if otherwise else "certified"), contender["certificate_sentence"]
        assert parts_of(strategy) == (1 if strategy == "single:1" else 2)
        check_exchange(known.spread(strategy), contender["exchanged"], 4 * network.trainable_count)


def check_exchange(own: Spread | None, found: dict[str, Any] | None, gradients: int) -> None:
    """Check that the bytes of every rank were seen, and that the exchange was measured by itself where there is one."""
    if own is None:
        assert found is None
        return
    assert found
    if not own.several_processes:
        assert not found["sent_bytes_per_step"]
        assert found["not_measured"].startswith("One process drives all devices")
        return
    if own.kind == ALONE:
        assert found["sent_bytes_per_step"] == [0, 0]
    else:
        assert sum(found["sent_bytes_per_step"]) > 0
        if own.does.averages:
            assert max(found["sent_bytes_per_step"]) < MOST_SENT * gradients, "something is exchanged more than once"
    assert bool(found["all_reduce"]) == (own.does.averages), found["not_measured"]
    assert bool(found["missed_updates"]) == (own.kind == ASYNCHRONOUS), found["not_measured"]
    if found["all_reduce"]:
        assert found["all_reduce"]["bytes"] == gradients
        assert min(found["all_reduce"]["sent_bytes"]) >= gradients


def _mode(known: Framework, strategy: str) -> bool:
    """Report whether a strategy runs in the framework's default mode."""
    own = known.spread(strategy)
    return own is not None and known.default_mode not in own.unsupported


PROOFS = [(known.name, kind) for known in frameworks.contenders().values() for kind in known.without]


@pytest.mark.decided(by=decided_proof)
@pytest.mark.parametrize(("name", "kind"), PROOFS)
def test_what_a_framework_has_not_is_proved(
    name: str, kind: str, environment: Callable[[str], Path], tmp_path: Path
) -> None:
    """Strict: a proof that ends otherwise says that the framework has learnt it, and the entry must go."""
    known = frameworks.framework(name)
    script = known.folder / strategies.PROOFS / known.without[kind].script
    done = subprocess.run(
        [environment(name), "-I", script], capture_output=True, text=True, cwd=tmp_path, check=False, timeout=300
    )
    assert done.returncode == strategies.STILL_SO, done.stdout + done.stderr
