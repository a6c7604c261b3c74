"""The real uv, a real registry, real damage: environments are created, damaged, and rebuilt."""

import os
import resource
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path

import pytest
from decides import Sources
from environment_doubles import Events

from steelyard.environments import (
    Environment,
    EnvironmentName,
    EnvironmentSpec,
    ensure,
    external_environment,
    fetch_package,
)
from steelyard.environments.folders import python_in, site_folders
from steelyard.environments.lock import parse_lock, read_locks
from steelyard.environments.spec import plan_environments
from steelyard.errors import UserError


def decided() -> Sources:
    """Return what decides how environments are created: all of what this file imports, the lock files, and uv."""
    return Sources("environments", files=("src/steelyard/environments",), values=(version("uv"),))


pytestmark = [pytest.mark.conformance, pytest.mark.decided(by=decided)]

SIX = """# framework = six
# version = 1.17.0
# accelerator = cpu
# import = six
# distribution = six
# python = 3.10 to 3.99

six==1.17.0
"""


@pytest.fixture
def six(tiny: EnvironmentSpec) -> EnvironmentSpec:
    """A real package that is small."""
    return with_lock(tiny, SIX)


def with_lock(spec: EnvironmentSpec, text: str) -> EnvironmentSpec:
    lock = parse_lock("six-1.17.0-cpu", text)
    return replace(spec, name="six", lock=lock)


@pytest.fixture
def unreachable(monkeypatch: pytest.MonkeyPatch) -> None:
    """A registry at a closed port, and no other source."""
    only_index(monkeypatch, "http://127.0.0.1:9/simple")


def only_index(monkeypatch: pytest.MonkeyPatch, url: str) -> None:
    for name in ("PIP_FIND_LINKS", "PIP_EXTRA_INDEX_URL", "PIP_CERT"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_INDEX_URL", url)
    monkeypatch.setenv("PIP_RETRIES", "1")
    monkeypatch.setenv("UV_CACHE_DIR", str(Path(os.environ["STEELYARD_CACHE"]) / "uv"))


def smallest() -> str:
    """The framework that takes the least disk."""
    tried = [lock for lock in read_locks() if not lock.untested]
    return min(tried, key=lambda lock: lock.installed_bytes).framework


def test_a_real_environment_is_created_reused_damaged_and_rebuilt(events: Events) -> None:
    name = smallest()
    spec = plan_environments([EnvironmentName(name)])[name]
    assert isinstance(spec, EnvironmentSpec)
    environment = ensure(spec, events.report)
    assert environment.version.partition("+")[0] == spec.lock.version
    assert environment.folder
    again = Events([])
    ensure(spec, again.report)
    # Verifying would import the framework, which takes seconds.
    assert again.stages == ["checking", "ready"]
    library = max(site_folders(environment.folder)[0].glob("*/*.so*"), key=lambda path: path.stat().st_size)
    library.unlink()
    ensure(spec, events.report)
    assert f"{library.name} is missing" in events.sentences
    assert library.exists()
    external = external_environment(EnvironmentName(name), environment.python)
    assert (external.version, external.packages) == (environment.version, environment.packages)


def test_a_deleted_interpreter_is_replaced_by_the_real_uv(six: EnvironmentSpec, events: Events) -> None:
    environment = ensure(six)
    environment.python.unlink()
    assert ensure(six, events.report).python.exists()
    assert "its interpreter is missing" in events.sentences


def test_damage_that_reached_uvs_cache_is_repaired_by_downloading_again(
    six: EnvironmentSpec, events: Events, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("UV_CACHE_DIR", os.environ["STEELYARD_CACHE"] + "-uv")
    folder = ensure(six).folder
    assert folder
    module = site_folders(folder)[0] / "six.py"
    assert module.stat().st_nlink > 1, "uv copied instead of linking, so nothing is shared here"
    module.write_text("# shortened, and so is the linked file in the cache\n")
    ensure(six, events.report)
    assert "uv's cache is damaged (six.py was changed" in events.sentences
    assert module.stat().st_size > 1000


@pytest.mark.usefixtures("unreachable")
def test_an_unreachable_registry_is_one_sentence(six: EnvironmentSpec) -> None:
    with pytest.raises(UserError, match="the package registry cannot be reached"):
        ensure(six)


@pytest.mark.usefixtures("unreachable")
def test_a_vendors_index_that_does_not_answer_takes_seconds_and_the_large_build_is_reported(
    six: EnvironmentSpec, events: Events, monkeypatch: pytest.MonkeyPatch
) -> None:
    from steelyard.environments import install

    more = (
        f"# small build = six==1.17.0+cpu\n# small build platform = {sys.platform}\n"
        "# vendor index = http://127.0.0.1:9/\n# otherwise = large.txt\n# otherwise because = the other build is large\n"
    )
    monkeypatch.setattr(install, "large_build", lambda _: six.lock)
    began = time.monotonic()
    with pytest.raises(UserError):
        ensure(with_lock(six, more + SIX), events.report)
    assert time.monotonic() - began < 30
    assert "the other build is large" in events.sentences


def test_a_version_that_no_registry_has_is_named(six: EnvironmentSpec) -> None:
    with pytest.raises(UserError, match=r"no package index has the pinned version.*six==99"):
        ensure(with_lock(six, SIX.replace("six==1.17.0", "six==99.0")))


def test_a_damaged_package_file_is_named(six: EnvironmentSpec, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wheels = tmp_path / "wheels"
    wheels.mkdir()
    (wheels / "six-1.17.0-py2.py3-none-any.whl").write_text("garbage")
    only_index(monkeypatch, "")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(wheels))
    with pytest.raises(UserError, match=r"uv failed: Failed to download `six==1\.17\.0`: .*zip|central directory"):
        ensure(six)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of a megabyte, where this account may mount one."""
    folder = tmp_path / "small"
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(folder)]
    mounted = subprocess.run(command, capture_output=True, check=False)
    if mounted.returncode:
        pytest.skip("this account may not mount a small disk")
    try:
        yield folder
    finally:
        subprocess.run(["umount", folder], check=True)


def test_a_full_disk_is_one_sentence_and_leaves_nothing_that_looks_complete(
    tiny: EnvironmentSpec, small_disk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STEELYARD_CACHE", str(small_disk))
    text = SIX.replace("= six", "= setuptools").replace("1.17.0", "80.9.0").replace("six==", "setuptools==")
    spec = with_lock(tiny, text)
    with pytest.raises(UserError, match="the disk is full; free some space"):
        ensure(spec)
    monkeypatch.setenv("STEELYARD_CACHE", str(small_disk.parent / "large"))
    assert isinstance(ensure(spec), Environment)


def test_a_limit_on_file_sizes_is_one_sentence(tiny: EnvironmentSpec, monkeypatch: pytest.MonkeyPatch) -> None:
    text = SIX.replace("= six", "= numpy").replace("1.17.0", "2.4.6").replace("six==", "numpy==")
    monkeypatch.setenv("UV_CACHE_DIR", str(Path(os.environ["STEELYARD_CACHE"]) / "uv"))
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (2_000_000, before[1]))
    try:
        with pytest.raises(UserError, match=r"File too large|File size limit exceeded"):
            ensure(with_lock(tiny, text))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_a_package_of_data_is_downloaded_without_its_dependencies(tmp_path: Path) -> None:
    target = fetch_package("python-dateutil==2.9.0.post0", tmp_path / "package")
    assert (target / "dateutil" / "__init__.py").exists()
    assert not (target / "six.py").exists()


def test_two_processes_create_it_once(six: EnvironmentSpec, tmp_path: Path) -> None:
    script = (
        "import sys; from dataclasses import replace; from steelyard.environments import *\n"
        "from steelyard.environments.lock import parse_lock\n"
        f"lock = parse_lock('six-1.17.0-cpu', {SIX!r})\n"
        f"spec = EnvironmentSpec('six', lock, {six.python_version!r})\n"
        "stages = []\n"
        "ensure(spec, lambda event: stages.append(event.stage)); print('creating' in stages)\n"
    )
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", script]
    both = [subprocess.Popen(command, stdout=subprocess.PIPE, env=environ) for _ in range(2)]
    printed = [process.communicate()[0].strip() for process in both]
    assert sorted(printed) == [b"False", b"True"]
    assert python_in(ensure(six).folder or tmp_path).exists()
