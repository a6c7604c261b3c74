"""Environments are made once, verified before reuse, and made anew when broken."""

import shutil
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest
from environment_doubles import FakeUv, Heard

from steelyard.environments import (
    Environment,
    EnvironmentSpec,
    Failure,
    ensure,
    ensure_all,
    list_environments,
    remove,
    tools,
    verification,
)
from steelyard.environments.complaint import Complaint
from steelyard.environments.execution import InstallError, Log
from steelyard.environments.interpreter import python_in
from steelyard.environments.stamp import site_folders, stamp
from steelyard.environments.verification import MARKER
from steelyard.errors import UserError


@pytest.fixture
def made(fake_uv: FakeUv, tiny: EnvironmentSpec) -> Path:
    """The folder of a whole environment."""
    folder = ensure(tiny).folder
    assert folder
    return folder


def site(folder: Path) -> Path:
    return site_folders(folder)[0]


def test_a_new_environment_knows_what_is_installed_in_it(fake_uv: FakeUv, tiny: EnvironmentSpec, heard: Heard) -> None:
    environment = ensure(tiny, heard.report)
    assert environment.version == "1.2.3"
    assert environment.packages == {"tiny-framework": "1.2.3"}
    assert environment.python.exists()
    assert not environment.brought
    assert environment.folder
    assert environment.folder.name == tiny.folder_name
    assert heard.stages[0] == "creating"
    assert heard.stages[-2:] == ["verifying", "ready"]


def test_downloads_are_told_in_bytes(fake_uv: FakeUv, tiny: EnvironmentSpec, heard: Heard) -> None:
    ensure(tiny, heard.report)
    told = [(event.done_bytes, event.total_bytes) for event in heard.events if event.total_bytes]
    assert told == [(0, 2 * 2**20), (2 * 2**20, 2 * 2**20)]


def test_a_whole_environment_is_used_again_without_uv_and_without_an_import(
    made: Path, fake_uv: FakeUv, tiny: EnvironmentSpec, heard: Heard
) -> None:
    before = (made / MARKER).read_bytes()
    assert ensure(tiny, heard.report).packages == {"tiny-framework": "1.2.3"}
    assert heard.stages == ["checking", "ready"]
    assert fake_uv.asked("venv") == 1
    assert (made / MARKER).read_bytes() == before


def test_a_deleted_file_that_no_import_touches_is_noticed_and_the_environment_made_anew(
    made: Path, fake_uv: FakeUv, tiny: EnvironmentSpec, heard: Heard
) -> None:
    (site(made) / "tinyframework" / "kernels.py").unlink()
    ensure(tiny, heard.report)
    assert "tinyframework/kernels.py is missing" in heard.sentences
    assert fake_uv.asked("venv") == 2
    assert (site(made) / "tinyframework" / "kernels.py").exists()


def test_a_shortened_file_is_noticed(made: Path, tiny: EnvironmentSpec, heard: Heard) -> None:
    (site(made) / "tinyframework" / "kernels.py").write_bytes(b"")
    ensure(tiny, heard.report)
    assert "kernels.py has 0 bytes instead of" in heard.sentences
    assert "rebuilding" in heard.stages


def test_a_deleted_interpreter_is_noticed_and_the_environment_made_anew(
    made: Path, fake_uv: FakeUv, tiny: EnvironmentSpec, heard: Heard
) -> None:
    python_in(made).unlink()
    assert ensure(tiny, heard.report).python.exists()
    assert "its interpreter is missing" in heard.sentences
    assert fake_uv.asked("venv") == 2


def test_an_interpreter_that_does_not_start_is_noticed(made: Path, tiny: EnvironmentSpec, heard: Heard) -> None:
    python_in(made).unlink()
    python_in(made).write_text("#!/bin/sh\necho out of order >&2\nexit 3\n")
    python_in(made).chmod(0o755)
    ensure(tiny, heard.report)
    assert "its interpreter fails: it ended with code 3 and said: out of order" in heard.sentences


def test_an_interpreter_that_stopped_starting_without_any_change_of_its_own_is_noticed(
    made: Path, tiny: EnvironmentSpec, heard: Heard, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(verification, "starts", lambda _: False)
    ensure(tiny, heard.report)
    assert "verifying" in heard.stages


def test_an_environment_that_lost_its_settings_is_noticed_and_made_anew(
    made: Path, fake_uv: FakeUv, tiny: EnvironmentSpec, heard: Heard
) -> None:
    (made / "pyvenv.cfg").unlink()
    ensure(tiny, heard.report)
    assert "tinyframework does not import" in heard.sentences
    assert fake_uv.asked("venv") == 2


def test_a_harmless_change_is_verified_once_and_nothing_is_made_anew(
    made: Path, fake_uv: FakeUv, tiny: EnvironmentSpec, heard: Heard
) -> None:
    (site(made) / "notes.txt").write_text("mine")
    ensure(tiny, heard.report)
    assert heard.stages == ["checking", "verifying", "ready"]
    heard.events.clear()
    ensure(tiny, heard.report)
    assert heard.stages == ["checking", "ready"]
    assert fake_uv.asked("venv") == 1


def test_another_version_in_the_environment_is_noticed(made: Path, tiny: EnvironmentSpec, heard: Heard) -> None:
    info = site(made) / "tiny_framework-1.2.3.dist-info"
    metadata = (info / "METADATA").read_text()
    (info / "METADATA").write_text(metadata.replace("1.2.3", "1.2.4"))
    ensure(tiny, heard.report)
    assert "its lock wants tiny-framework 1.2.3, it holds 1.2.4" in heard.sentences


def test_byte_code_written_by_an_import_changes_nothing(made: Path) -> None:
    before = stamp(made)
    cache = site(made) / "tiny_framework-1.2.3.dist-info" / "__pycache__"
    cache.mkdir()
    (cache / "kernels.cpython-311.pyc").write_bytes(b"x")
    assert stamp(made) == before


def test_an_unfinished_environment_is_never_used(made: Path, fake_uv: FakeUv, tiny: EnvironmentSpec) -> None:
    (made / MARKER).unlink()
    assert [kept.state for kept in list_environments()] == ["unfinished"]
    ensure(tiny)
    assert fake_uv.asked("venv") == 2


def test_a_damaged_marker_counts_as_unfinished(made: Path, fake_uv: FakeUv, tiny: EnvironmentSpec) -> None:
    (made / MARKER).write_text('{"stamp": ')
    ensure(tiny)
    assert fake_uv.asked("venv") == 2


def test_two_at_once_make_it_once(fake_uv: FakeUv, tiny: EnvironmentSpec) -> None:
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(ensure, [tiny] * 4))
    assert len({environment.python for environment in found}) == 1
    assert fake_uv.asked("venv") == 1


@pytest.mark.parametrize(
    ("mood", "sentence"),
    [
        ("wrong version", "its lock wants tiny-framework 1.2.3, it holds 9.9.9"),
        ("broken", "tinyframework does not import: ImportError: libtiny.so: cannot open shared object"),
        ("says:error: No space left on device (os error 28)", "the disk is full"),
        ("says:  cause: Connection refused (os error 111)", "registry cannot be reached"),
        ("says:there is no version of tiny==1 and", r"does not have the pinned version \(tiny==1\)"),
        ("says:tiny==1 has no usable wheels", r"no package file for this Python.* \(tiny==1\)"),
    ],
)
def test_a_failure_is_one_sentence_that_names_the_environment_and_a_log(
    fake_uv: FakeUv, tiny: EnvironmentSpec, mood: str, sentence: str
) -> None:
    fake_uv.be(mood)
    with pytest.raises(UserError, match=sentence) as caught:
        ensure(tiny)
    text = str(caught.value)
    assert text.startswith("The environment tiny ")
    assert "\n" not in text
    log = Path(text.rsplit(" ", 1)[1])
    assert "$ " in log.read_text()


def test_the_log_keeps_what_the_installer_said_without_credentials(fake_uv: FakeUv, tiny: EnvironmentSpec) -> None:
    fake_uv.be("says:Connection refused at https://me:secret@host/simple")
    with pytest.raises(UserError) as caught:
        ensure(tiny)
    log = Path(str(caught.value).rsplit(" ", 1)[1]).read_text()
    assert "https://***@host/simple" in log
    assert "secret" not in log + str(caught.value)


def test_one_failure_does_not_stop_the_others(fake_uv: FakeUv, tiny: EnvironmentSpec, heard: Heard) -> None:
    foreign = replace(tiny, name="foreign", version="8.8.8")
    planned = {"tiny": tiny, "foreign": foreign, "none": Failure("none", "there is no lock")}
    found = ensure_all(planned, heard.report)
    assert isinstance(found["tiny"], Environment)
    assert isinstance(found["none"], Failure)
    assert isinstance(found["foreign"], Failure)
    assert "its lock wants tiny-framework 8.8.8" in found["foreign"].sentence
    assert heard.stages.count("failed") == 2


class SlowButSure:
    """Stands for venv and pip."""

    name = "pip"

    def __init__(self, settings: object) -> None:
        self.settings = settings

    def create(self, folder: Path, python_version: str, log: Log) -> None:
        import fake_uv

        fake_uv.venv.create(folder, symlinks=True)

    def offers(self, *_: object) -> bool:
        return False

    def install(self, folder: Path, *_: object) -> None:
        import fake_uv

        fake_uv.write_package(site(folder), "1.2.3", "")


def test_pip_takes_over_when_uv_is_missing_and_says_so(
    monkeypatch: pytest.MonkeyPatch, tiny: EnvironmentSpec, heard: Heard
) -> None:
    monkeypatch.setattr(tools, "find_uv", lambda: None)
    monkeypatch.setattr(tools, "Pip", SlowButSure)
    ensure(tiny, heard.report)
    assert "uv is missing" in heard.sentences


@pytest.mark.parametrize("mood", ["killed", "says:invalid peer certificate: UnknownIssuer"])
def test_pip_takes_over_when_uv_fails_in_a_way_that_pip_may_not(
    monkeypatch: pytest.MonkeyPatch, fake_uv: FakeUv, tiny: EnvironmentSpec, heard: Heard, mood: str
) -> None:
    monkeypatch.setattr(tools, "Pip", SlowButSure)
    fake_uv.be(mood)
    ensure(tiny, heard.report)
    assert "so venv and pip are tried" in heard.sentences


def test_pip_is_not_tried_on_a_full_disk(
    monkeypatch: pytest.MonkeyPatch, fake_uv: FakeUv, tiny: EnvironmentSpec
) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("pip must not be asked")

    monkeypatch.setattr(tools, "Pip", refuse)
    fake_uv.be("says:No space left on device (os error 28)")
    with pytest.raises(UserError, match="the disk is full"):
        ensure(tiny)


def test_a_cache_that_cannot_be_written_is_one_sentence(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, fake_uv: FakeUv, tiny: EnvironmentSpec
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("STEELYARD_CACHE", str(tmp_path / "file"))
    with pytest.raises(UserError, match=r"The environment tiny could not be made in .*file"):
        ensure(tiny)


def test_the_list_shows_size_and_state_and_survives_json(made: Path) -> None:
    (kept,) = list_environments()
    assert (kept.name, kept.framework, kept.state) == ("tiny@1.2.3", "tiny", "ready")
    assert kept.size_bytes > 100
    assert kept.to_dict()["folder"] == str(made)
    shutil.rmtree(site(made) / "tinyframework")
    assert list_environments()[0].state == "changed"


@pytest.mark.parametrize("name", ["tiny", "tiny@1.2.3", "all"])
def test_an_environment_is_removed_by_any_of_its_names(made: Path, name: str) -> None:
    assert [kept.folder for kept in remove([name])] == [made]
    assert not made.exists()
    assert list_environments() == []


def test_removing_an_unknown_name_suggests_the_nearest(made: Path) -> None:
    with pytest.raises(UserError, match=r"no environment 'tinny' on this machine. Did you mean 'tiny'\?"):
        remove(["tinny"])


def test_the_small_build_is_taken_from_the_users_own_registry_where_it_is_offered(
    fake_uv: FakeUv, tiny: EnvironmentSpec
) -> None:
    spec = with_small_build(tiny)
    fake_uv.be("offers")
    folder = ensure(spec).folder
    assert folder
    assert (folder / "lock.txt").read_text() == "tiny-framework==1.2.3+small\n"


def test_without_the_small_build_the_plain_one_is_taken_and_said(
    monkeypatch: pytest.MonkeyPatch, fake_uv: FakeUv, tiny: EnvironmentSpec, heard: Heard
) -> None:
    from steelyard.environments import install

    monkeypatch.setattr(install, "build_without", lambda lock: tiny.lock)
    ensure(with_small_build(tiny), heard.report)
    assert "the plain build is large" in heard.sentences
    # Its own registry first, then the vendor's.
    assert fake_uv.asked("pip install --no-deps --dry-run") == 2


def with_small_build(tiny: EnvironmentSpec) -> EnvironmentSpec:
    facts = {
        **tiny.lock.facts,
        "small build": "tiny-framework==1.2.3+small",
        "small build platform": sys.platform,
        "vendor index": "http://127.0.0.1:9/",
        "otherwise because": "the plain build is large",
    }
    return replace(tiny, lock=replace(tiny.lock, facts=facts))


def test_an_installer_that_hangs_is_ended(tmp_path: Path) -> None:
    from steelyard.environments.execution import execute

    log = Log(tmp_path / "log")
    log.begin()
    with pytest.raises(InstallError):
        execute(["sleep", "60"], {"PATH": "/usr/bin:/bin"}, log, limit_s=0.2)


def test_an_installer_that_is_not_there_is_one_sentence(tmp_path: Path) -> None:
    from steelyard.environments.execution import execute

    log = Log(tmp_path / "log")
    log.begin()
    with pytest.raises(InstallError, match="did not start: No such file") as caught:
        execute([tmp_path / "absent"], {}, log)
    assert isinstance(caught.value.complaint, Complaint)
    assert caught.value.complaint.pip_may_succeed


def test_an_environment_that_is_damaged_even_when_fresh_is_refused_after_one_more_try(
    fake_uv: FakeUv, tiny: EnvironmentSpec, heard: Heard
) -> None:
    fake_uv.be("incomplete")
    with pytest.raises(UserError, match=r"does not work: tinyframework/kernels\.py is missing"):
        ensure(tiny, heard.report)
    assert fake_uv.asked("venv") == 2
    assert "uv's cache is damaged" in heard.sentences
