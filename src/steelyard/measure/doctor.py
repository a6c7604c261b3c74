"""Checks whether this machine is fit to measure on; each check gives one finding, with advice if something is wrong."""

import shutil
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Literal

from steelyard.environments.execution import Log
from steelyard.environments.folders import environments_folder
from steelyard.environments.install_errors import InstallError
from steelyard.environments.listing import CachedEnvironment, list_environments
from steelyard.environments.lock import read_locks
from steelyard.environments.pip_settings import describe_settings, read_pip_settings
from steelyard.environments.uv import Uv, find_uv
from steelyard.errors import UserError
from steelyard.files.paths import cache_folder
from steelyard.host.machine import Machine, describe
from steelyard.host.noise import HostNoise, judge
from steelyard.host.sampler import Sampler
from steelyard.measure.session import SPARE_BYTES

NOISE_SAMPLE_S = 2.2
REGISTRY_LIMIT_S = 8.0
# A process of one framework with weights, batch and gradients of a full-size preset took up to 3 GB on two cores.
RECOMMENDED_MEMORY_BYTES = 4e9
COMPILERS = ("g++", "clang++")
GOOD_GOVERNORS = ("performance", "schedutil")
PIP_ADVICE = "Correct or remove that setting or file."


@dataclass(frozen=True)
class Finding:
    """Result of one check. `bad` prevents measuring, `warn` makes it less reliable; `ok` has no advice."""

    name: str
    state: Literal["ok", "warn", "bad"]
    sentence: str
    advice: str = ""


def _finding(name: str, sentence: str, advice: str, state: Literal["warn", "bad"] = "warn") -> Finding:
    """Return a finding that is `ok` if there is no advice."""
    return Finding(name, state if advice else "ok", sentence, advice)


def examine() -> list[Finding]:
    """Return all findings; takes about 5 s and at most 15 s."""
    machine = describe()
    installed = list_environments()
    of_machine = [partial(check, machine) for check in (memory, cores, governor)]
    first = [python, uv, pip_settings, registry, partial(disk, installed), *of_machine]
    last = [compiler, partial(accelerators, machine), partial(environments, installed), data]
    with ThreadPoolExecutor(len(first + last)) as pool:
        found = list(pool.map(lambda check: check(), first + last))
    # Host noise is measured after all other checks, because they would add to the load.
    return [*found[: len(first)], host_noise(), *found[len(first) :]]


def python() -> Finding:
    """Check whether the interpreter that runs steelyard can create the environments of all lock files."""
    version = sys.version_info[:2]
    name = f"Python {version[0]}.{version[1]} ({sys.executable})"
    unsupported = sorted({each.framework for each in read_locks() if not each.pythons[0] <= version <= each.pythons[1]})
    if not unsupported:
        return Finding("Python", "ok", f"{name} can create every environment.")
    sentence = f"{name} is not a version supported by {', '.join(unsupported)}."
    return Finding("Python", "warn", sentence, "Install Python 3.11 as well; steelyard uses it if it is in PATH.")


def uv() -> Finding:
    """Check for uv, which creates the environments."""
    try:
        return Finding("uv", "ok", f"uv creates the environments ({find_uv()}).")
    except UserError as error:
        return Finding("uv", "bad", str(error), "pip install uv")


def pip_settings() -> Finding:
    """Check the settings of pip, which are passed on to uv."""
    try:
        settings = describe_settings(read_pip_settings())
    except UserError as error:
        return Finding("pip settings", "bad", str(error), PIP_ADVICE)
    return Finding("pip settings", "ok", f"Found: {settings}." if settings else "None; the public registry is used.")


def registry() -> Finding:
    """Check whether packages can be downloaded, by looking up the versions of one small package."""
    with tempfile.TemporaryDirectory() as folder:
        try:
            Uv(Log(Path(folder, "log"))).check_registry(REGISTRY_LIMIT_S)
        except UserError as error:
            return Finding("registry", "bad", str(error), PIP_ADVICE)
        except InstallError as error:
            advice = "Existing environments keep working; new ones need a registry or a find-links folder."
            return Finding("registry", "warn", f"Packages cannot be downloaded now: {error}.", advice)
    return Finding("registry", "ok", "The package registry can be reached.")


def disk(installed: list[CachedEnvironment], all_needed: bool = True) -> Finding:
    """Check the disk space for the environments that are still to be created, and for records.

    `all_needed`: False where a run may need fewer environments than all. Then only a full disk prevents measuring.
    """
    folder = cache_folder()
    existing = next(path for path in (folder, *folder.parents) if path.exists())
    free = shutil.disk_usage(existing).free
    present = {(each.framework, each.version, each.accelerator) for each in installed}
    # The newest lock of each framework, which is the first one, is what a run without arguments uses.
    newest = {lock.framework: lock for lock in reversed(read_locks()) if lock.accelerator == "cpu"}.values()
    needed = sum(each.installed_bytes for each in newest if (each.framework, each.version, "cpu") not in present)
    sentence = f"{free / 1e9:.0f} GB free for {folder}; environments still to be created need {needed / 1e9:.1f} GB."
    little = free < max(needed * 1.5, SPARE_BYTES)
    advice = "Free some space, or set STEELYARD_CACHE to a folder on a larger disk." if little else ""
    return _finding("disk", sentence, advice, "bad" if all_needed or free < SPARE_BYTES else "warn")


def memory(machine: Machine) -> Finding:
    """Check the memory that processes may use."""
    usable = min(machine.memory_bytes, machine.memory_limit_bytes or machine.memory_bytes)
    advice = "Use the `tiny` presets." if usable < RECOMMENDED_MEMORY_BYTES else ""
    return _finding("memory", f"{usable / 1e9:.0f} GB of memory.", advice)


def cores(machine: Machine) -> Finding:
    """Check the processors that processes may use."""
    sentence = f"{machine.cpu_model}: {machine.cores_usable} of {machine.cores_logical} logical processors"
    if machine.cores_physical:
        sentence += f" on {machine.cores_physical} cores"
    if machine.cpu_limit_cores and machine.cpu_limit_cores < machine.cores_usable:
        sentence += f", limited to the time of {machine.cpu_limit_cores:g} cores by a control group."
        advice = "Such a quota pauses processes within a step; assign whole processors (`--cpuset-cpus`) instead."
        return Finding("cores", "warn", sentence, advice)
    return Finding("cores", "ok", sentence + ".")


def governor(machine: Machine) -> Finding:
    """Check the governor that controls the processors' frequency."""
    if not machine.governor:
        reason = machine.unknown.get("governor", "the system has no frequency control")
        return Finding("frequency", "ok", f"No governor: {reason}.")
    advice = "" if machine.governor in GOOD_GOVERNORS else "As root: cpupower frequency-set -g performance"
    return _finding("frequency", f"The frequency governor is `{machine.governor}`.", advice)


def host_noise() -> Finding:
    """Check for two seconds whether other programs use the machine."""
    with Sampler(period_s=0.5) as sampler:
        time.sleep(NOISE_SAMPLE_S)
    return host_noise_finding(sampler.summary())


def host_noise_finding(found: HostNoise) -> Finding:
    """Judge an interval by the limits that rounds must meet."""
    if "all" in found.unknown:
        advice = "Close other programs before measuring: disturbed rounds cannot be detected here."
        return Finding("host noise", "warn", f"Unknown: {found.unknown['all']}.", advice)
    if reasons := judge(found):
        advice = "Close other programs, or expect rounds to be repeated and intervals to be wide."
        return Finding("host noise", "warn", f"High: {'; '.join(each.reason for each in reasons)}.", advice)
    sentence = f"Low: other processes used {found.foreign_cores:.2f} cores, steal was {found.steal_share:.1%}."
    return Finding("host noise", "ok", sentence)


def compiler() -> Finding:
    """Check for a C++ compiler, which some modes call at run time."""
    found = next((path for name in COMPILERS if (path := shutil.which(name))), None)
    if found:
        return Finding("compiler", "ok", f"C++ compiler found ({found}).")
    advice = "Install g++ (Debian, Ubuntu: apt install g++; macOS: xcode-select --install)."
    return Finding(
        "compiler", "warn", "No C++ compiler was found, so modes that compile at run time will fail.", advice
    )


def accelerators(machine: Machine) -> Finding:
    """List the GPUs and NPUs."""
    found = [*machine.gpus, *machine.npus]
    sentence = "; ".join(found) + "." if found else "No GPU or NPU was found; the CPU is measured."
    return Finding("accelerators", "ok", sentence)


def environments(installed: list[CachedEnvironment]) -> Finding:
    """List the environments on disk."""
    if not installed:
        return Finding("environments", "ok", "None yet; the first run creates them.")
    names = ", ".join(each.name if each.state == "ready" else f"{each.name} ({each.state})" for each in installed)
    size = sum(each.size_bytes for each in installed)
    sentence = f"{names} in {environments_folder()} ({size / 1e9:.1f} GB)."
    damaged = any(each.state != "ready" for each in installed)
    return _finding(
        "environments", sentence, "The next run checks them and rebuilds those that are damaged." if damaged else ""
    )


def data() -> Finding:
    """List the data sets that are prepared."""
    folder = cache_folder() / "data" / "prepared"
    prepared = sorted(path.name for path in folder.iterdir() if path.is_dir()) if folder.is_dir() else []
    if not prepared:
        return Finding("data", "ok", "No data set is prepared yet; the first run prepares it.")
    return Finding("data", "ok", f"Prepared: {', '.join(prepared)} in {folder}.")
