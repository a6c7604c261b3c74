"""Packages without a wheel: compiled once per machine against the framework of an environment, kept by what decides the result.

A lock file names such a package, and how it is compiled, in its header: `built`, `build tools`, `build variables`,
`compiler flags` and `compiler flags for FILE`. Tools and flags are separated by blanks; `{site}` stands for the environment's
package folder.
"""

import hashlib
import os
import re
import shlex
import shutil
import subprocess
import sysconfig
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from steelyard.environments.execution import execute
from steelyard.environments.folders import locked, python_in, site_folders
from steelyard.environments.install_errors import InstallError
from steelyard.environments.lock import Lock
from steelyard.environments.pip_settings import pip_variables
from steelyard.environments.uv import Uv, user_environ
from steelyard.files import atomic
from steelyard.files.folders import remove_folder
from steelyard.files.paths import cache_folder

COMPILER, MAKE = "g++", "make"
# On two cores a build took 2 to 8 minutes.
LIMIT_S = 3600.0
# What one compiler needs for the headers of a framework.
BYTES_PER_JOB = 2 * 2**30
# What CMake prints, such as `[ 42%]`. Every tenth is enough for a log.
TENTHS = re.compile(r"^\s*\[\s*(\d?)\d%\]")
DIGEST = "sha256"

# Receives a stage and a sentence about how far the work has come.
Say = Callable[[str, str], None]


@dataclass(frozen=True)
class Recipe:
    """How a package is compiled. `flags` come last in every call of the compiler; `flags_of` replace them for one file."""

    requirement: str
    tools: tuple[str, ...]
    variables: dict[str, str]
    flags: str
    flags_of: dict[str, str]

    @property
    def name(self) -> str:
        """The name of the package."""
        return self.requirement.partition("==")[0]


def recipe_of(lock: Lock) -> Recipe | None:
    """Return the recipe of the package that a lock file requires to be built; None if it requires none."""
    facts = lock.facts
    if "built" not in facts:
        return None
    prefix = "compiler flags for "
    return Recipe(
        facts["built"],
        tuple(facts["build tools"].split()),
        dict(pair.split("=", 1) for pair in facts["build variables"].split()),
        facts.get("compiler flags", ""),
        {key.removeprefix(prefix): value for key, value in facts.items() if key.startswith(prefix)},
    )


def wheels_folder() -> Path:
    """Return the folder of the cache that holds what was built."""
    return cache_folder() / "wheels"


def built(recipe: Recipe, lock: Lock, folder: Path, python_version: str, uv: Uv, say: Say) -> Path:
    """Return the wheel of a package for the environment in `folder`, which holds its framework; it is compiled if it is not kept.

    InstallError: there is no compiler, or the package cannot be compiled.
    """
    site = site_folders(folder)[0]
    kept = wheels_folder() / f"{recipe.name}-{_key(recipe, lock, site, python_version)}"
    with locked(
        wheels_folder() / "build", lambda: say("waiting", "another package is being compiled")
    ):  # each takes all cores
        if found := _wheel_in(kept):
            return found
        wheels_folder().mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=wheels_folder(), prefix=".") as scratch:
            wheel = _build(recipe, site, Path(scratch), python_version, uv, say)
            _keep(wheel, kept)
    return kept / wheel.name


def _key(recipe: Recipe, lock: Lock, site: Path, python_version: str) -> str:
    # The libraries in a wheel name the folder of the framework that they were linked with.
    decides = [repr(recipe), *lock.pins, str(site), python_version, sysconfig.get_platform(), _compiler()]
    return hashlib.sha256("\0".join(decides).encode()).hexdigest()[:16]


def _compiler() -> str:
    """Return the version of the compiler; InstallError: it, or `make`, is not installed."""
    missing = [program for program in (COMPILER, MAKE) if not shutil.which(program)]
    if missing:
        raise InstallError(
            f"a package has to be compiled, and this machine has no {' and no '.join(missing)}; install the package "
            "build-essential (Debian, Ubuntu), or gcc-c++ and make (Fedora, RHEL)"
        )
    done = subprocess.run([COMPILER, "--version"], capture_output=True, text=True, check=False)
    return done.stdout.partition("\n")[0]


def _wheel_in(kept: Path) -> Path | None:
    """Return the wheel in a folder of the cache; None if there is none, or not the one that was put there."""
    for wheel in kept.glob("*.whl"):
        try:
            if (kept / DIGEST).read_text("utf-8") == _sha256(wheel):
                return wheel
        except OSError:
            break
    return None


def _keep(wheel: Path, kept: Path) -> None:
    remove_folder(kept)
    kept.mkdir()
    shutil.move(wheel, kept / wheel.name)
    atomic.write_text(kept / DIGEST, _sha256(kept / wheel.name))


def _sha256(path: Path) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _build(recipe: Recipe, site: Path, scratch: Path, python_version: str, uv: Uv, say: Say) -> Path:
    """Compile the package with tools of its own, so that nothing of them remains in the environment."""
    tools, wheels = scratch / "tools", scratch / "wheels"
    say("compiling", recipe.requirement)
    uv.create(tools, python_version)
    uv.install(tools, list(recipe.tools), lambda _: None)
    (site_folders(tools)[0] / "framework.pth").write_text(f"{site}\n", "utf-8")
    compiler = _wrapper(recipe, site, scratch)
    command: list[str | Path] = [
        python_in(tools),
        "-m",
        "pip",
        "wheel",
        "--verbose",
        "--no-build-isolation",
        "--no-deps",
        "--no-cache-dir",
        f"--no-binary={recipe.name}",
        f"--wheel-dir={wheels}",
        recipe.requirement,
    ]

    def listen(line: str) -> None:
        if done := TENTHS.match(line):
            say("compiling", f"{recipe.requirement}, {done[1]}0 %")

    environ = _environ(recipe, tools, compiler, scratch, uv.settings)
    execute(command, environ, uv.log, listen, limit_s=LIMIT_S, program="pip")
    found = list(wheels.glob("*.whl"))
    if len(found) != 1:
        raise InstallError(f"{recipe.requirement} was compiled, but pip left {len(found)} wheels instead of one")
    return found[0]


def _wrapper(recipe: Recipe, site: Path, scratch: Path) -> Path:
    """Write a compiler that adds the flags after all others: where two contradict each other, the last one counts."""

    def flags(text: str) -> str:
        return " ".join(shlex.quote(each.replace("{site}", str(site))) for each in text.split())

    lines = ["#!/bin/sh", 'case " $* " in']
    lines += [f'*{shlex.quote(name)}*) exec {COMPILER} "$@" {flags(text)} ;;' for name, text in recipe.flags_of.items()]
    path = scratch / "c++"
    path.write_text("\n".join([*lines, "esac", f'exec {COMPILER} "$@" {flags(recipe.flags)}', ""]), "utf-8")
    path.chmod(0o755)
    return path


def _environ(recipe: Recipe, tools: Path, compiler: Path, scratch: Path, settings: Mapping[str, str]) -> dict[str, str]:
    own = user_environ()
    environ = own | pip_variables(settings, own) | recipe.variables
    # The user's flags and tools must not decide what is kept for every environment.
    for name in ("CFLAGS", "CXXFLAGS", "CPPFLAGS", "LDFLAGS", "CC", "CMAKE_GENERATOR", "CMAKE_ARGS"):
        environ.pop(name, None)
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_AVPHYS_PAGES")
    jobs = max(1, min(os.cpu_count() or 1, memory // BYTES_PER_JOB))
    path = os.pathsep.join([str(python_in(tools).parent), environ.get("PATH", os.defpath)])
    return environ | {"PATH": path, "CXX": str(compiler), "MAKEFLAGS": f"-j{jobs}", "TMPDIR": str(scratch)}
