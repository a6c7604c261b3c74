"""The names that a user types -> specifications: which lock file, which Python, which folder."""

import hashlib
import sys
import sysconfig
from dataclasses import dataclass
from pathlib import Path

from steelyard.environments.lock import Lock, framework_names, read_locks
from steelyard.errors import UserError, nearest


@dataclass(frozen=True)
class EnvironmentSpec:
    """One environment that a lock file describes. `python_version` is `'3.11'`."""

    name: str
    framework: str
    version: str
    accelerator: str
    lock: Lock
    python_version: str

    @property
    def key(self) -> str:
        """A hash of the lock file, the Python version and the platform (64 hexadecimal digits)."""
        parts = (self.lock.text, self.python_version, sysconfig.get_platform())
        return hashlib.sha256("\0".join(parts).encode()).hexdigest()

    @property
    def folder_name(self) -> str:
        return f"{self.framework}-{self.version}-{self.accelerator}-{self.key[:12]}"


@dataclass(frozen=True)
class Environment:
    """An interpreter that holds a framework. `packages` maps every installed distribution to its version.

    For an external interpreter, given by the user, `spec` and `folder` are None, and `accelerator` is empty,
    because only the framework in it knows what it was built for.
    """

    name: str
    framework: str
    version: str
    accelerator: str
    python: Path
    python_version: str
    packages: dict[str, str]
    external: bool = False
    spec: EnvironmentSpec | None = None
    folder: Path | None = None


@dataclass(frozen=True)
class Failure:
    """An environment that could not be created, and why, in one sentence."""

    name: str
    sentence: str


def plan_environments(
    names: list[str], accelerator: str = "cpu", locks: list[Lock] | None = None
) -> dict[str, EnvironmentSpec | Failure]:
    """Return specifications by name; a name is `framework` (its newest lock file) or `framework@version`.

    A framework without a lock file for the accelerator becomes a `Failure`, so that the others continue.
    Raises `UserError` for an unknown framework, version or accelerator.
    """
    locks = read_locks() if locks is None else locks
    accelerators = sorted({lock.accelerator for lock in locks})
    if accelerator not in accelerators:
        raise UserError(f"There is no accelerator '{accelerator}'.{nearest(accelerator, accelerators)}")
    return {name: _plan_one(name, accelerator, locks) for name in names}


def versions_of(framework: str) -> list[str]:
    """Return the versions that have a lock file, newest first."""
    return list(dict.fromkeys(lock.version for lock in read_locks() if lock.framework == framework))


def _plan_one(name: str, accelerator: str, locks: list[Lock]) -> EnvironmentSpec | Failure:
    framework, at, version = name.partition("@")
    known = framework_names(locks)
    if framework not in known:
        raise UserError(f"There is no framework '{framework}'.{nearest(framework, known)}")
    of_framework = [lock for lock in locks if lock.framework == framework]
    versions = list(dict.fromkeys(lock.version for lock in of_framework))
    if at and version not in versions:
        raise UserError(
            f"There is no lock file for {framework} {version or '(no version given)'}."
            f"{nearest(version, versions)} Or name an interpreter that holds it: "
            f"--env {framework}=/path/to/python."
        )
    fitting = [lock for lock in of_framework if lock.accelerator == accelerator]
    if at:
        fitting = [lock for lock in fitting if lock.version == version]
    if not fitting:
        return Failure(name, _no_lock(name, accelerator, of_framework))
    lock = fitting[0]
    return EnvironmentSpec(name, framework, lock.version, accelerator, lock, _python_version_for(lock))


def _no_lock(name: str, accelerator: str, of_framework: list[Lock]) -> str:
    existing = ", ".join(dict.fromkeys(f"{lock.version} for {lock.accelerator}" for lock in of_framework))
    return (
        f"{name} has no lock file for {accelerator} (only {existing}); name an interpreter of your own "
        f"with --env {name.partition('@')[0]}=/path/to/python"
    )


def _python_version_for(lock: Lock) -> str:
    """Return steelyard's own Python version if the lock file allows it, otherwise the newest that it allows."""
    oldest, newest = lock.pythons
    own = sys.version_info[:2]
    major, minor = own if oldest <= own <= newest else newest
    return f"{major}.{minor}"
