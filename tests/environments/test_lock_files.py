"""Every lock file has a complete header and pins every package."""

import re
from itertools import pairwise

import pytest

from steelyard.catalog import frameworks
from steelyard.environments import EnvironmentName, EnvironmentSpec, plan_environments
from steelyard.environments.install import pins_with
from steelyard.environments.lock import Lock, large_build, parse_lock, read_locks, version_order

LOCKS = read_locks()


@pytest.mark.parametrize("lock", LOCKS, ids=lambda lock: lock.stem)
def test_a_lock_pins_every_package_exactly(lock: Lock) -> None:
    for pin in lock.pins:
        assert re.fullmatch(r"[a-z0-9-]+==[\w.+]+( ; .+)?", pin), pin
    assert len(set(lock.pins)) == len(lock.pins)


@pytest.mark.parametrize("lock", LOCKS, ids=lambda lock: lock.stem)
def test_a_locks_name_header_and_pins_agree(lock: Lock) -> None:
    assert lock.stem == f"{lock.framework}-{lock.version}-{lock.accelerator}"
    assert f"{lock.distribution}=={lock.version.partition('+')[0]}" in lock.pins
    oldest, newest = lock.pythons
    assert (3, 10) <= oldest <= (3, 11) <= newest


@pytest.mark.parametrize("lock", LOCKS, ids=lambda lock: lock.stem)
def test_a_lock_file_states_whether_it_was_ever_run(lock: Lock) -> None:
    assert bool(lock.untested) != bool(lock.facts.get("tried"))
    assert bool(lock.untested) == (lock.accelerator != "cpu")


def test_every_framework_has_a_cpu_lock_and_one_has_two_versions() -> None:
    locked = [lock.framework for lock in LOCKS if lock.accelerator == "cpu"]
    assert set(locked) == set(frameworks.listed())
    assert len(locked) > len(set(locked))


def test_the_newest_version_comes_first() -> None:
    for before, after in pairwise(LOCKS):
        if (before.framework, before.accelerator) == (after.framework, after.accelerator):
            plain, other = "+" not in before.version, "+" not in after.version
            assert (version_order(before.version), plain) >= (version_order(after.version), other)
            assert before.version != after.version


def test_an_environment_with_further_packages_is_used_only_where_it_is_named() -> None:
    for lock in LOCKS:
        plain, plus, _ = lock.version.partition("+")
        if plus:
            chosen = plan_environments([EnvironmentName(lock.framework)], lock.accelerator)[lock.framework]
            assert isinstance(chosen, EnvironmentSpec)
            assert chosen.lock.version == plain


def test_a_small_build_replaces_the_normal_pin_and_names_an_alternative() -> None:
    small = [lock for lock in LOCKS if "small build" in lock.facts]
    assert small
    for lock in small:
        pins = pins_with(lock.pins, lock.facts["small build"])
        assert lock.facts["small build"] in pins
        assert len(pins) == len(lock.pins)
        if "otherwise" in lock.facts:  # what is compiled against the small build was not tried with the other
            assert large_build(lock).framework == lock.framework
            assert lock.facts["otherwise because"]
        else:
            assert "built" in lock.facts


def test_a_header_without_an_import_name_is_refused() -> None:
    with pytest.raises(ValueError, match=r"the header of lock file x\.txt lacks 'import'"):
        parse_lock("x", "# framework = x\n# version = 1\n# accelerator = cpu\n\nx==1\n")
