"""A plan contains every requested case once, in order; cases that cannot be measured are skipped with a reason."""

from __future__ import annotations

import itertools
import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
import recorded_trials
from hypothesis import given
from hypothesis import strategies as st

from steelyard.catalog import frameworks
from steelyard.errors import UserError
from steelyard.plan import names, resolve
from steelyard.plan.options import Options
from steelyard.plan.run_plan import FrameworkFacts, RunPlan, Variant
from steelyard.statistics.orders import round_order
from steelyard_worker import records
from steelyard_worker.case import NO_OPTIMIZER, Optimizer, Settings

WORKLOADS = Path(__file__).resolve().parent.parent / "workloads"
FRAMEWORKS = ("fake", "dummy", "pytorch", "tensorflow", "jax")
GROUPS = ("line:small", "resnet18:tiny", "lstm-imdb:tiny")

CHOICES = st.builds(
    lambda groups, names, steps, noises: Options(
        workloads=tuple(groups),
        frameworks=tuple(names),
        workload_folders=(str(WORKLOADS),),
        knobs=(f"fake.step_us={','.join(map(str, steps))}", f"fake.noise={','.join(map(str, noises))}"),
    ),
    st.lists(st.sampled_from(GROUPS), min_size=1, max_size=4),
    st.lists(st.sampled_from(FRAMEWORKS), min_size=0, max_size=4).map(lambda names: ["fake", *names]),
    st.lists(st.integers(1, 3), min_size=1, max_size=3),
    st.lists(st.sampled_from([0.0, 0.1]), min_size=1, max_size=2),
)


def _planned(options: Options) -> RunPlan | None:
    try:
        return resolve.plan(options)
    except UserError as error:
        assert str(error).startswith("There is nothing to measure")
        return None


@given(options=CHOICES)
def test_every_requested_pair_is_either_a_case_or_skipped_and_no_case_is_repeated(options: Options) -> None:
    plan = _planned(options)
    if plan is None:
        return
    keys = [variant.key for variant in plan.variants]
    assert len(keys) == len(set(keys)) == len(plan.by_id)
    measured = {(variant.group, variant.case.environment) for variant in plan.variants}
    skipped = {(each.group, each.environment) for each in plan.skipped}
    assert measured | skipped == set(itertools.product(options.workloads, options.frameworks))
    assert not measured & skipped
    assert len(set(plan.skipped)) == len(plan.skipped)
    assert all(each.reason and each.title for each in plan.skipped)


@given(options=CHOICES)
def test_every_combination_of_knobs_appears_once(options: Options) -> None:
    plan = _planned(options)
    if plan is None:
        return
    steps, noises = ({*text.partition("=")[2].split(",")} for text in options.knobs)
    for group in plan.groups:
        knobs = [case.settings.knobs for case in group.cases if case.framework == "fake"]
        found = [(each["step_us"], each["noise"]) for each in knobs]
        assert not found or sorted(found) == sorted(itertools.product(map(int, steps), map(float, noises)))


@given(options=CHOICES)
def test_planning_twice_gives_the_same_plan_in_the_same_order(options: Options) -> None:
    first, second = _planned(options), _planned(options)
    assert first == second
    if first:
        requested = list(dict.fromkeys(options.frameworks))
        for group in first.groups:
            places = [requested.index(case.environment) for case in group.cases]
            assert places == sorted(places)


@given(options=CHOICES)
def test_a_plan_is_the_same_after_writing_and_reading_json(options: Options) -> None:
    plan = _planned(options)
    if plan is not None:
        assert records.build(RunPlan, json.loads(json.dumps(plan.to_dict()))) == plan


@given(options=CHOICES, unavailable=st.sets(st.sampled_from(FRAMEWORKS)))
def test_cases_without_an_environment_are_skipped(options: Options, unavailable: set[str]) -> None:
    plan = _planned(options)
    if plan is None:
        return
    rest = plan.without(dict.fromkeys(unavailable, "It could not be created."))
    assert rest.variants == [each for each in plan.variants if each.case.environment not in unavailable]
    lost = {(each.group, each.case.environment) for each in plan.variants if each.case.environment in unavailable}
    assert {(each.group, each.environment) for each in rest.skipped} >= lost


def test_inputs_become_part_of_the_cases_and_their_ids() -> None:
    plan = resolve.plan(Options(workloads=("resnet18:tiny", "lstm-imdb:tiny"), frameworks=("pytorch", "jax")))
    ready = plan.with_inputs(lambda case: f"inputs of {case.workload}")
    assert {case.inputs for case in ready.group("resnet18:tiny").cases} == {"inputs of resnet18"}
    assert not plan.by_id.keys() & ready.by_id.keys()
    assert [each.key for each in ready.variants] == [each.key for each in plan.variants]


def test_a_workload_whose_files_change_after_planning_is_detected(tmp_path: Path) -> None:
    shutil.copytree(WORKLOADS / "line", tmp_path / "line")
    plan = resolve.plan(Options(workloads=("line",), frameworks=("fake",), workload_folders=(str(tmp_path),)))
    assert resolve.changed_files(plan) == []
    with (tmp_path / "line" / "fake.py").open("a") as file:
        file.write("# another line\n")
    assert resolve.changed_files(plan) == ["line"]
    shutil.rmtree(tmp_path / "line")
    assert resolve.changed_files(plan) == ["line"]


def test_a_moved_installation_uses_its_own_workloads_and_the_users_where_they_were(tmp_path: Path) -> None:
    shutil.copytree(WORKLOADS / "line", tmp_path / "workloads" / "line")
    options = Options(
        workloads=("line", "resnet18:tiny"),
        frameworks=("fake", "pytorch"),
        workload_folders=(str(tmp_path / "workloads"),),
    )
    plan = resolve.plan(options)
    elsewhere = {"resnet18": "/elsewhere/steelyard_worker/workloads/resnet18"}
    moved = replace(plan, workload_folders=plan.workload_folders | elsewhere)
    assert resolve.changed_files(moved) == ["resnet18"]
    assert resolve.here(moved) == plan


@given(count=st.integers(1, 8), number=st.integers(1, 12), seed=st.integers(0, 99))
def test_the_order_of_a_round_contains_every_case_once_and_depends_only_on_round_and_seed(
    count: int, number: int, seed: int
) -> None:
    keys = [f"case{place}" for place in range(count)]
    order = list(round_order(keys, number, seed))
    assert sorted(order) == keys
    assert order == list(round_order(keys, number, seed))


def test_every_requested_mode_is_planned_once() -> None:
    options = Options(
        workloads=("resnet18:tiny",), frameworks=("pytorch",), modes=("pytorch=eager", "pytorch=compiled,eager")
    )
    assert [each.case.settings.mode for each in resolve.plan(options).variants] == ["eager", "compiled"]


@pytest.mark.parametrize("name", ["tensorflow@2.20.0", "pytorch@2.9"])
def test_an_option_can_name_a_version_with_dots(name: str) -> None:
    framework = name.partition("@")[0]
    mode = next(iter(frameworks.framework(framework).modes))
    options = Options(workloads=("resnet18:tiny",), frameworks=(framework, name), modes=(f"{name}={mode}",))
    assert {each.case.environment for each in resolve.plan(options).variants} == {framework, name}


def test_titles_and_file_names_are_unique() -> None:
    options = Options(
        workloads=("line",),
        frameworks=("fake",),
        workload_folders=(str(WORKLOADS),),
        knobs=("fake.step_us=1,2", "fake.noise=0.1,0.2"),
    )
    variants = resolve.plan(options).variants
    assert len({each.file_name for each in variants}) == len({each.title for each in variants}) == 4
    assert all("/" not in each.file_name and ":" not in each.file_name for each in variants)


def test_a_long_file_name_is_shortened_and_still_unique() -> None:
    case = recorded_trials.case()
    pair = [Variant("g:p", "fake/" + "x" * 300 + end, "Fake", "", replace(case, seed=int(end))) for end in ("1", "2")]
    names = {each.file_name for each in pair}
    assert len(names) == 2
    assert all(len(name) < 150 for name in names)


def test_names_and_titles_contain_every_field_that_varies_in_a_group() -> None:
    facts = {"fake": FrameworkFacts("Fake", "scripted", {})}
    case = recorded_trials.case()
    changes = {
        "batch 32": replace(case, sizes={**case.sizes, "batch": 32}),
        "threads 4": replace(case, settings=replace(case.settings, threads=4)),
        "precision float64": replace(case, settings=replace(case.settings, precision="float64")),
        "seed 7": replace(case, seed=7),
        "task inference": replace(case, task="inference"),
        "ddp:2": replace(case, strategy="ddp:2"),
        "workers 2": replace(case, loader_workers=2),
        "optimizer adam": replace(case, optimizer=Optimizer("adam", 0.1)),
    }
    for title, changed in changes.items():
        first, second = names.variants("g", [case, changed], facts)
        assert second.title == f"Fake, {title}"
        assert first.name != second.name
    assert len({each.name for each in names.variants("g", [case, *changes.values()], facts)}) == 1 + len(changes)
    (alone,) = names.variants("g", [changes["batch 32"]], facts)
    assert (alone.name, alone.title) == ("fake/scripted", "Fake")


def test_a_framework_that_lacks_a_precision_for_one_workload_is_skipped_with_the_reason() -> None:
    options = Options(
        workloads=("deepspeech2:tiny",), frameworks=("pytorch", "mxnet"), protocol="fixed:1+1", synthetic=True
    )
    assert resolve.plan(options).skipped == ()
    exact = resolve.plan(replace(options, precisions=("float64",)))
    assert [each.case.framework for each in exact.variants] == ["pytorch"]
    assert [each.environment for each in exact.skipped] == ["mxnet"]
    assert exact.skipped[0].reason.startswith("MXNet cannot run deepspeech2 in float64: CTCLoss of MXNet")


def test_titles_contain_only_what_distinguishes_them() -> None:
    options = Options(
        workloads=("line",),
        frameworks=("fake", "dummy"),
        workload_folders=(str(WORKLOADS),),
        knobs=("noise=0.01", "dummy.step_us=10000,12000"),
    )
    (group,) = resolve.plan(options).groups
    assert sorted(group.titles.values()) == ["Dummy, step_us 10000", "Dummy, step_us 12000", "Fake"]


def test_a_mode_that_is_not_the_default_is_part_of_the_title() -> None:
    case = recorded_trials.case()
    other = replace(case, settings=replace(case.settings, mode="other"))
    found = names.variants("g", [case, other], {"fake": FrameworkFacts("Fake", "scripted", {})})
    assert [each.title for each in found] == ["Fake", "Fake, other"]


def _inference(**more: object) -> RunPlan:
    given = {"workloads": ("line",), "frameworks": ("fake", "dummy"), "workload_folders": (str(WORKLOADS),)}
    return resolve.plan(Options(**{**given, "tasks": ("inference",), **more}))  # type: ignore[arg-type]


def test_an_inference_has_cases_of_its_own_without_an_optimizer_and_a_third_of_the_arithmetic() -> None:
    (group,), (trained,) = _inference().groups, _inference(tasks=()).groups
    for case, other in zip(group.cases, trained.cases, strict=True):
        assert (case.task, case.optimizer) == ("inference", NO_OPTIMIZER)
        assert case.id != other.id
        assert group.step_flops(case) * 3 == trained.step_flops(other)


def test_a_training_and_an_inference_are_two_groups_and_every_optimizer_is_for_the_training() -> None:
    found = _inference(tasks=("training", "inference"), optimizers=("sgd", "adam")).groups
    assert [(group.cases[0].task, group.cases[0].optimizer.name) for group in found] == [
        ("training", "sgd"),
        ("inference", "none"),
        ("training", "adam"),
    ]
    assert len({group.name for group in found}) == 3


def test_the_study_of_an_inference_asks_about_the_forward_pass() -> None:
    study = _inference().study
    assert (study.name, study.title) == ("line-inference", "Line: inference")
    assert study.question == "Which framework runs the forward pass fastest on this machine?"
    assert "train" in _inference(tasks=("training", "inference")).study.question


@pytest.mark.parametrize(("axis", "value"), [("optimizers", ("adam",)), ("optimizer_implementation", "reference")])
def test_an_optimizer_is_refused_for_an_inference(axis: str, value: object) -> None:
    with pytest.raises(UserError) as caught:
        _inference(**{axis: value})
    assert str(caught.value) == (
        "An optimizer has no effect on inference, which updates nothing. Remove the optimizer or the task."
    )


def test_an_inference_trains_nothing_before_it_is_measured_and_times_its_batches_alone() -> None:
    plan = _inference(workloads=(), frameworks=("pytorch",), study="first-look")
    assert all(group.train_steps for group in _inference(workloads=(), frameworks=("pytorch",), tasks=()).groups)
    assert {(group.train_steps, group.evaluation_limit) for group in plan.groups} == {(0, 0)}


def test_a_knob_that_a_framework_cannot_set_is_skipped_with_the_reason_and_the_others_run() -> None:
    plan = resolve.plan(
        Options(workloads=("lstm-imdb:tiny",), frameworks=("jax", "tensorflow", "pytorch"), knobs=("lstm=fused,loop",))
    )
    ran = [(each.case.framework, each.case.settings.knobs["lstm"]) for each in plan.variants]
    assert ran == [("jax", "loop"), ("tensorflow", "loop"), ("pytorch", "fused"), ("pytorch", "loop")]
    assert [(each.environment, each.reason.partition(":")[0]) for each in plan.skipped] == [
        ("jax", "JAX cannot run with lstm = fused"),
        ("tensorflow", "TensorFlow cannot run with lstm = fused"),
    ]


def test_sparse_updates_are_another_algorithm_only_where_the_rule_has_a_memory() -> None:
    """SGD without momentum updates the same rows to the same values; Adam would move the other rows as well."""
    for name in ("pytorch", "mxnet"):
        known, lazy = frameworks.framework(name), Settings("eager", knobs={"embedding": "lazy"})
        assert "only the rows of words that are in the batch" in known.otherwise(lazy, Optimizer("adam", 0.1))[1]
        assert known.otherwise(replace(lazy, knobs={"embedding": "sparse"}), Optimizer("sgd", 0.1)) == ("", "")


def test_a_plan_records_what_a_choice_needs_to_know_of_frameworks():
    found = resolve.plan(Options(workloads=("resnet18:tiny",), frameworks=("pytorch", "jax", "mxnet"))).frameworks
    assert {name: each.exported_to for name, each in found.items()} == {
        "pytorch": ("onnxruntime",),
        "jax": (),
        "mxnet": ("onnxruntime",),
    }
    assert not found["mxnet"].maintained
    assert all(each.maintained_source.startswith("https://") for each in found.values())


ON_DATA = {"workloads": ("lstm-imdb:reviews",), "frameworks": ("pytorch", "jax"), "knobs": ()}
TURNS = {
    "workloads": ("line",),
    "frameworks": ("fake",),
    "knobs": ("fake.step_us=1,2",),
    "workload_folders": (str(WORKLOADS),),
}


@pytest.mark.parametrize(
    ("changed", "takes_turns"),
    [
        ({}, True),
        ({**ON_DATA, "protocol": "sequential:pipeline"}, True),
        ({"tasks": ("inference",)}, True),
        ({"protocol": "fixed:10+200"}, False),
        ({**ON_DATA, "protocol": "epochs:2"}, False),
        ({"memory_limits": ("4 GB",)}, False),
        ({"strategies": ("single", "processes:2")}, False),
    ],
)
def test_single_processes_of_sequential_protocols_take_turns(changed: dict[str, object], takes_turns: bool) -> None:
    (group,) = resolve.plan(Options(**{**TURNS, **changed})).groups
    assert group.takes_turns == takes_turns


def test_contenders_on_a_device_do_not_take_turns() -> None:
    (group,) = resolve.plan(Options(**TURNS)).groups
    first, *others = group.variants
    case = replace(first.case, settings=replace(first.case.settings, device="cuda"))
    assert not replace(group, variants=(replace(first, case=case), *others)).takes_turns
