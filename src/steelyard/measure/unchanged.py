"""Whether anything that could move a number has changed since a plan was last carried out on this machine."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from steelyard import host
from steelyard.console import Screen
from steelyard.environments import Environment, setup
from steelyard.errors import UserError
from steelyard.plan.run_plan import RunPlan
from steelyard.results import imported, record, run_folders
from steelyard.results.record import RunRecord
from steelyard.statistics.sentences import listed
from steelyard_worker.protocol import METHOD

MOST_NAMES = 3
ENVIRONMENT_FACTS = {"python_version": "Python", "contents": "installed files", "variables": "environment variables"}
"""The facts of an environment, beside its packages, that can move a number."""


@dataclass(frozen=True)
class Since:
    """The newest complete run of a plan on this machine, empty without one, and what has changed since, in one sentence."""

    run: str
    changed: str


def since_last(plan: RunPlan, runs: Path, screen: Screen) -> Since:
    """Compare what a plan would measure now with its last complete run; makes or verifies the environments for that."""
    machine = host.describe().fingerprint()
    same_plan = [(name, known) for name, known in _complete(runs) if _asks_the_same(plan, known.plan)]
    last = next(((name, known) for name, known in same_plan if known.machine == machine), None)
    if last is None:
        reason = "no complete run of this plan on this machine, with its present hardware, system and drivers"
        return Since("", f"There is {reason}.")
    name, known = last
    if known.method != METHOD:
        return Since(name, f"The method of measuring is {METHOD}, and was {known.method} in run {name}.")
    if known.unavailable:
        return Since(name, f"Run {name} had no environment for {listed(sorted(known.unavailable))}.")
    if found := _changed_files(plan, known):
        return Since(name, f"The files of {listed(found)} have changed since run {name}.")
    if path := imported.changed(imported.of_run(runs / name)):
        return Since(name, f"{path}, which is imported, has changed since run {name}.")
    made = setup.begin(plan, screen).results()
    now = {each: setup.facts(found) if isinstance(found, Environment) else {} for each, found in made.items()}
    changes = [change for each in now for change in _changes(each, known.environments.get(each, {}), now[each])]
    more = [f"{len(changes) - MOST_NAMES} more"] if len(changes) > MOST_NAMES else []
    return Since(name, f"Since run {name}: {listed(changes[:MOST_NAMES] + more)}." if changes else "")


def _complete(runs: Path) -> list[tuple[str, RunRecord]]:
    """Return the complete runs of a folder, the newest first; those that cannot be read are left out."""
    found = []
    for name in run_folders.names(runs):
        try:
            known = record.read(runs / name)
        except UserError:
            continue
        if known.state == "complete" and not known.shared_machine:
            found.append((name, known))
    return sorted(found, key=lambda each: (each[1].started, each[0]), reverse=True)


def _asks_the_same(plan: RunPlan, other: RunPlan) -> bool:
    """Report whether two plans measure the same cases in the same way; inputs are made later, from what is in the cases."""
    return _asked(plan) == _asked(other)


def _asked(plan: RunPlan) -> tuple[Any, ...]:
    bare, options = plan.with_inputs(lambda _: ""), plan.options
    groups = tuple((group.name, group.protocol, group.train_steps, *group.cases) for group in bare.groups)
    return groups, plan.study.name, plan.minutes, plan.profiles, options.delta, options.certify, options.guard


def _changed_files(plan: RunPlan, known: RunRecord) -> list[str]:
    """Return the workloads, and frameworks of the user's own, whose files differ."""
    now = {**plan.workload_hashes, **plan.framework_hashes}
    before = {**known.plan.workload_hashes, **known.plan.framework_hashes}
    return sorted(name for name in now.keys() | before.keys() if now.get(name) != before.get(name))


def _changes(name: str, before: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """Return what has changed in an environment, in a few words each."""
    if not now or not before:
        return [f"the environment {name} cannot be made" if before else f"the environment {name} is new"]
    old, new = before.get("packages", {}), now["packages"]
    found = [
        f"{each} {old.get(each, 'none')} -> {new.get(each, 'none')}"
        for each in sorted(old.keys() | new.keys())
        if old.get(each) != new.get(each)
    ]
    others = [words for key, words in ENVIRONMENT_FACTS.items() if key in before and before[key] != now[key]]
    return found or [f"other {words} of {name}" for words in others]
