"""Is this machine fit to measure on? One finding per question, each with what to do about it."""

import shutil
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from steelyard.environments.execution import Log
from steelyard.environments.folders import environments_folder
from steelyard.environments.install_errors import InstallError
from steelyard.environments.listing import CachedEnvironment, list_environments
from steelyard.environments.lock import Lock, read_locks
from steelyard.environments.pip_settings import describe_settings, read_pip_settings
from steelyard.environments.uv import Uv, find_uv
from steelyard.errors import UserError
from steelyard.files.paths import cache_folder
from steelyard.host.machine import Machine, describe
from steelyard.host.noise import HostNoise, Sampler, judge

if TYPE_CHECKING:
    from collections.abc import Callable

QUIET_SAMPLE_S = 2.2
REGISTRY_LIMIT_S = 8.0
# One framework with its weights, batch and gradients at full size took up to 3 GB on two cores.
ENOUGH_MEMORY_BYTES = 4e9
COMPILERS = ("g++", "clang++")
GOOD_GOVERNORS = ("performance", "schedutil", "")


@dataclass(frozen=True)
class Finding:
    """One answer. `bad` prevents measuring, `warn` makes it poorer; `advice` is empty when all is well."""

    name: str
    state: Literal["ok", "warn", "bad"]
    sentence: str
    advice: str = ""


def examine() -> list[Finding]:
    """All findings, in the order in which a person would ask; takes about 5 s and at most 15."""
    machine = describe()
    kept = list_environments()
    questions: tuple[Callable[[], Finding], ...] = (
        python,
        uv,
        pip_settings,
        registry,
        lambda: disk(kept),
        lambda: memory(machine),
        lambda: cores(machine),
        lambda: governor(machine),
        host_noise,
        compiler,
        lambda: accelerators(machine),
        lambda: environments(kept),
        data,
    )
    with ThreadPoolExecutor(len(questions)) as pool:
        # Host noise comes last, as the other checks would disturb it.
        answers = {ask: pool.submit(ask) for ask in questions if ask is not host_noise}
        found = {ask: answer.result() for ask, answer in answers.items()}
    found[host_noise] = host_noise()
    return [found[ask] for ask in questions]


def python() -> Finding:
    """The interpreter that runs this tool, and the locks that it cannot serve."""
    version = sys.version_info[:2]
    name = f"Python {version[0]}.{version[1]} ({sys.executable})"
    left_out = sorted({lock.framework for lock in read_locks() if not _serves(lock, version)})
    if not left_out:
        return Finding("Python", "ok", f"{name} can make every environment.")
    return Finding(
        "Python",
        "warn",
        f"{name} is outside the range of {', '.join(left_out)}.",
        "Install Python 3.11 as well; it is found by itself when it is in PATH.",
    )


def _serves(lock: Lock, version: tuple[int, int]) -> bool:
    oldest, newest = lock.pythons
    return oldest <= version <= newest


def uv() -> Finding:
    """The installer."""
    try:
        return Finding("uv", "ok", f"uv creates the environments ({find_uv()}).")
    except UserError as error:
        return Finding("uv", "bad", str(error), "pip install uv")


def pip_settings() -> Finding:
    """What pip is told here, since all of it is handed on to uv."""
    try:
        told = describe_settings(read_pip_settings())
    except UserError as error:
        return Finding(
            "pip settings", "bad", str(error), "Fix this first: new environments cannot be created without it."
        )
    return Finding("pip settings", "ok", f"Found: {told}." if told else "None; the public registry is used.")


def registry() -> Finding:
    """Whether packages can be downloaded: the versions of one small package are looked up."""
    with tempfile.TemporaryDirectory() as folder:
        try:
            Uv(Log(Path(folder, "log"))).check_registry(REGISTRY_LIMIT_S)
        except UserError as error:
            return Finding(
                "registry", "bad", str(error), "Fix this first: new environments cannot be created without it."
            )
        except InstallError as error:
            advice = "Environments that exist keep working; new ones need a registry or a find-links folder."
            return Finding("registry", "warn", f"Packages cannot be downloaded now: {error}.", advice)
    return Finding("registry", "ok", "The package registry answers.")


def disk(kept: list[CachedEnvironment]) -> Finding:
    """Room for the environments that are not there yet."""
    folder = cache_folder()
    existing = next(path for path in (folder, *folder.parents) if path.exists())
    free = shutil.disk_usage(existing).free
    made = {(one.framework, one.version, one.accelerator) for one in kept}
    needed = sum(
        lock.installed_bytes for lock in _defaults() if (lock.framework, lock.version, lock.accelerator) not in made
    )
    sentence = f"{free / 1e9:.0f} GB free for {folder}; environments not made yet need {needed / 1e9:.1f} GB."
    if free < needed * 1.5:
        return Finding("disk", "bad", sentence, "Free some space, or set STEELYARD_CACHE to a larger disk.")
    return Finding("disk", "ok", sentence)


def _defaults() -> list[Lock]:
    """The newest CPU lock of each framework: what a run without arguments makes."""
    found: dict[str, Lock] = {}
    for lock in read_locks():
        if lock.accelerator == "cpu":
            found.setdefault(lock.framework, lock)
    return list(found.values())


def memory(machine: Machine) -> Finding:
    """Memory this process may use."""
    known = [value for value in (machine.memory_bytes, machine.memory_limit_bytes) if value]
    if not known:
        return Finding("memory", "warn", "The system does not tell how much memory there is.")
    sentence = f"{min(known) / 1e9:.0f} GB of memory."
    if min(known) < ENOUGH_MEMORY_BYTES:
        return Finding("memory", "warn", sentence, "Choose presets named `tiny`.")
    return Finding("memory", "ok", sentence)


def cores(machine: Machine) -> Finding:
    """Processor cores this process may use."""
    sentence = f"{machine.cpu_model}: {machine.cores_usable} of {machine.cores_logical} logical processors"
    if machine.cores_physical:
        sentence += f" on {machine.cores_physical} cores"
    if machine.cpu_limit_cores and machine.cpu_limit_cores < machine.cores_usable:
        return Finding(
            "cores",
            "warn",
            f"{sentence}, limited to {machine.cpu_limit_cores:g} cores' time by a control group.",
            "A quota stops processes in mid-step; give whole processors (`--cpuset-cpus`) instead.",
        )
    return Finding("cores", "ok", sentence + ".")


def governor(machine: Machine) -> Finding:
    """Frequency control."""
    if not machine.governor:
        return Finding("frequency", "ok", "No frequency control here, as in any virtual machine.")
    sentence = f"The frequency governor is `{machine.governor}`."
    if machine.governor in GOOD_GOVERNORS:
        return Finding("frequency", "ok", sentence)
    return Finding("frequency", "warn", sentence, "As root: cpupower frequency-set -g performance")


def host_noise() -> Finding:
    """Two seconds of listening."""
    with Sampler(period_s=0.5) as sampler:
        time.sleep(QUIET_SAMPLE_S)
    return host_noise_finding(sampler.summary())


def host_noise_finding(found: HostNoise) -> Finding:
    """What the noise guard would say of this interval."""
    if "all" in found.unknown:
        return Finding("host noise", "warn", f"Not known: {found.unknown['all']}.")
    if reasons := judge(found):
        advice = "Stop other work, or expect rounds to be repeated and intervals to be wide."
        return Finding("host noise", "warn", f"Not quiet: {'; '.join(reasons)}.", advice)
    return Finding("host noise", "ok", f"Quiet: others used {found.foreign_cores:.2f} cores, no steal.")


def compiler() -> Finding:
    """A C++ compiler, which modes that compile at run time call."""
    found = next((path for name in COMPILERS if (path := shutil.which(name))), None)
    if found:
        return Finding("compiler", "ok", f"Compiled modes find a C++ compiler ({found}).")
    return Finding(
        "compiler",
        "warn",
        "There is no C++ compiler, so modes that compile at run time will fail.",
        "Install g++ (Debian, Ubuntu: apt install g++; macOS: xcode-select --install).",
    )


def accelerators(machine: Machine) -> Finding:
    """GPUs and NPUs."""
    found = [*machine.gpus, *machine.npus]
    return Finding("accelerators", "ok", "; ".join(found) + "." if found else "None; the CPU is measured.")


def environments(kept: list[CachedEnvironment]) -> Finding:
    """What is made already."""
    if not kept:
        return Finding("environments", "ok", "None yet; the first run makes them.")
    told = ", ".join(f"{one.name} {one.state}" if one.state != "ready" else one.name for one in kept)
    size = sum(one.size_bytes for one in kept)
    sentence = f"{told} in {environments_folder()} ({size / 1e9:.1f} GB)."
    if all(one.state == "ready" for one in kept):
        return Finding("environments", "ok", sentence)
    return Finding("environments", "warn", sentence, "The next run examines and, if need be, remakes them.")


def data() -> Finding:
    """What is prepared already."""
    folder = cache_folder() / "data" / "prepared"
    prepared = sorted(path.name for path in folder.iterdir() if path.is_dir()) if folder.is_dir() else []
    if not prepared:
        return Finding("data", "ok", "Nothing prepared yet; the first run prepares it.")
    return Finding("data", "ok", f"Prepared: {', '.join(prepared)} in {folder}.")
