"""A package that has to be compiled is compiled once, kept by what decides the result, and never trusted without its digest."""

import zipfile
from dataclasses import replace
from pathlib import Path

import pytest
from environment_doubles import Events, FakeUv

from steelyard.environments import builds, ensure, read_locks, remove
from steelyard.environments.builds import Recipe
from steelyard.environments.install_errors import explain
from steelyard.environments.lock import parse_lock
from steelyard.environments.spec import EnvironmentSpec
from steelyard.errors import UserError

BUILT = """# built = extra==0.1
# build tools = pip==1
# build variables = WITH_TINY=1 WITHOUT_OTHER=1
# compiler flags = -isystem {site}/tiny/include
# compiler flags for odd.cc = -UVERSION -DVERSION=2
"""
# A pip that prints as CMake does, and leaves a wheel that holds what the build was told.
PIP = """
import os, subprocess, sys, zipfile
from pathlib import Path
print("[  5%] Building CXX object a.cc.o\\n[ 61%] Building CXX object b.cc.o\\n[100%] Built target extra")
folder = Path(next(each for each in sys.argv if each.startswith("--wheel-dir=")).partition("=")[2])
folder.mkdir()
calls = [subprocess.run([os.environ["CXX"], *each], capture_output=True, text=True).stdout for each in (["a.cc"], ["-c", "/x/odd.cc"])]
with zipfile.ZipFile(folder / "extra-0.1-py3-none-any.whl", "w") as archive:
    archive.writestr("compiler", "".join(calls))
    archive.writestr("variables", " ".join(f"{name}={value}" for name, value in sorted(os.environ.items())))
"""


@pytest.fixture
def compiler(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A compiler that prints its arguments, alone with `make` in PATH."""
    folder = tmp_path / "programs"
    folder.mkdir()
    for name in (builds.COMPILER, builds.MAKE):
        (folder / name).write_text('#!/bin/sh\necho "$@"\n')
        (folder / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")
    return folder / builds.COMPILER


@pytest.fixture
def spec(tiny: EnvironmentSpec, fake_uv: FakeUv, compiler: Path) -> EnvironmentSpec:
    """An environment with a package that has to be compiled."""
    (fake_uv.folder / "pip.py").write_text(PIP)
    return replace(tiny, lock=parse_lock(tiny.lock.stem, BUILT + tiny.lock.text))


def kept() -> list[Path]:
    """The wheels in the cache."""
    return sorted(builds.wheels_folder().glob("*/*.whl"))


def test_a_package_is_compiled_and_installed_with_progress(
    spec: EnvironmentSpec, fake_uv: FakeUv, events: Events
) -> None:
    ensure(spec, events.report)
    shown = [event.sentence for event in events.events if event.stage == "compiling"]
    assert shown == ["extra==0.1", "extra==0.1, 0 %", "extra==0.1, 60 %"]
    (wheel,) = kept()
    assert str(wheel) in (fake_uv.folder / "calls").read_text()


def test_flags_follow_all_others_and_one_file_may_have_its_own(spec: EnvironmentSpec) -> None:
    folder = ensure(spec).folder
    assert folder
    (wheel,) = kept()
    with zipfile.ZipFile(wheel) as archive:
        usual, odd = archive.read("compiler").decode().splitlines()
    (site,) = folder.glob("lib/python*/site-packages")
    assert usual == f"a.cc -isystem {site}/tiny/include"
    assert odd == "-c /x/odd.cc -UVERSION -DVERSION=2"


def test_the_users_compiler_settings_decide_nothing(spec: EnvironmentSpec, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CXXFLAGS", "-ffast-math")
    monkeypatch.setenv("PIP_TARGET", "/elsewhere")
    monkeypatch.setenv("PIP_INDEX_URL", "https://index.example/simple")
    ensure(spec)
    (wheel,) = kept()
    with zipfile.ZipFile(wheel) as archive:
        variables = archive.read("variables").decode().split()
    assert {"WITH_TINY=1", "WITHOUT_OTHER=1", "PIP_INDEX_URL=https://index.example/simple"} <= set(variables)
    assert not [each for each in variables if each.startswith(("CXXFLAGS=", "PIP_TARGET="))]


def test_an_environment_that_is_made_again_takes_the_kept_wheel(spec: EnvironmentSpec, events: Events) -> None:
    ensure(spec)
    remove(["tiny"])
    ensure(spec, events.report)
    assert "compiling" not in events.stages


def test_a_kept_wheel_that_was_changed_is_compiled_again(spec: EnvironmentSpec, events: Events) -> None:
    ensure(spec)
    (wheel,) = kept()
    content = wheel.read_bytes()
    wheel.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    remove(["tiny"])
    ensure(spec, events.report)
    assert "compiling" in events.stages
    assert builds._wheel_in(wheel.parent)


def test_another_compiler_compiles_again(spec: EnvironmentSpec, compiler: Path, events: Events) -> None:
    ensure(spec)
    compiler.write_text('#!/bin/sh\necho version 2 "$@"\n')
    remove(["tiny"])
    ensure(spec, events.report)
    assert "compiling" in events.stages
    assert len(kept()) == 2


def test_a_missing_compiler_is_named_with_what_to_install(
    spec: EnvironmentSpec, compiler: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(builds.shutil, "which", lambda program: None if program == builds.COMPILER else "/usr/bin/make")
    with pytest.raises(UserError, match=r"this machine has no g\+\+; install the package build-essential \(Debian"):
        ensure(spec)


def test_what_could_not_be_compiled_leaves_nothing(spec: EnvironmentSpec, fake_uv: FakeUv) -> None:
    (fake_uv.folder / "pip.py").write_text("import sys\nprint('x/ops.cc:7:1: error: no such type')\nsys.exit(1)\n")
    with pytest.raises(UserError, match=r"could not be created: pip failed: ops\.cc: no such type\. Log: "):
        ensure(spec)
    assert not kept()
    assert not [path for path in builds.wheels_folder().iterdir() if path.suffix != ".lock"]


@pytest.mark.parametrize(
    ("output", "sentence"),
    [
        (
            "/a/b.cc:3:10: fatal error: Python.h: No such file or directory\nmake: *** [x] Error 1\n",
            "install the package python3-dev",
        ),
        ("c++: fatal error: Killed signal terminated program cc1plus\n", "memory was not enough"),
        (
            "/a/b.cc:3:10: error: 'x' is not a member\nerror: subprocess failed\n",
            "pip failed: b.cc: 'x' is not a member",
        ),
    ],
)
def test_the_errors_of_compilers_become_one_sentence(output: str, sentence: str) -> None:
    assert sentence in explain(output, 1, "pip")


@pytest.mark.parametrize("lock", [lock for lock in read_locks() if "built" in lock.facts], ids=lambda lock: lock.stem)
def test_every_lock_file_with_a_built_package_says_how(lock: builds.Lock) -> None:
    recipe = builds.recipe_of(lock)
    assert isinstance(recipe, Recipe)
    assert {each.partition("==")[0] for each in recipe.tools} >= {"cmake", "pip", "setuptools", "wheel"}
    assert recipe.variables[f"HOROVOD_WITH_{lock.framework.upper()}"] == "1"
    assert sum(name.startswith("HOROVOD_WITH_") for name in recipe.variables) == 2  # the framework, and Gloo


def test_a_lock_file_without_a_built_package_has_no_recipe(tiny: EnvironmentSpec) -> None:
    assert builds.recipe_of(tiny.lock) is None
