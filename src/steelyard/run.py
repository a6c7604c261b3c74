"""All stages of a run, in order: from the plan to the report."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

from steelyard import host, report
from steelyard.certificates import certification
from steelyard.certificates.method import Scope
from steelyard.console import Screen
from steelyard.environments import Environment, setup
from steelyard.errors import UserError
from steelyard.inputs import case_inputs
from steelyard.inputs.case_inputs import CaseInputs
from steelyard.measure import peak, rounds
from steelyard.measure.session import Session
from steelyard.plan import memory
from steelyard.plan.run_plan import RunPlan
from steelyard.results import record, round_results
from steelyard.results.durations import CERTIFICATES, ENVIRONMENTS, INPUTS, PEAK, ROUNDS, Durations
from steelyard.results.store import Store
from steelyard_worker.case import Case


def check(plan: RunPlan) -> None:
    """Reject a plan that cannot run here, before anything is created: device, memory, and data that the user named."""
    device, external = plan.options.device, plan.options.external
    # An interpreter of the user's own may reach accelerators that are not listed here.
    if device != "cpu" and set(plan.environments) - external.keys() and not host.accelerators(device):
        raise UserError(
            f"--device {device}: no such device was found on this machine. Check its driver, or use --device cpu."
        )
    memory.check(plan)
    case_inputs.check(plan)


def run(plan: RunPlan, folder: Path, screen: Screen) -> Path:
    """Carry out a plan in a run folder and return the path of the report.

    If the folder holds results of an interrupted run, only the missing processes are run.
    """
    with record.claim(folder):
        with _working(folder) as durations:
            session = _measure(plan, folder, screen, durations)
        screen.stage("Report")
        return report.write(report.view(folder, session.store))


def certify(
    plan: RunPlan, folder: Path, screen: Screen, fresh: bool = False, scope: Scope | None = None
) -> dict[str, dict[str, Any]]:
    """Certify without measuring; returns the certificates by case id."""
    with record.claim(folder), _working(folder) as durations:
        session = _prepare(plan, folder, screen, durations)
        with durations.of(CERTIFICATES):
            return certification.certify(session, fresh, scope)


@contextmanager
def _working(folder: Path) -> Iterator[Durations]:
    """Update state and times in run.json: running, then complete or interrupted."""
    durations, earlier = Durations(), record.update(folder, state="running").seconds
    try:
        yield durations
    except BaseException:
        with suppress(UserError):  # on a full disk this write fails too, and the original error must reach the user
            record.update(folder, state="interrupted", seconds=durations.added_to(earlier))
        raise
    record.update(folder, state="complete", seconds=durations.added_to(earlier))


def _measure(plan: RunPlan, folder: Path, screen: Screen, durations: Durations) -> Session:
    session = _prepare(plan, folder, screen, durations)
    with durations.of(CERTIFICATES):
        certificates = certification.certify(session)
    screen.stage("Rounds")
    results = round_results.collect(session.store.trials(folder.name), certificates)
    with durations.of(ROUNDS):
        rounds.measure(session, results)
    with durations.of(PEAK):
        peak.check(session, results)
    return session


def _prepare(plan: RunPlan, folder: Path, screen: Screen, durations: Durations) -> Session:
    store = Store(folder.parent)
    with durations.of(ENVIRONMENTS):
        environments, unavailable = setup.environments(plan, screen)
    screen.stage("Data and weights")
    with durations.of(INPUTS):
        inputs = case_inputs.prepare(plan.without(unavailable), lambda p: screen.progress(p.sentence, p.done, p.total))
    ready = plan.with_inputs(lambda case: _identity(inputs, case))
    _note(folder, ready, environments, unavailable, inputs)
    store.add_run(folder)
    return Session(ready.without(unavailable), folder, environments, inputs, store, screen, durations=durations)


def _identity(inputs: dict[str, CaseInputs], case: Case) -> str:
    """Return the hash of a case's inputs. Where they were not prepared, because its environment is missing, keep its value."""
    found = inputs.get(case_inputs.recipe(case))
    return found.identity if found else case.inputs


def _note(
    folder: Path, plan: RunPlan, environments: dict[str, Environment], unavailable: dict[str, str],
    inputs: dict[str, CaseInputs],
) -> None:  # fmt: skip
    """Write machine, environments, data and the cases' inputs into run.json."""
    machine = host.describe()
    described = {
        variant.group: {"origin": found.origin, "identity": found.identity, "meta": found.meta}
        for variant in plan.variants
        if (found := inputs.get(case_inputs.recipe(variant.case)))
    }
    record.update(
        folder, plan=plan, machine=machine.fingerprint(), host=asdict(machine), unavailable=unavailable, inputs=described,
        environments={name: setup.facts(each) for name, each in environments.items()},
    )  # fmt: skip
