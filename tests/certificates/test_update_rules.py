"""An update rule by itself, with given gradients: right ones pass far from the limit, wrong ones are named with their first step."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import given_gradients as scripted
import numpy as np
import pytest
import scripted_certification as certification

from steelyard.catalog import frameworks
from steelyard.certificates import rule_checks, rule_inputs, rule_plan, rule_sentences
from steelyard.certificates.certification import certify
from steelyard.certificates.record import folder as certificates_folder
from steelyard.certificates.rule_judgement import judge_rule
from steelyard.inputs import rates
from steelyard_worker import network, records, rules, tensors
from steelyard_worker.case import Case, Optimizer, RateSchedule, Settings, TensorGroup
from steelyard_worker.job_kinds import RULE
from steelyard_worker.network import Network, Parameter
from steelyard_worker.protocol import Data, Job

if TYPE_CHECKING:
    from collections.abc import Callable

    from steelyard.certificates.rule_judgement import RuleJudgement
    from steelyard.certificates.rule_plan import RulePlan

UNIT = 2.0**-24
OWN = network.describe(rule_plan.FOLDER, {"batch": 1})
NAMES = tuple(each.name for each in OWN.parameters if each.trainable)
COSINE = RateSchedule("cosine", "steps", length=3000, warmup=100)
STEPS = RateSchedule("step", "steps", factor=0.9, every=700)
RULES = {
    "sgd": Optimizer("sgd", 0.1),
    "momentum": Optimizer("sgd", 0.1, 0.9, weight_decay=1e-4, decay=NAMES),
    "nesterov": Optimizer("sgd", 0.01, 0.9, True, weight_decay=5e-4, decay=NAMES[:1], clip=4.0),
    "momentum at changing rates": Optimizer("sgd", 0.05, 0.9, schedule=STEPS),
    "adam": Optimizer("adam", 1e-3),
    "adam with decay": Optimizer("adam", 1e-3, weight_decay=1e-2, decay=NAMES, clip=1.0, schedule=COSINE),
    "adamw": Optimizer("adamw", 5e-5, epsilon=1e-6, weight_decay=0.01, decay=NAMES[:1], clip=1.0),
    "lamb": Optimizer("lamb", 3e-4, weight_decay=0.01, decay=NAMES[:1], clip=1.0),
}
TWO_GROUPS = (TensorGroup(NAMES[1::3], 0.1, 0.0), TensorGroup(NAMES[2::3], 3.0))
GROUPED = {
    f"{name} in groups": replace(RULES[name], weight_decay=1e-2, decay=NAMES, groups=TWO_GROUPS)
    for name in ("momentum", "momentum at changing rates", "adam with decay", "adamw", "lamb")
}
RULES |= GROUPED


def judged(rule: Optimizer, mistake: str = "", change: Callable[[dict[str, Any]], None] | None = None) -> RuleJudgement:
    weights, inputs = map(tensors.read, rule_inputs.write(OWN, rule.clip))
    of_steps = rates.certificate_rates(rule, rules.STEPS, 1) if rule.schedule.changes else None
    found = scripted.dump(rule, weights, inputs, of_steps, mistake)
    if change:
        change(found)
    return judge_rule(rule, weights, inputs, of_steps, found, UNIT)


@pytest.mark.parametrize("name", RULES)
def test_a_right_rule_in_float32_is_within_its_limit(name: str) -> None:
    found = judged(RULES[name])
    assert found.passed, found.sentence
    assert found.steps == 200
    assert 0 < found.worst < 0.6


@pytest.mark.parametrize("mistake", scripted.OF_GROUPS)
@pytest.mark.parametrize("name", GROUPED)
def test_a_group_that_is_ignored_or_has_other_tensors_is_rejected(name: str, mistake: str) -> None:
    found = judged(RULES[name], mistake)
    assert not found.passed
    assert "from step" in found.sentence


def test_the_sentence_of_a_rule_with_groups_names_them_as_a_cause() -> None:
    sentence = judged(RULES["momentum in groups"], scripted.RATE_IGNORED).sentence
    assert "from step 1 on" in sentence
    assert "Likely cause: the weight decay, which tensors are in a group, the learning rate," in sentence


@pytest.mark.parametrize(
    ("name", "mistake", "words"),
    [
        (
            "adam",
            scripted.STOPPED_CORRECTION,
            "Adam by itself, with given gradients, differs from its formula from step 6 on",
        ),
        ("adamw", scripted.STOPPED_CORRECTION, "from step 6 on"),
        ("lamb", scripted.STOPPED_CORRECTION, "from step 6 on"),
        ("momentum at changing rates", scripted.STOPPED_RATE, "steps 1 to"),
        ("adam with decay", scripted.STOPPED_RATE, "from step 6 on"),
        ("momentum", scripted.DECAY_OUTSIDE, "from step 2 on"),
        ("nesterov", scripted.DECAY_OUTSIDE, "from step"),
        ("momentum", scripted.FORGOTTEN, "from step 50 on"),
        ("adam", scripted.FORGOTTEN, "from step 50 on"),
        ("adam", scripted.EPSILON, "from step 11 on"),
        ("lamb", scripted.EPSILON, "from step 11 on"),
        ("adam", scripted.LARGEST_MOMENT, "from step"),
        ("adamw", scripted.LARGEST_MOMENT, "from step"),
        ("adamw", scripted.FROZEN, "'fixed.weight': it should not change there"),
        ("sgd", scripted.UNDEFINED, "from step 7 on ('norm.beta'"),
    ],
)
def test_a_wrong_rule_is_named_with_the_first_step_that_differs(name: str, mistake: str, words: str) -> None:
    found = judged(RULES[name], mistake)
    assert not found.passed
    assert found.steps == 0
    assert words in found.sentence


def test_the_sentence_says_how_large_the_difference_is_and_what_the_cause_may_be() -> None:
    sentence = judged(RULES["adam"], scripted.STOPPED_CORRECTION).sentence
    assert (
        "% of its change); steps 1 to 5 agree. Likely cause: the bias correction or the learning rate may stop"
        in sentence
    )


def test_a_tensor_that_is_missing_or_starts_elsewhere_is_named() -> None:
    assert "'norm.gamma'" in judged(RULES["sgd"], change=lambda found: found.pop("own/norm.gamma")).sentence

    def shift(found: dict[str, Any]) -> None:
        found["strong/kernel.bias"] = found["strong/kernel.bias"] + np.float32(1)

    assert "'kernel.bias'" in judged(RULES["sgd"], change=shift).sentence


def test_gradients_are_of_all_sizes_and_on_both_sides_of_the_limit() -> None:
    given = tensors.read(rule_inputs.write(OWN, 2.0)[1])
    gradients = rule_inputs.gradients(given)
    norms = np.array([np.sqrt(sum(np.sum(g**2) for g in each.values())) for each in gradients])
    assert np.sum(norms > 2) > 30
    assert np.sum(norms < 2) > 30
    assert not np.any((norms > 1.8) & (norms < 2.2))
    free = [np.abs(each["kernel.weight"]) for each in rule_inputs.gradients(tensors.read(rule_inputs.write(OWN, 0)[1]))]
    sizes = np.concatenate([each[each > 0] for each in free])
    assert sizes.min() < 1e-8
    assert sizes.max() > 10
    assert any(np.all([each.ravel()[place] == 0 for each in free]) for place in range(free[0].size))


def planned(rule: Optimizer = RULES["adam"], described: Network = OWN, computing: tuple[str, ...] = ("1",)) -> RulePlan:
    case = Case(
        "any",
        "tiny",
        {"batch": 3},
        "",
        {},
        rule,
        "pytorch",
        frameworks.framework("pytorch").complete(Settings("eager")),
    )
    job = Job("certify", case, "/workload", "/weights", Data("/data"), "/folder")
    found = rule_plan.plan_rule(job, described, "pytorch", computing, {}, 10, Path("/run"))
    assert found
    return found


def test_the_key_depends_on_rule_settings_and_environment_but_not_on_the_network() -> None:
    other = Network((Parameter("w", (3, 3), "conv", "constant:0"),), (), 1)
    assert planned().key == planned(described=other).key
    keys = {planned().key, planned(replace(RULES["adam"], epsilon=1e-7)).key, planned(computing=("2",)).key}
    assert len(keys | {planned(replace(RULES["adam"], schedule=COSINE)).key}) == 4


def test_kinds_that_decay_in_the_network_decay_in_the_small_one() -> None:
    described = Network(
        (Parameter("a", (3, 3, 1, 1), "conv", "constant:0"), Parameter("b", (3,), "gamma", "constant:1")), (), 1
    )
    rule = Optimizer("adamw", 1e-3, weight_decay=0.1, decay=("a",))
    assert planned(rule, described).job.case.optimizer.decay == ("kernel.weight",)
    assert planned(replace(rule, decay=("a", "b")), described).job.case.optimizer.decay == (
        "kernel.weight",
        "norm.gamma",
    )
    assert planned(replace(rule, decay=()), described).job.case.optimizer.weight_decay == 0


BODY_AND_HEAD = Network(
    tuple(
        Parameter(f"{part}.{name}", (3, 3) if kind == "dense" else (3,), kind, "constant:0")
        for part in ("body", "head")
        for name, kind in (("weight", "dense"), ("bias", "bias"))
    ),
    (),
    1,
)
DECAYED = Optimizer("adamw", 1e-3, weight_decay=0.1, decay=("body.weight", "head.weight"))


def test_groups_of_the_network_have_some_of_the_few_tensors_and_others_have_none() -> None:
    group = TensorGroup(("head.weight", "head.bias"), 0.1, 0.0)
    rule = planned(replace(DECAYED, groups=(group,)), BODY_AND_HEAD).job.case.optimizer
    assert rule.groups == (TensorGroup(("kernel.bias", "norm.beta"), 0.1, 0.0),)
    # A tensor of the group decays, too, so that a decay of the group that is ignored shows.
    assert rule.decay == ("kernel.weight", "kernel.bias")


def test_a_group_without_decaying_tensors_has_none_of_the_few_that_decay() -> None:
    group = TensorGroup(("head.bias",), 2.0)
    rule = planned(replace(DECAYED, groups=(group,)), BODY_AND_HEAD).job.case.optimizer
    assert rule.groups == (TensorGroup(("kernel.bias", "norm.beta"), 2.0),)
    assert rule.decay == ("kernel.weight",)


def test_more_groups_than_the_few_tensors_leave_the_last_ones_to_the_steps_of_the_network() -> None:
    names = [each.name for each in BODY_AND_HEAD.parameters]
    groups = tuple(TensorGroup((name,), 2.0 + place) for place, name in enumerate([*names, "x", "y"]))
    rule = planned(replace(DECAYED, groups=groups), BODY_AND_HEAD).job.case.optimizer
    assert [group.rate for group in rule.groups] == [2, 3, 4, 5]
    assert len({name for group in rule.groups for name in group.tensors}) == 4


def test_the_key_depends_on_the_groups_and_without_any_it_is_that_of_before() -> None:
    groups = TensorGroup(("head.weight",), 2.0), TensorGroup(("head.weight",), 3.0)
    rules = [DECAYED, *(replace(DECAYED, groups=(group,)) for group in groups)]
    assert len({planned(rule, BODY_AND_HEAD).key for rule in rules}) == 3
    assert "groups" not in records.plain(planned(DECAYED, BODY_AND_HEAD).job)["case"]["optimizer"]


def test_a_check_is_found_again_unless_it_was_changed(tmp_path: Path) -> None:
    plan = planned()
    plan = replace(plan, job=replace(plan.job, folder=str(tmp_path)))
    scripted.write(plan.job)
    check = rule_checks.conclude(plan, tensors.read(tmp_path / "perturbation0"))
    assert check.passed, check.sentence
    assert rule_checks.find(plan.key) == check
    path = certificates_folder() / "rules" / f"{plan.key}.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"steps": 1000}))
    assert rule_checks.find(plan.key) is None
    path.write_text("[]")
    assert rule_checks.find(plan.key) is None


@pytest.fixture
def with_rules(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> dict[str, str]:
    """Let scripted frameworks have the small network, and their processes save what `mistakes` says, by framework."""
    mistakes: dict[str, str] = {}
    plain = certification.write_dumps

    def write(job: Job, changed: Any) -> None:
        if job.kind == RULE:
            scripted.write(job, mistakes.get(job.case.framework, ""))
        else:
            plain(job, changed)

    monkeypatch.setenv("STEELYARD_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(rule_plan, "obstacle", lambda *_: "")
    monkeypatch.setattr(certification, "write_dumps", write)
    return mistakes


def test_rules_of_a_framework_without_the_small_network_are_not_checked() -> None:
    assert rule_plan.obstacle("pytorch", "float32") == ""
    assert rule_plan.obstacle("fake", "float32") == "the folder of Fake has no file workloads/update_rule.py"
    assert "bfloat16" in rule_plan.obstacle("pytorch", "bfloat16")
    assert rule_sentences.not_checked("reason") == " Update rule not checked by itself: reason."


def checks(run: certification.Scripted) -> list[Job]:
    return [job for job in run.started if job.kind == RULE]


def test_a_certificate_says_that_its_rule_was_checked(tmp_path: Path, with_rules: dict[str, str]) -> None:
    run = certification.session(tmp_path / "run")
    found = certify(run)
    assert {each["rule_steps"] for each in found.values()} == {200}
    assert all("Its update rule by itself: 200 steps" in each["sentence"] for each in found.values())
    assert len(checks(run)) == 2


def test_a_check_is_made_once_for_all_runs(tmp_path: Path, with_rules: dict[str, str]) -> None:
    certify(certification.session(tmp_path / "first"))
    again = certification.session(tmp_path / "again", batches=(2,))
    certify(again)
    assert again.started
    assert not checks(again)
    fresh = certification.session(tmp_path / "fresh")
    certify(fresh, fresh=True)
    assert len(checks(fresh)) == 2


def test_a_wrong_rule_rejects_the_certificate_of_its_framework(tmp_path: Path, with_rules: dict[str, str]) -> None:
    with_rules["fake"] = scripted.UNDEFINED
    run = certification.session(tmp_path / "run")
    found, ids = certify(run), certification.ids(run)
    assert found[ids["dummy"]]["passed"]
    wrong = found[ids["fake"]]
    assert not wrong["passed"]
    assert wrong["rule_steps"] == 0
    assert "SGD by itself, with given gradients, differs from its formula from step 7 on" in wrong["sentence"]
    assert not wrong["losses"]


def test_a_check_whose_process_failed_certifies_nothing_and_is_made_again(
    tmp_path: Path, with_rules: dict[str, str]
) -> None:
    def failing(job: Job) -> Any:
        return ("crash", "The script ends it.") if job.kind == RULE and job.case.framework == "fake" else {}

    run = certification.session(tmp_path / "run", failing)
    found, ids = certify(run), certification.ids(run)
    assert not found[ids["fake"]]["passed"]
    assert (
        "could not be checked by itself, because the process failed: The script ends it."
        in found[ids["fake"]]["sentence"]
    )
    again = certify(certification.session(tmp_path / "again"))
    assert all(each["passed"] for each in again.values())
