"""The names that a user types become specifications, or an error in one sentence."""

from dataclasses import replace

import pytest

from steelyard.environments import EnvironmentName, EnvironmentSpec, Failure, expanded, plan_environments, versions_of
from steelyard.errors import UserError


def planned(*names: str, accelerator: str = "cpu") -> dict[str, EnvironmentSpec | Failure]:
    return plan_environments(map(EnvironmentName.parse, names), accelerator)


def test_a_framework_alone_means_its_newest_version() -> None:
    spec = planned("tensorflow")["tensorflow"]
    assert isinstance(spec, EnvironmentSpec)
    assert spec.lock.version == versions_of("tensorflow")[0] == "2.21.0"


def test_two_versions_side_by_side_are_two_folders() -> None:
    plan = planned("tensorflow@2.21.0", "tensorflow@2.20.0")
    folders = {spec.folder_name for spec in plan.values() if isinstance(spec, EnvironmentSpec)}
    assert len(folders) == 2
    assert list(plan) == ["tensorflow@2.21.0", "tensorflow@2.20.0"]


def test_an_unknown_framework_suggests_the_closest() -> None:
    with pytest.raises(UserError, match=r"no framework 'pytroch'. Did you mean 'pytorch'\?"):
        planned("pytroch")


def test_an_unknown_version_suggests_the_closest_and_an_alternative() -> None:
    with pytest.raises(UserError, match=r"no lock file for tensorflow 2\.21\.1\. Did you mean '2\.21\.0'\?.*--env"):
        planned("tensorflow@2.21.1")


def test_the_last_part_of_versions_stands_for_all_environments_that_have_it() -> None:
    found = expanded([EnvironmentName("horovod"), EnvironmentName("jax"), EnvironmentName("mxnet", "1.9.1+horovod")])
    assert [str(each) for each in found] == [
        "mxnet@1.9.1+horovod",
        "pytorch@2.13.0+horovod",
        "tensorflow@2.21.0+horovod",
        "jax",
    ]


def test_a_name_without_a_version_after_the_sign_is_refused() -> None:
    with pytest.raises(UserError, match=r"'jax@' has no version after the '@'"):
        planned("jax@")


def test_an_unknown_accelerator_suggests_the_closest() -> None:
    with pytest.raises(UserError, match=r"no accelerator 'cudda'. Did you mean 'cuda'\?"):
        planned("jax", accelerator="cudda")


def test_a_framework_without_a_lock_for_the_accelerator_fails_alone() -> None:
    plan = planned("mxnet", "jax", accelerator="cuda")
    failure = plan["mxnet"]
    assert isinstance(failure, Failure)
    assert failure.sentence.startswith("mxnet has no lock file for cuda (only 1.9.1 for cpu)")
    assert isinstance(plan["jax"], EnvironmentSpec)


def test_the_key_changes_with_the_lock_and_with_the_python(tiny: EnvironmentSpec) -> None:
    other_lock = replace(tiny, lock=replace(tiny.lock, text=tiny.lock.text + "more==1\n"))
    other_python = replace(tiny, python_version="3.99")
    assert len({tiny.key, other_lock.key, other_python.key}) == 3
    assert replace(tiny).key == tiny.key
