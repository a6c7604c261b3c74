"""All stages of a run, in order: from the plan to the report."""

import json
import math
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from steelyard import analysis, feasibility, host, report
from steelyard.catalog import frameworks
from steelyard.certificates import certification, dumps
from steelyard.certificates.method import Scope
from steelyard.cluster import place as cluster
from steelyard.cluster.nodes import Choice
from steelyard.console import Screen
from steelyard.environments import setup
from steelyard.environments.pending import already
from steelyard.errors import UserError
from steelyard.files import atomic
from steelyard.host import Machine, exclusive
from steelyard.host.exclusive import Patience
from steelyard.inputs import case_inputs
from steelyard.inputs.case_inputs import CaseInputs
from steelyard.inputs.trained_weights import Read
from steelyard.measure import checkpoints, communication, graphs, peak, profiles, reuse, rounds, search
from steelyard.measure.session import Session
from steelyard.plan.run_plan import RunPlan, Variant
from steelyard.ports import proof
from steelyard.results import durations as stages
from steelyard.results import permission, record, round_results, run_folders, trials
from steelyard.results.durations import Durations
from steelyard.results.round_results import RoundResults
from steelyard.results.store import Store


def run(plan: RunPlan, folder: Path, screen: Screen, nodes: Choice | None = None, limit_s: float = math.inf) -> Path:
    """Carry out a plan in a run folder and return the path of the report. `nodes`: of a cluster; None: on this machine.

    If the folder holds results of an interrupted run, only the missing processes are run. `limit_s`: how long it waits for
    others on this machine (Busy, StoppedWaiting).
    """
    with run_folders.claim(folder):
        if nodes:
            with _working(folder, measuring=True) as durations:
                _measure_on(nodes, plan, folder, screen, durations)
        else:
            # A limit is given by the user now, --no-guard may be that of a run to be continued.
            beside = not plan.options.guard and math.isinf(limit_s)
            _run_here(plan, folder, screen, Patience(limit_s, beside))
        screen.stage("Report")
        return report.write(analysis.view(folder))


def _run_here(plan: RunPlan, folder: Path, screen: Screen, patience: Patience) -> None:
    case_inputs.inspect(plan, case_inputs.OPENED_BEFORE_WAITING)
    # The state changes after the wait: a run that is stopped while it waits is as it was.
    with _turn(folder, screen, patience) as alone, _working(folder, measuring=True) as durations:
        if not alone:
            record.update(folder, shared_machine=True)
        _measure(plan, folder, screen, durations)


@contextmanager
def _turn(folder: Path, screen: Screen, patience: Patience, shared: bool = False, command: str = "") -> Iterator[bool]:
    """Take a turn of this machine, and show that this command waits for it."""

    def tell(sentence: str) -> None:
        screen.say(sentence)
        if not patience.beside:
            name = exclusive.holder()
            screen.waiting("" if name == exclusive.OTHER else name)

    command = command or record.read(folder).command
    with exclusive.use(tell, patience, folder.name, command, shared=shared) as alone:
        yield alone


def certify(
    plan: RunPlan,
    folder: Path,
    screen: Screen,
    fresh: bool = False,
    scope: Scope | None = None,
    limit_s: float = math.inf,
) -> dict[str, dict[str, Any]]:
    """Certify without measuring; returns the certificates by case id. `limit_s`: as of `run`."""
    case_inputs.inspect(plan, case_inputs.OPENED_BEFORE_WAITING)
    # Another command may be reading the references that `fresh` replaces; at full size a process may need the whole memory.
    shared = not fresh and not (scope and scope.sample) and feasibility.leaves_half_of_memory(plan)
    with (
        run_folders.claim(folder),
        _turn(folder, screen, Patience(limit_s), shared),
        _working(folder) as durations,
    ):
        session = _prepare(plan, folder, screen, durations)
        try:
            return _certified(session, fresh, scope)[1]
        finally:  # unlike a run, an interrupted certification is not continued
            dumps.delete(folder)


def explain(
    plan: RunPlan,
    folder: Path,
    screen: Screen,
    wanted: Collection[Variant],
    processes: int,
    fresh: bool = False,
    limit_s: float = math.inf,
) -> None:
    """Profile variants of a finished run until each has this many profiles; with `fresh`, take all of them anew.

    `limit_s`: as of `run`.
    """
    missing = profiles.missing(folder, wanted, plan.seed, processes, fresh)
    if not missing:
        return
    # A scripted clock is not disturbed, but its processes would disturb those that are timed.
    shared = all(frameworks.framework(each.variant.case.framework).scripted for each in missing)
    command = f"steelyard explain --run {folder.name}"
    with run_folders.claim(folder), _turn(folder, screen, Patience(limit_s), shared, command):
        session = _session(plan, folder, screen, Durations())
        screen.stage("Profiles")
        profiles.take(session, missing, processes)


@contextmanager
def _working(folder: Path, measuring: bool = False) -> Iterator[Durations]:
    """Update state and times in run.json: running, then complete or interrupted; failed if no process that measures counts."""
    durations, earlier = Durations(), record.update(folder, state="running").seconds
    try:
        with durations.of(stages.TOTAL):
            yield durations
    except BaseException:
        with suppress(UserError):  # on a full disk this write fails too, and the original error must reach the user
            record.update(folder, state="interrupted", seconds=durations.added_to(earlier))
        raise
    state = "failed" if measuring and not _has_result(folder) else "complete"
    record.update(folder, state=state, seconds=durations.added_to(earlier))


def _has_result(folder: Path) -> bool:
    """Return whether a process has finished, and computed what was certified."""
    found, _ = trials.read_all(folder)
    return any(round_results.collect(found, record.read_certificates(folder)).finished.values())


def _measure(plan: RunPlan, folder: Path, screen: Screen, durations: Durations) -> None:
    session = _prepare(plan, folder, screen, durations)
    if session.plan.search and not session.plan.search.ended:
        with _apart_from_waiting(session, stages.SEARCH):
            session = search.run(session, certification.certify)
    session, certificates = _certified(session)
    results = _earlier(session, certificates)
    with durations.of(stages.ROUNDS):
        rounds.measure(session, results)
    with durations.of(stages.PEAK):
        peak.check(session, results)
    with durations.of(stages.COMMUNICATION):
        communication.measure(session, communication.missing(session, results))
    if plan.profiles:
        screen.stage("Profiles")
        measured = [each for each in session.plan.variants if results.finished.get(each.case.id)]
        with durations.of(stages.PROFILES):
            missing = profiles.missing(folder, measured, plan.seed, plan.profiles)
            profiles.take(session, missing, plan.profiles)
    if session.plan.counted:
        screen.stage("Graphs")
        with durations.of(stages.GRAPHS):
            graphs.count(session)


def _earlier(session: Session, certificates: dict[str, dict[str, Any]]) -> RoundResults:
    """Begin the rounds with the trials that the run has from an earlier part of it, or from an earlier run."""
    session.screen.stage("Rounds")
    reuse.adopt(session)
    found, damaged = trials.read_all(session.folder)
    for sentence in damaged:
        session.screen.say(sentence)
    session.store.add_trials(session.folder.name, found)
    return round_results.collect(found, certificates)


def _measure_on(nodes: Choice, plan: RunPlan, folder: Path, screen: Screen, durations: Durations) -> None:
    """Measure on the nodes of a cluster. Inputs are made here; all else is made, certified and measured there."""
    screen.stage("Data and weights")
    with durations.of(stages.INPUTS):
        inputs = _inputs(plan, checkpoints.reader(plan, already({}), screen), screen)
    store = Store(folder.parent, screen.say)
    session = Session(_with_inputs(plan, inputs), folder, already({}), inputs, store, screen, durations=durations)
    _note_inputs(folder, session.plan, inputs, nodes.facts.machine)
    record.update(folder, nodes=tuple(each.name for each in nodes.nodes), left_out=nodes.left_out)
    store.add_run(folder)
    screen.stage("Nodes")
    for sentence in nodes.left_out:
        screen.say(sentence)
    with cluster.opened(session, nodes) as place:
        with durations.of(stages.CERTIFICATES):
            ready = place.prepare()
        record.update(folder, environments=ready.facts, unavailable=ready.unavailable)
        atomic.write_text(folder / record.CERTIFICATES, json.dumps(ready.certificates, indent=1))
        session = replace(session, plan=session.plan.without(ready.unavailable))
        results = _earlier(session, ready.certificates)
        with durations.of(stages.ROUNDS):
            rounds.measure(session, results, place)
        with durations.of(stages.PEAK):
            peak.check(session, results, place.call)
        with durations.of(stages.COMMUNICATION):
            if exchanging := communication.missing(session, results):
                place.aside("exchange", exchanging)
        if plan.profiles:
            screen.stage("Profiles")
            measured = tuple(each.case.id for each in session.plan.variants if results.finished.get(each.case.id))
            with durations.of(stages.PROFILES):
                place.aside("profile", measured, plan.profiles)
        if session.plan.counted:
            screen.stage("Graphs")
            with durations.of(stages.GRAPHS):
                place.aside("count")


def _prepare(plan: RunPlan, folder: Path, screen: Screen, durations: Durations) -> Session:
    """Begin a session, and write what it works on into run.json."""
    session = _session(plan, folder, screen, durations)
    _note_inputs(folder, session.plan, session.inputs, host.describe())
    session.store.add_run(folder)
    return session


def _session(plan: RunPlan, folder: Path, screen: Screen, durations: Durations) -> Session:
    """Prepare the inputs, while the environments are being made."""
    store = Store(folder.parent, screen.say)
    environments = setup.begin(plan, screen)
    screen.stage("Data and weights")
    with durations.of(stages.INPUTS):
        inputs = _inputs(plan, checkpoints.reader(plan, environments, screen), screen)
    return Session(_with_inputs(plan, inputs), folder, environments, inputs, store, screen, durations=durations)


def _inputs(plan: RunPlan, read: Read, screen: Screen) -> dict[str, CaseInputs]:
    return case_inputs.prepare(plan, lambda p: screen.progress(p.sentence, p.done, p.total), read)


def _with_inputs(plan: RunPlan, inputs: dict[str, CaseInputs]) -> RunPlan:
    return plan.with_inputs(lambda case: inputs[case_inputs.recipe(case)].identity)


def _certified(
    session: Session, fresh: bool = False, scope: Scope | None = None
) -> tuple[Session, dict[str, dict[str, Any]]]:
    """Certify what has an environment, beginning with those that are ready; returns the session without the others."""
    with _apart_from_waiting(session, stages.CERTIFICATES):
        certificates = certification.certify(session, fresh, scope)
    if proved := proof.certificates(session.folder, (variant.case.id for variant in session.plan.variants)):
        certificates |= proved
        atomic.write_text(session.folder / record.CERTIFICATES, json.dumps(certificates, indent=1))
    with session.durations.of(stages.ENVIRONMENTS):
        unavailable = session.environments.failures()
    facts = {name: setup.facts(session.environments[name]) for name in session.environments}
    record.update(session.folder, environments=facts, unavailable=unavailable)
    return replace(session, plan=session.plan.without(unavailable)), certificates


@contextmanager
def _apart_from_waiting(session: Session, stage: str) -> Iterator[None]:
    """Add the time of the block to a stage; while it only waits for environments, the time is theirs."""
    waits = session.environments.waits
    before_s = waits.seconds
    try:
        with session.durations.of(stage):
            yield
    finally:
        session.durations.move(waits.seconds - before_s, stage, stages.ENVIRONMENTS)


def _note_inputs(folder: Path, plan: RunPlan, inputs: dict[str, CaseInputs], machine: Machine) -> None:
    """Write the machine that measures, data and the cases' inputs into run.json."""
    found = {variant.group: inputs[case_inputs.recipe(variant.case)] for variant in plan.variants}
    described = {
        group: {"origin": each.origin, "identity": each.identity, "meta": each.meta} for group, each in found.items()
    }
    fingerprint = machine.fingerprint()
    allowed = permission.mark(plan, fingerprint)
    record.update(folder, plan=plan, machine=fingerprint, host=asdict(machine), inputs=described, allowed=allowed)
