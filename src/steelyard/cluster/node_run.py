"""The part of a run on one node: environments, certificates, rounds, profiles. It does not depend on the cluster."""

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, ExitStack, nullcontext
from dataclasses import replace
from pathlib import Path
from threading import Event
from typing import Any

from steelyard.catalog import frameworks
from steelyard.certificates import certification
from steelyard.cluster.followers import Followers
from steelyard.cluster.messages import Hold, Outgoing, PartEnded, Ready
from steelyard.console import Screen
from steelyard.environments import EnvironmentName, setup
from steelyard.environments.interpreter import IMPORT_LIMIT_S
from steelyard.errors import UserError
from steelyard.files.paths import cache_folder, make_private
from steelyard.host import exclusive
from steelyard.host.exclusive import Patience
from steelyard.host.noise import judge
from steelyard.host.sampler import Sampler
from steelyard.inputs.case_inputs import CaseInputs
from steelyard.measure import attempts, communication, compiled, graphs, hosts, jobs, part, profiles
from steelyard.measure.attempts import Attempt, Outcome
from steelyard.measure.hosts import Meeting
from steelyard.measure.part import Order
from steelyard.measure.session import Session
from steelyard.plan.run_plan import RunPlan, Variant
from steelyard.results import record
from steelyard.results.record import RunRecord
from steelyard.results.store import Store
from steelyard.results.trials import Trial
from steelyard.statistics.decision import Ranking


class Told(Screen):
    """Turns the reports of a run into messages of the agent."""

    def __init__(self, outgoing: Outgoing) -> None:
        super().__init__()
        self._outgoing = outgoing

    def say(self, sentence: str) -> None:
        self._outgoing.add("say", sentence)

    def stage(self, title: str) -> None:
        """Does nothing: stages are those of the run, on its machine."""

    def progress(self, label: str, done: float, total: float, note: str = "") -> None:
        self._outgoing.add("progress", label, done, total, note)

    def trial(self, number: int, variant: Variant, node: str = "") -> None:  # noqa: ARG002 - home knows which node this is
        self._outgoing.add("trial", number, variant.case.id)

    def finished(self, trial: Trial) -> None:
        """Does nothing: the machine of the run reads the trial from its files."""

    def ranking(self, group: str, ranking: Ranking, titles: dict[str, str]) -> None:
        """Does nothing: the machine of the run ranks."""


class NodeRun:
    """One run on this node. Every piece of work has the turn of the machine, so that it disturbs no other steelyard run."""

    def __init__(self, node: str, key: str, name: str, outgoing: Outgoing) -> None:
        """`key`: of the folder with the node's part of the record until it is transferred; `name`: of the run."""
        self.folder = cache_folder() / "cluster" / "runs" / key / name
        make_private(self.folder)
        self.stop = Event()
        self.ended_parts: set[str] = set()
        self.followers: Followers | None = None
        self._node, self._outgoing = node, outgoing
        self._session: Session | None = None
        self._wait = True
        self._told_as = name, ""  # name and command of the run, for messages about who has the turn
        self._held = ExitStack()  # the turn of the machine, from `hold` to `release`
        self._is_held = False

    def prepare(self, known: RunRecord, inputs: Mapping[str, CaseInputs]) -> Ready:
        """Make or verify environments, then certify. UserError: nothing can be measured here."""
        plan = known.plan
        frameworks.use(plan.options.framework_folders)
        record.write(self.folder, known)
        self._wait, self._told_as = plan.options.guard, (self.folder.name, known.command)
        screen = Told(self._outgoing)
        with self._turn():
            names = [EnvironmentName.parse(each) for each in plan.environments]
            limit_s = min(plan.options.silence_s, IMPORT_LIMIT_S)
            device, external = plan.variants[0].case.settings.device, plan.options.external
            environments = setup.make(names, device, external, screen, limit_s)
            store = Store(self.folder.parent, screen.say)
            store.add_run(self.folder)
            session = Session(plan, self.folder, environments, dict(inputs), store, screen, self.stop, node=self._node)
            certificates = certification.certify(session)
            unavailable = environments.failures()
        facts = {name: setup.facts(environments[name]) for name in environments}
        record.update(self.folder, environments=facts, unavailable=unavailable)
        self._session = replace(session, plan=plan.without(unavailable))
        return Ready(certificates, facts, unavailable)

    def attempt(self, attempt: Attempt, addresses: tuple[str, ...] = ()) -> Outcome:
        """Run an attempt at a round; its trials are in the files.

        `addresses`: of all nodes that take part in it, of this one first; empty if no other does.
        """
        self.followers = Followers(self._outgoing, addresses) if addresses else None
        try:
            with self._turn():
                return replace(attempts.run(replace(self._ready, partners=self.followers), attempt), trials=())
        finally:
            self.followers = None

    def hold(self) -> Hold:
        """Take the turn of this machine until `release`, if no other run has it; does not wait."""
        self.ended_parts.clear()
        self._is_held = self._held.enter_context(exclusive.use(lambda _: None, Patience(beside=True), *self._told_as))
        if not self._is_held and self._wait:
            self._held.close()
            return Hold(False, exclusive.holder())
        return Hold(True)

    def release(self) -> None:
        """Give the turn back."""
        self._is_held = False
        self._held.close()

    def part(self, order: Order, meeting: Meeting, number: int) -> PartEnded:
        """Run this node's ranks of a trial that another node leads. `number`: of this node among those of the trial."""
        session = self._ready
        variant = session.plan.by_id[order.case]
        folder = jobs.trial_folder(self.folder, order.number, order.attempt, variant)
        inputs = session.inputs_of(variant.case)
        job = jobs.measuring(session.plan, variant, inputs, order.number, order.attempt, folder)
        environment = session.environments[variant.case.environment]
        with Sampler() as sampler:
            trial = compiled.launched(
                part.ordered(job, order),
                environment,
                lambda each: part.run(
                    each,
                    environment.python,
                    hosts.on_node(meeting, number),
                    lambda: self._is_over(meeting),
                    self.folder / part.JOBS / f"{folder.name}.json",
                ),
            )
        found = judge(sampler.summary())
        reasons = tuple(f"on node {self._node} {each.reason}" for each in found)
        return PartEnded(trial.error, reasons, max((each.severity for each in found), default=0.0))

    def _is_over(self, meeting: Meeting) -> bool:
        return self.stop.is_set() or bool(self.ended_parts & {meeting.key, ""})

    def profile(self, cases: tuple[str, ...], processes: int) -> None:
        """Profile these cases."""
        session = self._ready
        with self._turn():
            wanted = [session.plan.by_id[each] for each in cases]
            profiles.take(session, profiles.missing(session.folder, wanted, session.plan.seed, processes), processes)

    def exchange(self, cases: tuple[str, ...]) -> None:
        """Measure the exchange of these cases by itself."""
        with self._turn():
            communication.measure(self._ready, cases)

    def count(self) -> None:
        """Count the graphs that the plan names."""
        with self._turn():
            graphs.count(self._ready)

    def call(self, function: Callable[..., Any], *values: Any) -> Any:
        """Return what a function of steelyard's own returns on this machine."""
        with self._turn():
            return function(*values)

    @property
    def _ready(self) -> Session:
        if self._session is None:
            raise UserError(f"Node {self._node} has not been prepared for this run. Start the run again with --resume.")
        return self._session

    def _turn(self) -> AbstractContextManager[bool]:
        if self._is_held:
            return nullcontext(True)
        return exclusive.use(self._waiting, Patience(beside=not self._wait), *self._told_as)

    def _waiting(self, sentence: str) -> None:
        self._outgoing.add("waits", sentence, exclusive.holder())


def mapped(plan: RunPlan, workloads: Mapping[str, Path], own: Mapping[str, Path]) -> RunPlan:
    """Return the plan with the folders of this node. `workloads`: by name; `own`: the user's frameworks, by name.

    The node gets data and weights from home, so the folder of data sets and the file of weights are left out.
    """
    options = replace(
        plan.options,
        data="",
        weights="",
        workload_folders=tuple(map(str, workloads.values())),
        framework_folders=tuple(map(str, own.values())),
    )
    return replace(plan, options=options, workload_folders={name: str(path) for name, path in workloads.items()})
