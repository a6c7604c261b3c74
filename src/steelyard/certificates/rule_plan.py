"""The process that checks an update rule by itself: a few tensors with given gradients, trained by the framework's own trainer.

What it computes depends on the framework, its settings and the rule, but on no workload, so its result is shared by all of them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from steelyard.catalog import frameworks
from steelyard.catalog.frameworks import WORKER
from steelyard.certificates import rule_inputs, tensor_groups
from steelyard.certificates.method import VERSION
from steelyard.certificates.sources import digest, implementation_hash
from steelyard.inputs import rates
from steelyard_worker import accumulation, network, records, rules, tensors
from steelyard_worker.case import Case, Optimizer, Settings
from steelyard_worker.job_kinds import RULE
from steelyard_worker.network import Network, Parameter
from steelyard_worker.protocol import Data, Job

# The name of the network that has given gradients, and its folder in the worker. It is no workload that can be run.
NAME = "update_rule"
FOLDER = WORKER / NAME
PRECISIONS = ("float32", "float64")
# Kinds of tensors that are treated as the kernel, or as the bias, of that network.
KERNELS = frozenset({"conv", "conv1d", "dense", "lstm_w_ih", "lstm_w_hh"})
BIASES = frozenset({"bias", "lstm_b", "vector"})


@dataclass(frozen=True)
class RulePlan:
    """A check of an update rule: its process in an environment, and the hash of everything that decides its result.

    `declared`: how the framework's native rule differs from the canonical one (form, correction).
    """

    environment: str
    job: Job
    declared: Mapping[str, str]
    key: str


def obstacle(framework: str, precision: str) -> str:
    """Return why the rules of a framework are not checked by themselves; empty if they are."""
    known = frameworks.framework(framework)
    if precision not in PRECISIONS:
        return f"this is not done in {precision}, in which the smallest of the given gradients are zero"
    file = network.implementation_file(FOLDER, NAME, framework, known.user_folder)
    if file.is_file():
        return ""
    return f"the folder of {known.title} has no file workloads/{NAME}.py"


def plan_rule(
    job: Job,
    described: Network,
    environment: str,
    computing: Sequence[object],
    declared: Mapping[str, str],
    steps_per_epoch: int,
    folder: Path,
) -> RulePlan | None:
    """Return the check of the rule of a certify job; None: the framework has no such network (see `obstacle`).

    `described`: the network of the job, whose kinds of tensors are under weight decay or not. `computing`: what identifies the
    environment: version, packages and contents. `folder`: that of the run's certificates.
    """
    case = job.case
    if obstacle(case.framework, case.settings.precision):
        return None
    own = network.describe(FOLDER, {"batch": 1})
    rule = _for_tensors(case.optimizer, described, own.parameters)
    weights, inputs = rule_inputs.write(own, rule.clip)
    settings = _settings(case.framework, case.settings, {each.kind for each in described.parameters})
    checked = Job(
        kind=RULE,
        case=Case(
            workload=NAME,
            preset="",
            sizes={"batch": 1},
            specification="",
            data={},
            optimizer=rule,
            framework=case.framework,
            settings=settings,
            version=case.version,
        ),
        workload_folder=str(FOLDER),
        weights=str(weights),
        data=Data(str(inputs)),
        folder="",
        rates=rates.write_certificate(rule, rules.STEPS, steps_per_epoch),
        variables=job.variables,
    )
    folders = [Path(each) for each in (str(weights), str(inputs), checked.rates) if each]
    key = digest(
        VERSION,
        implementation_hash(checked),
        records.plain(settings),
        records.plain(rule),
        dict(declared),
        list(computing),
        checked.variables,
        *map(tensors.identity, folders),
    )
    return RulePlan(environment, replace(checked, folder=str(folder / f"rule-{key[:20]}")), declared, key)


def _for_tensors(rule: Optimizer, described: Network, own: Sequence[Parameter]) -> Optimizer:
    """Return the rule for the few tensors: of these, the kinds decay that do in the network, and groups have some of them."""
    decayed = {each.kind for each in described.parameters if each.name in rule.decay}
    alike = {"dense": KERNELS, "bias": BIASES}
    trained = [each for each in own if each.trainable]
    names = [each.name for each in trained if decayed & alike.get(each.kind, {each.kind})]
    groups = tensor_groups.for_tensors(rule, [each.name for each in trained])
    names = tensor_groups.decayed(rule, groups, [each.name for each in trained], names)
    return replace(rule, decay=tuple(names), weight_decay=rule.weight_decay if names else 0.0, groups=groups)


def _settings(framework: str, settings: Settings, kinds: set[str]) -> Settings:
    """Return the settings for a batch that is not divided; a knob about tensors that the network lacks is at its default."""
    knobs = frameworks.framework(framework).knobs
    settings = replace(settings, knobs={n: v for n, v in settings.knobs.items() if n != accumulation.KNOB})
    idle = {name for name, knob in knobs.items() if knob.matters_for and not knob.matters(kinds)}
    return replace(settings, knobs={n: knobs[n].default if n in idle else v for n, v in settings.knobs.items()})
