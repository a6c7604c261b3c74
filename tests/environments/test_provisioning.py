"""Environments are created once, used again, listed and removed; failures are one sentence."""

import shutil
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest
from environment_doubles import Events, FakeUv, site

from steelyard.environments import (
    UNCHECKED,
    Environment,
    EnvironmentSpec,
    Failure,
    ensure,
    ensure_all,
    list_environments,
    remove,
)
from steelyard.environments.execution import Log, execute
from steelyard.environments.install_errors import InstallError
from steelyard.environments.verification import MARKER
from steelyard.errors import UserError


def test_a_new_environment_knows_what_is_installed_in_it(
    fake_uv: FakeUv, tiny: EnvironmentSpec, events: Events
) -> None:
    environment = ensure(tiny, events.report)
    assert environment.version == "1.2.3"
    assert environment.packages == {"tiny-framework": "1.2.3"}
    assert environment.python.exists()
    assert not environment.external
    assert environment.folder
    assert environment.folder.name == tiny.folder_name
    assert events.stages[0] == "creating"
    assert events.stages[-2:] == ["verifying", "ready"]


def test_downloads_are_reported_in_bytes(fake_uv: FakeUv, tiny: EnvironmentSpec, events: Events) -> None:
    ensure(tiny, events.report)
    reported = [(event.done_bytes, event.total_bytes) for event in events.events if event.total_bytes]
    assert reported == [(0, 2 * 2**20), (2 * 2**20, 2 * 2**20)]


def test_an_unchanged_environment_is_reused_without_uv_and_without_an_import(
    created: Path, fake_uv: FakeUv, tiny: EnvironmentSpec, events: Events
) -> None:
    before = (created / MARKER).read_bytes()
    assert ensure(tiny, events.report).packages == {"tiny-framework": "1.2.3"}
    assert events.stages == ["checking", "ready"]
    assert fake_uv.count("venv") == 1
    assert (created / MARKER).read_bytes() == before


def test_parallel_requests_create_it_once(fake_uv: FakeUv, tiny: EnvironmentSpec) -> None:
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(ensure, [tiny] * 4))
    assert len({environment.python for environment in found}) == 1
    assert fake_uv.count("venv") == 1


@pytest.mark.parametrize(
    ("behaviour", "sentence"),
    [
        ("wrong version", "its lock file pins tiny-framework 1.2.3, but 9.9.9 is installed"),
        ("broken", "tinyframework cannot be imported: ImportError: libtiny.so: cannot open shared object"),
        ("prints:error: No space left on device (os error 28)", "the disk is full"),
        ("prints:  cause: Connection refused (os error 111)", "registry cannot be reached"),
        (
            "prints:error: No solution found\n  cause: there is no version of tiny==1",
            r"no package index has the pinned version.*\(uv: No solution found: there is no version of tiny==1\)",
        ),
        (
            "prints:tiny==1 has no usable wheels",
            r"no package index has .* for this Python .*tiny==1 has no usable wheels",
        ),
    ],
)
def test_a_failure_is_one_sentence_that_names_the_environment_and_a_log(
    fake_uv: FakeUv, tiny: EnvironmentSpec, behaviour: str, sentence: str
) -> None:
    fake_uv.behave(behaviour)
    with pytest.raises(UserError, match=sentence) as caught:
        ensure(tiny)
    text = str(caught.value)
    assert text.startswith("The environment tiny ")
    assert "\n" not in text
    log = Path(text.rsplit(" ", 1)[1])
    assert "$ " in log.read_text()


def test_the_log_contains_the_output_of_uv_without_credentials(fake_uv: FakeUv, tiny: EnvironmentSpec) -> None:
    fake_uv.behave("prints:Connection refused at https://me:secret@host/simple")
    with pytest.raises(UserError) as caught:
        ensure(tiny)
    log = Path(str(caught.value).rsplit(" ", 1)[1]).read_text()
    assert "https://***@host/simple" in log
    assert "secret" not in log + str(caught.value)


def test_a_python_that_this_machine_does_not_have_is_named(tiny: EnvironmentSpec) -> None:
    # The real uv: it knows no download of this version.
    with pytest.raises(UserError, match=r"it needs Python 3\.99, .*: the required Python is not installed.*--env"):
        ensure(replace(tiny, python_version="3.99"))


def test_one_failure_does_not_stop_the_others(fake_uv: FakeUv, tiny: EnvironmentSpec, events: Events) -> None:
    foreign = replace(tiny, name="foreign", lock=replace(tiny.lock, version="8.8.8"))
    planned = {"tiny": tiny, "foreign": foreign, "none": Failure("none", "there is no lock")}
    found = ensure_all(planned, events.report)
    assert isinstance(found["tiny"], Environment)
    assert isinstance(found["none"], Failure)
    assert isinstance(found["foreign"], Failure)
    assert "its lock file pins tiny-framework 8.8.8" in found["foreign"].sentence
    assert events.stages.count("failed") == 2


def test_a_cache_that_cannot_be_written_is_one_sentence(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, fake_uv: FakeUv, tiny: EnvironmentSpec
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("STEELYARD_CACHE", str(tmp_path / "file"))
    with pytest.raises(UserError, match=r"The environment tiny could not be created in .*file"):
        ensure(tiny)


def test_the_list_shows_size_and_state_and_survives_json(created: Path) -> None:
    (one,) = list_environments()
    assert (one.name, one.framework, one.state) == ("tiny@1.2.3", "tiny", "ready")
    assert one.size_bytes > 100
    assert one.to_dict()["folder"] == str(created)
    shutil.rmtree(site(created) / "tinyframework")
    assert list_environments()[0].state == UNCHECKED


@pytest.mark.parametrize("name", ["tiny", "tiny@1.2.3", "all"])
def test_an_environment_is_removed_by_any_of_its_names(created: Path, name: str) -> None:
    assert [one.folder for one in remove([name])] == [created]
    assert not created.exists()
    assert list_environments() == []


def test_removing_an_unknown_name_suggests_the_closest(created: Path) -> None:
    with pytest.raises(UserError, match=r"no environment 'tinny' on this machine. Did you mean 'tiny'\?"):
        remove(["tinny"])


def test_the_small_build_comes_from_the_users_own_registry_if_it_is_there(
    fake_uv: FakeUv, tiny: EnvironmentSpec
) -> None:
    spec = with_small_build(tiny)
    fake_uv.behave("has the small build")
    folder = ensure(spec).folder
    assert folder
    assert (folder / "lock.txt").read_text() == "tiny-framework==1.2.3+small\n"


def test_without_the_small_build_the_large_one_is_installed_and_reported(
    monkeypatch: pytest.MonkeyPatch, fake_uv: FakeUv, tiny: EnvironmentSpec, events: Events
) -> None:
    from steelyard.environments import install

    monkeypatch.setattr(install, "large_build", lambda lock: tiny.lock)
    ensure(with_small_build(tiny), events.report)
    assert "the other build is large" in events.sentences
    # The user's own registry first, then the vendor's.
    assert fake_uv.count("pip install --no-deps --dry-run") == 2


def test_without_the_small_build_and_without_another_the_environment_cannot_be_created(
    fake_uv: FakeUv, tiny: EnvironmentSpec
) -> None:
    spec = with_small_build(tiny)
    del spec.lock.facts["otherwise"]
    with pytest.raises(UserError, match=r"no package index has tiny-framework==1\.2\.3\+small for this Python"):
        ensure(spec)


def with_small_build(tiny: EnvironmentSpec) -> EnvironmentSpec:
    facts = {
        **tiny.lock.facts,
        "small build": "tiny-framework==1.2.3+small",
        "small build platform": sys.platform,
        "vendor index": "http://127.0.0.1:9/",
        "otherwise": "large.txt",
        "otherwise because": "the other build is large",
    }
    return replace(tiny, lock=replace(tiny.lock, facts=facts))


def test_a_program_that_exceeds_its_time_limit_is_ended(tmp_path: Path) -> None:
    log = Log(tmp_path / "log")
    log.begin()
    with pytest.raises(InstallError, match="sleep did not finish within 0 s"):
        execute(["sleep", "60"], {"PATH": "/usr/bin:/bin"}, log, limit_s=0.2)


def test_a_missing_program_is_one_sentence(tmp_path: Path) -> None:
    log = Log(tmp_path / "log")
    log.begin()
    with pytest.raises(InstallError, match=r"absent could not be started \(No such file"):
        execute([tmp_path / "absent"], {}, log)


def test_an_import_that_hangs_is_one_sentence_and_nothing_is_rebuilt(
    fake_uv: FakeUv, tiny: EnvironmentSpec, events: Events
) -> None:
    fake_uv.behave("import hangs")
    began = time.monotonic()
    with pytest.raises(
        UserError, match=r"tiny does not answer: `import tinyframework` gave no result within 2 s\. Allow"
    ):
        ensure(tiny, events.report, limit_s=2.0)
    assert time.monotonic() - began < 60
    assert fake_uv.count("venv") == 1
