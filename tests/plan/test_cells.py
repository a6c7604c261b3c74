"""Axes of cells become groups and variants; options replace axes."""

from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from steelyard.errors import UserError
from steelyard.plan import resolve
from steelyard.plan.cells import Cells, memory_bytes, overrides
from steelyard.plan.options import Options

if TYPE_CHECKING:
    from steelyard.plan.run_plan import RunPlan

WORKLOADS = str(Path(__file__).resolve().parent.parent / "workloads")
HEADER = 'name = "mine"\ntitle = "Mine"\nquestion = "Which?"\nversion = 1\n'
SIZES: dict[str, Any] = {"width": 8, "rate": 0.5, "stem": "seed", "deep": False, "batch": 4, "stages": [1, 2]}


def planned(folder: Path, tables: str, **options: Any) -> RunPlan:
    path = folder / "mine.toml"
    path.write_text(HEADER + tables)
    return resolve.plan(Options(study=str(path), workload_folders=(WORKLOADS,), **options))


def names(plan: RunPlan) -> dict[str, list[str]]:
    return {group.name: [variant.name for variant in group.variants] for group in plan.groups}


def test_batches_optimizers_precisions_threads_and_seeds_make_groups(tmp_path: Path) -> None:
    plan = planned(
        tmp_path,
        '[[cells]]\nworkloads = ["resnet18:tiny"]\nframeworks = ["pytorch", "jax"]\nbatches = [2, 4]\noptimizers = ["sgd", "adam"]\n',
    )
    assert names(plan) == {
        f"resnet18:tiny,batch={batch},optimizer={rule}": ["pytorch/eager", "jax/jit"]
        for batch in (2, 4)
        for rule in ("sgd", "adam")
    }
    assert [group.title for group in plan.groups][:2] == ["ResNet-18, batch 2, sgd", "ResNet-18, batch 2, adam"]
    assert {(case.batch, case.optimizer.name) for group in plan.groups for case in group.cases} == {
        (2, "sgd"),
        (2, "adam"),
        (4, "sgd"),
        (4, "adam"),
    }


def test_two_optimizers_of_one_rule_have_names_of_their_own(tmp_path: Path) -> None:
    tables = '[[cells]]\nworkloads = ["lstm-imdb:tiny"]\nframeworks = ["jax"]\noptimizers = ["sgd", "plain-sgd"]\n'
    assert list(names(planned(tmp_path, tables))) == [
        "lstm-imdb:tiny,optimizer=sgd",
        "lstm-imdb:tiny,optimizer=plain-sgd",
    ]


def test_modes_knobs_and_loader_workers_stay_in_one_group(tmp_path: Path) -> None:
    plan = planned(
        tmp_path,
        '[[cells]]\nworkloads = ["lstm-imdb:reviews"]\nframeworks = ["jax"]\nknobs = ["unroll=1,2"]\nloader_workers = [0, 1]\n',
    )
    assert names(plan) == {
        "lstm-imdb:reviews": [f"jax/jit,unroll={unroll},workers={workers}" for unroll in (1, 2) for workers in (0, 1)]
    }


def test_loader_workers_without_data_are_a_row_with_the_reason(tmp_path: Path) -> None:
    plan = planned(
        tmp_path,
        '[[cells]]\nworkloads = ["line:small"]\nframeworks = ["fake"]\nloader_workers = [0, 1]\n',
    )
    (group,) = plan.groups
    assert [variant.case.loader_workers for variant in group.variants] == [0]
    assert [each.reason for each in plan.skipped] == [
        "Loader workers have no effect on line:small without a data set: its batches lie on the device already."
    ]


def test_equal_groups_of_two_tables_are_one_group_and_equal_cases_one_case(tmp_path: Path) -> None:
    table = '[[cells]]\nworkloads = ["line:small"]\nframeworks = ["{}"]\nthreads = [1]\n'
    plan = planned(tmp_path, table.format("fake") + table.format("dummy") + table.format("fake"))
    assert names(plan) == {"line:small": ["fake/scripted", "dummy/scripted"]}


def test_a_group_has_the_protocol_and_the_evaluation_of_its_table(tmp_path: Path) -> None:
    table = '[[cells]]\nworkloads = ["line:small"]\nframeworks = ["fake"]\n'
    plan = planned(
        tmp_path,
        table
        + 'protocol = "fixed:1+2"\nrounds = "4"\ntrain_steps = 7\nevaluation_limit = 9\nstands_for = "vgg16:imagenet"\n'
        + table,
    )
    fixed, sequential = plan.groups
    assert (fixed.protocol.name, fixed.protocol.rounds_min, fixed.protocol.rounds_max) == ("fixed:1+2", 4, 4)
    assert (fixed.train_steps, fixed.evaluation_limit, fixed.stands_for) == (7, 9, "vgg16:imagenet")
    assert (sequential.protocol.name, sequential.train_steps) == ("sequential", 0)
    assert fixed.name.startswith("line:small,protocol=fixed:1+2")
    assert [each.name for each in plan.protocols] == ["fixed:1+2", "sequential"]
    assert plan.rounds_max == 12


def test_the_time_of_a_whole_training_is_no_time_of_an_inference(tmp_path: Path) -> None:
    table = '[[cells]]\nworkloads = ["resnet18:digits"]\nframeworks = ["pytorch"]\ntasks = ["training", "inference"]\n'
    plan = planned(tmp_path, table + 'protocol = "total:3"\n')
    assert [case.task for group in plan.groups for case in group.cases] == ["training"]
    assert [each.reason for each in plan.skipped] == [
        "Protocol total:3 times a whole training, and an inference is none. Choose epochs:N for it."
    ]


def test_an_option_replaces_an_axis_in_every_table(tmp_path: Path) -> None:
    table = '[[cells]]\nworkloads = ["line:small"]\nframeworks = ["fake"]\nbatches = [2, 4]\nset = ["features={}"]\n'
    tables = table.format(8) + table.format(9)
    plan = planned(tmp_path, tables, batches=(8,), frameworks=("dummy",), protocol="fixed:1+1")
    assert names(plan) == {f"line:small,features={count}": ["dummy/scripted"] for count in (8, 9)}
    assert {case.batch for group in plan.groups for case in group.cases} == {8}
    assert [each.name for each in plan.protocols] == ["fixed:1+1"]


def test_frameworks_that_an_option_leaves_out_take_their_modes_and_knobs_with_them(tmp_path: Path) -> None:
    table = '[[cells]]\nworkloads = ["line:small"]\nframeworks = ["fake", "dummy"]\nknobs = ["fake.step_us=1,2", "dummy.step_us=3"]\n'
    assert names(planned(tmp_path, table, frameworks=("dummy",))) == {"line:small": ["dummy/scripted,step_us=3"]}
    with pytest.raises(UserError, match="'fake' is not in this run"):
        planned(tmp_path, table.replace('"fake", ', "", 1))
    with pytest.raises(UserError, match="'fake' is not in this run"):
        planned(tmp_path, table, frameworks=("dummy",), knobs=("fake.step_us=1",))


def test_every_option_with_the_name_of_an_axis_has_its_type_and_is_empty_by_default() -> None:
    axes = {each.name: each.type for each in fields(Cells)}
    shared = {each.name: each for each in fields(Options) if each.name in axes}
    assert len(shared) >= 18
    for name, each in shared.items():
        assert str(each.type).replace("<class '", "").replace("'>", "") == axes[name]
        assert not getattr(Options(), name)


def test_the_size_of_a_study_selects_its_tables(tmp_path: Path) -> None:
    tables = (
        '[sizes.P]\nsummary = "as published"\n[sizes.Q]\nsummary = "quick"\nminutes = 2\n'
        '[[cells]]\nworkloads = ["line:small"]\nframeworks = ["fake"]\nsizes = ["P"]\n'
        '[[cells]]\nworkloads = ["line:small"]\nframeworks = ["fake"]\nsizes = ["Q"]\nset = ["features=9"]\n'
        '[[cells]]\nworkloads = ["line:small"]\nframeworks = ["fake"]\nbatches = [3]\n'
    )
    quick = planned(tmp_path, tables, size="Q")
    assert list(names(quick)) == ["line:small,features=9,batch=16", "line:small,features=8,batch=3"]
    assert quick.minutes == 2
    assert list(names(planned(tmp_path, tables, size="P"))) == ["line:small,batch=16", "line:small,batch=3"]
    with pytest.raises(UserError, match=r"Study mine has no size 'C'\. Known: P, Q\."):
        planned(tmp_path, tables, size="C")


def test_sizes_are_overridden_with_their_own_type_in_every_combination() -> None:
    found = list(overrides(("width=16,32", "deep=true,rate=0.25"), SIZES, "net:tiny"))
    assert found == [{"width": width, "deep": True, "rate": 0.25} for width in (16, 32)]
    assert list(overrides((), SIZES, "net:tiny")) == [{}]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("widht=3", r"net:tiny has no size 'widht'\. Did you mean 'width'\?"),
        ("width=3.5", r"The size 'width' of net:tiny must be a whole number from 1, not '3\.5'\."),
        ("width=0", r"must be a whole number from 1, not '0'\."),
        ("width=-2", r"must be a whole number from 1, not '-2'\."),
        ("rate=fast", r"must be a finite number above 0, not 'fast'\."),
        ("rate=inf", r"must be a finite number above 0, not 'inf'\."),
        ("deep=yes", r"must be true or false, not 'yes'\."),
        ("width", r"--set width: write SIZE=VALUE, such as --set width=8\."),
        ("width=", r"write SIZE=VALUE"),
        ("=4", r"write SIZE=VALUE"),
        ("stages=3", r"The size 'stages' of net:tiny is \[1, 2\] and cannot be set"),
    ],
)
def test_a_wrong_override_is_named_with_the_preset(text: str, message: str) -> None:
    with pytest.raises(UserError, match=message):
        list(overrides((text,), SIZES, "net:tiny"))


def test_an_override_reaches_the_network_and_the_preparation_of_the_data() -> None:
    options = Options(workloads=("lstm-imdb:reviews",), frameworks=("pytorch",), set=("length=40,hidden=32",))
    (group,) = resolve.plan(options).groups
    (case,) = group.cases
    assert (case.sizes["length"], case.sizes["hidden"], case.data["length"]) == (40, 32, 40)
    plain = resolve.plan(Options(workloads=("lstm-imdb:reviews",), frameworks=("pytorch",))).groups[0]
    assert group.parameters < plain.parameters
    assert case.specification != plain.cases[0].specification


@pytest.mark.parametrize(
    ("workload", "text", "sides"),
    [
        ("googlenet:cifar10-small", "image=32", {"resize": 32}),
        ("resnet18:digits", "image=48", {"pad_to": 48}),
        ("resnet50:imagenet", "image=112", {"resize": 128, "crop": 112}),
        ("resnet18:cifar10", "image=64", {"resize": 64}),
        ("resnet18:cifar10", "image=32", {}),
        ("resnet50:imagenet", "batch=4", {"resize": 256, "crop": 224}),
    ],
)
def test_images_are_prepared_for_the_network_that_reads_them(workload: str, text: str, sides: dict[str, int]) -> None:
    (group,) = resolve.plan(Options(workloads=(workload,), frameworks=("pytorch",), set=(text,))).groups
    (case,) = group.cases
    assert {name: side for name, side in case.data.items() if name in ("resize", "crop", "pad_to")} == sides


def test_synthetic_images_are_drawn_as_large_as_the_network_wants_them() -> None:
    options = Options(workloads=("resnet18:digits",), frameworks=("pytorch",), set=("image=48",), synthetic=True)
    (group,) = resolve.plan(options).groups
    assert group.cases[0].data == {}


@pytest.mark.parametrize(
    ("text", "size"), [("4 GB", 4 * 10**9), ("4GB", 4 * 10**9), ("1.5 GiB", 3 * 2**29), ("512 MiB", 2**29), ("", 0)]
)
def test_a_memory_limit_is_a_size(text: str, size: int) -> None:
    assert memory_bytes(text) == size


@pytest.mark.parametrize("text", ["4", "GB", "0 GB", "-1 GB", "4 gb", "4 TB", "1e3 GB", "4 GB 2"])
def test_a_memory_limit_that_is_no_size_is_refused(text: str) -> None:
    with pytest.raises(UserError, match=r"A memory limit must be a size such as 4 GB or 512 MiB, not '"):
        memory_bytes(text)


def test_memory_limits_make_groups(tmp_path: Path) -> None:
    tables = '[[cells]]\nworkloads = ["line:small"]\nframeworks = ["fake"]\nmemory_limits = ["1 GB", "2 GB"]\n'
    plan = planned(tmp_path, tables)
    assert names(plan) == {f"line:small,memory_limit={size}GB": ["fake/scripted"] for size in (1, 2)}
    assert [group.cases[0].memory_limit for group in plan.groups] == [10**9, 2 * 10**9]
    assert list(names(planned(tmp_path, tables, memory_limits=("512 MB",)))) == ["line:small"]


DIGITS = '[[cells]]\nworkloads = ["resnet18:digits"]\nframeworks = ["pytorch"]\n'


def test_numbers_of_training_samples_make_groups_and_are_part_of_a_case(tmp_path: Path) -> None:
    plan = planned(tmp_path, f"{DIGITS}train_limits = [500, 1000]\n")
    assert list(names(plan)) == ["resnet18:digits,train_limit=500", "resnet18:digits,train_limit=1000"]
    assert [group.title.partition(", ")[2] for group in plan.groups] == ["train limit 500", "train limit 1000"]
    assert [group.cases[0].data["train_limit"] for group in plan.groups] == [500, 1000]
    assert len({case.id for group in plan.groups for case in group.cases}) == 2
    assert [group.cases[0].data["train_limit"] for group in planned(tmp_path, DIGITS, train_limits=(64,)).groups] == [
        64
    ]


def test_a_group_with_all_samples_stands_beside_one_with_some(tmp_path: Path) -> None:
    plan = planned(tmp_path, f"{DIGITS}{DIGITS}train_limits = [500]\n")
    assert [group.title.partition(", ")[2] for group in plan.groups] == ["train limit all", "train limit 500"]
    assert "train_limit" not in plan.groups[0].cases[0].data


@pytest.mark.parametrize(
    ("tables", "options"),
    [
        (DIGITS.replace("digits", "tiny"), {"train_limits": (8,)}),
        (DIGITS, {"train_limits": (8,), "synthetic": True}),
        (DIGITS.replace("digits", "tiny") + "train_limits = [8]\n", {}),
    ],
)
def test_a_number_of_training_samples_without_data_is_refused(
    tmp_path: Path, tables: str, options: dict[str, Any]
) -> None:
    with pytest.raises(
        UserError, match=r"A number of training samples has no effect on resnet18:\w+, .* Remove --train-limit"
    ):
        planned(tmp_path, tables, **options)


def test_the_title_of_a_group_without_a_limit_says_so(tmp_path: Path) -> None:
    cells = '[[cells]]\nworkloads = ["line:small"]\nframeworks = ["fake"]\n'
    plan = planned(tmp_path, f'{cells}{cells}memory_limits = ["1 GB"]\n')
    assert [group.title.partition(", ")[2] for group in plan.groups] == ["no memory limit", "memory limit 1GB"]


def test_the_title_of_a_group_of_searches_says_so(tmp_path: Path) -> None:
    cells = '[[cells]]\nworkloads = ["line:small"]\nframeworks = ["fake"]\nmemory_limits = ["1 GB"]\n'
    plan = planned(tmp_path, f'{cells}batches = [2]\n{cells}protocol = "largest-batch:1"\n')
    assert [group.title.partition(", ")[2] for group in plan.groups] == ["batch 2", "largest batch"]


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({}, "Protocol largest-batch:3 needs a memory limit on the CPU, such as --memory-limit 4GB."),
        (
            {"memory_limits": ("1 GB",), "tasks": ("inference",)},
            "Protocol largest-batch:3 looks for the largest batch that trains, and an inference does not train.",
        ),
        (
            {"memory_limits": ("1 GB",), "device": "cuda"},
            "A memory limit holds for main memory, so it cannot be used on cuda.",
        ),
    ],
)
def test_what_the_search_for_the_largest_batch_needs(tmp_path: Path, options: dict[str, Any], reason: str) -> None:
    tables = '[[cells]]\nworkloads = ["resnet18:tiny"]\nframeworks = ["pytorch"]\nprotocol = "largest-batch:3"\n'
    with pytest.raises(UserError, match=re.escape(reason)):
        planned(tmp_path, tables, **options)


def test_a_group_is_named_after_what_tells_it_from_the_others_and_no_more(tmp_path: Path) -> None:
    table = '[[cells]]\nworkloads = ["resnet18:digits"]\nframeworks = ["pytorch"]\n'
    inference = f'{table}tasks = ["inference"]\nrounds = "3"\n'
    plan = planned(tmp_path, f'{table}seeds = [1, 2]\nprotocol = "epochs:3"\n' + inference)
    assert [group.title for group in plan.groups] == [
        "ResNet-18, sgd, seed 1",
        "ResNet-18, sgd, seed 2",
        "ResNet-18, inference",
    ]
