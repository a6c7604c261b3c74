"""The names of environments -> specifications: which lock file, which Python, which folder."""

import hashlib
import sys
import sysconfig
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, Self

from steelyard.environments.lock import Lock, read_locks
from steelyard.errors import UserError, nearest


class EnvironmentName(NamedTuple):
    """A framework, and the version where one was requested; as text `framework` or `framework@version`."""

    framework: str
    version: str = ""

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read a name as users type it. UserError: there is nothing after the `@`."""
        framework, at, version = text.partition("@")
        if at and not version:
            raise UserError(f"The environment '{text}' has no version after the '@'. Add one, or leave the '@' out.")
        return cls(framework, version)

    def __str__(self) -> str:
        return f"{self.framework}@{self.version}" if self.version else self.framework


@dataclass(frozen=True)
class EnvironmentSpec:
    """One environment that a lock file describes. `python_version` is `'3.11'`."""

    name: str
    lock: Lock
    python_version: str

    @property
    def key(self) -> str:
        """A hash of the lock file, the Python version and the platform (64 hexadecimal digits)."""
        parts = (self.lock.text, self.python_version, sysconfig.get_platform())
        return hashlib.sha256("\0".join(parts).encode()).hexdigest()

    @property
    def folder_name(self) -> str:
        return f"{self.lock.framework}-{self.lock.version}-{self.lock.accelerator}-{self.key[:12]}"


@dataclass(frozen=True)
class Environment:
    """An interpreter that holds a framework. `packages` maps every installed distribution to its version.

    External is what steelyard did not create; such an environment has no folder. `contents` is a hash of everything that it can
    import; empty for steelyard's own interpreter.
    """

    name: str
    framework: str
    version: str
    python: Path
    python_version: str
    packages: dict[str, str]
    folder: Path | None = None
    contents: str = ""

    @property
    def external(self) -> bool:
        return self.folder is None


@dataclass(frozen=True)
class Failure:
    """An environment that could not be created, and why, in one sentence."""

    name: str
    sentence: str


def expanded(names: Iterable[EnvironmentName]) -> list[EnvironmentName]:
    """Replace what is only the last part of versions, such as `horovod` of `2.13.0+horovod`, by all environments that have it."""
    locks = read_locks()
    found = []
    for name in names:
        own = [lock for lock in locks if not name.version and lock.version.partition("+")[2] == name.framework]
        found += [EnvironmentName(lock.framework, lock.version) for lock in own] or [name]
    return list(dict.fromkeys(found))


def plan_environments(
    names: Iterable[EnvironmentName], accelerator: str = "cpu", locks: list[Lock] | None = None
) -> dict[str, EnvironmentSpec | Failure]:
    """Return the specification of each name, that of the framework's newest lock file where the name has no version.

    A framework without a lock file for the accelerator becomes a `Failure`, so that the others continue.
    Raises `UserError` for an unknown framework, version or accelerator.
    """
    locks = read_locks() if locks is None else locks
    accelerators = sorted({lock.accelerator for lock in locks})
    if accelerator not in accelerators:
        raise UserError(f"There is no accelerator '{accelerator}'.{nearest(accelerator, accelerators)}")
    return {str(name): _plan_one(name, accelerator, locks) for name in names}


def versions_of(framework: str) -> list[str]:
    """Return the versions that have a lock file, newest first."""
    return _versions(read_locks(), framework)


def _versions(locks: list[Lock], framework: str) -> list[str]:
    return list(dict.fromkeys(lock.version for lock in locks if lock.framework == framework))


def _plan_one(name: EnvironmentName, accelerator: str, locks: list[Lock]) -> EnvironmentSpec | Failure:
    framework, version = name
    known = {lock.framework for lock in locks}
    if framework not in known:
        raise UserError(f"There is no framework '{framework}'.{nearest(framework, sorted(known))}")
    versions = _versions(locks, framework)
    if version and version not in versions:
        raise UserError(
            f"There is no lock file for {framework} {version}.{nearest(version, versions)} Or name an interpreter that "
            f"holds it: --env {framework}=/path/to/python."
        )
    of_framework = [lock for lock in locks if lock.framework == framework]
    for lock in of_framework:
        if lock.accelerator == accelerator and version in ("", lock.version):
            return EnvironmentSpec(str(name), lock, _python_version_for(lock))
    usual = [lock for lock in of_framework if "+" not in lock.version]  # the others have packages for an export, too
    existing = ", ".join(dict.fromkeys(f"{lock.version} for {lock.accelerator}" for lock in usual))
    return Failure(
        str(name),
        f"{name} has no lock file for {accelerator} (only {existing}); name an interpreter of your own with "
        f"--env {framework}=/path/to/python",
    )


def _python_version_for(lock: Lock) -> str:
    """Return steelyard's own Python version if the lock file allows it, otherwise the newest that it allows."""
    oldest, newest = lock.pythons
    own = sys.version_info[:2]
    major, minor = own if oldest <= own <= newest else newest
    return f"{major}.{minor}"
