"""Environments are created once, verified before reuse, and rebuilt when broken."""

import importlib.util
import os
import py_compile
import shutil
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import fake_uv as fake_uv_module
import pytest
from environment_doubles import Events, FakeUv

from steelyard.environments import (
    UNCHECKED,
    Environment,
    EnvironmentSpec,
    Failure,
    ensure,
    ensure_all,
    known,
    list_environments,
    remove,
    verification,
)
from steelyard.environments.execution import Log, execute
from steelyard.environments.folders import python_in, site_folders
from steelyard.environments.install_errors import InstallError
from steelyard.environments.interpreter import InterpreterInfo, command
from steelyard.environments.known import unchanged
from steelyard.environments.verification import MARKER
from steelyard.errors import UserError


@pytest.fixture
def created(fake_uv: FakeUv, tiny: EnvironmentSpec) -> Path:
    """The folder of a working environment."""
    folder = ensure(tiny).folder
    assert folder
    return folder


def site(folder: Path) -> Path:
    return site_folders(folder)[0]


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


def test_a_deleted_file_that_no_import_reads_is_noticed_and_the_environment_rebuilt(
    created: Path, fake_uv: FakeUv, tiny: EnvironmentSpec, events: Events
) -> None:
    (site(created) / "tinyframework" / "kernels.py").unlink()
    ensure(tiny, events.report)
    assert "tinyframework/kernels.py is missing" in events.sentences
    assert fake_uv.count("venv") == 2
    assert (site(created) / "tinyframework" / "kernels.py").exists()


def test_a_shortened_file_is_noticed(created: Path, tiny: EnvironmentSpec, events: Events) -> None:
    (site(created) / "tinyframework" / "kernels.py").write_bytes(b"")
    ensure(tiny, events.report)
    assert "tinyframework/kernels.py was changed" in events.sentences
    assert "rebuilding" in events.stages


def test_a_deleted_interpreter_is_noticed_and_the_environment_rebuilt(
    created: Path, fake_uv: FakeUv, tiny: EnvironmentSpec, events: Events
) -> None:
    python_in(created).unlink()
    assert ensure(tiny, events.report).python.exists()
    assert "its interpreter is missing" in events.sentences
    assert fake_uv.count("venv") == 2


def test_an_interpreter_that_does_not_start_is_noticed(created: Path, tiny: EnvironmentSpec, events: Events) -> None:
    python_in(created).unlink()
    python_in(created).write_text("#!/bin/sh\necho out of order >&2\nexit 3\n")
    python_in(created).chmod(0o755)
    ensure(tiny, events.report)
    assert "its interpreter fails: it ended with code 3 and printed: out of order" in events.sentences


def test_an_unchanged_interpreter_that_no_longer_starts_is_noticed(
    created: Path, tiny: EnvironmentSpec, events: Events, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(known, "starts", lambda _: False)
    ensure(tiny, events.report)
    assert "verifying" in events.stages


def test_an_environment_without_pyvenv_cfg_is_noticed_and_rebuilt(
    created: Path, fake_uv: FakeUv, tiny: EnvironmentSpec, events: Events
) -> None:
    (created / "pyvenv.cfg").unlink()
    ensure(tiny, events.report)
    assert "it imports from" in events.sentences
    assert fake_uv.count("venv") == 2


def edit_unnoticed(path: Path) -> None:
    """Change a file's content at equal length, in place, and set its modification time back."""
    before = path.stat()
    path.write_bytes(path.read_bytes().replace(b"imported", b"IMPORTED"))
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    after = path.stat()
    assert (after.st_size, after.st_mtime_ns, after.st_ino) == (before.st_size, before.st_mtime_ns, before.st_ino)


def test_a_file_edited_at_equal_length_and_time_is_noticed_and_replaced(
    created: Path, fake_uv: FakeUv, tiny: EnvironmentSpec, events: Events
) -> None:
    kernels = site(created) / "tinyframework" / "kernels.py"
    edit_unnoticed(kernels)
    assert [one.state for one in list_environments()] == [UNCHECKED]
    ensure(tiny, events.report)
    assert "it is broken (tinyframework/kernels.py was changed)" in events.sentences
    assert fake_uv.count("venv") == 2
    assert b"not imported" in kernels.read_bytes()


def test_a_record_that_was_changed_with_its_file_is_noticed(
    created: Path, fake_uv: FakeUv, tiny: EnvironmentSpec, events: Events
) -> None:
    fake_uv_module.write_package(site(created), "1.2.3", "# another body, with a RECORD that agrees")
    ensure(tiny, events.report)
    assert "tiny_framework-1.2.3.dist-info/RECORD was changed" in events.sentences
    assert fake_uv.count("venv") == 2


@pytest.mark.parametrize(
    "name",
    [
        "sitecustomize.py", "usercustomize.py", "more.pth", "tinyframework/extra.so", "tinyframework/kernels.pyc",
        "other-1.0.dist-info/entry_points.txt", "numpy/__init__.py",
    ],
)  # fmt: skip
def test_a_file_that_belongs_to_no_package_is_noticed_and_removed(
    created: Path, fake_uv: FakeUv, tiny: EnvironmentSpec, events: Events, name: str
) -> None:
    stray = site(created) / name
    stray.parent.mkdir(exist_ok=True)
    stray.write_text("")
    ensure(tiny, events.report)
    assert f"it is broken ({name} belongs to no package)" in events.sentences
    assert not stray.exists()
    events.events.clear()
    ensure(tiny, events.report)
    assert events.stages == ["checking", "ready"]


def test_a_link_to_a_folder_of_other_packages_is_noticed(
    created: Path, tiny: EnvironmentSpec, events: Events, tmp_path: Path
) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "__init__.py").write_text("")
    (site(created) / "numpy").symlink_to(tmp_path / "elsewhere")
    ensure(tiny, events.report)
    assert "numpy/__init__.py belongs to no package" in events.sentences


def test_packages_of_the_base_interpreter_are_noticed(created: Path, tiny: EnvironmentSpec, events: Events) -> None:
    settings = created / "pyvenv.cfg"
    assert "site-packages = false" in settings.read_text()
    settings.write_text(settings.read_text().replace("site-packages = false", "site-packages = true"))
    ensure(tiny, events.report)
    assert "it is broken (it imports from" in events.sentences


def test_a_file_that_was_touched_and_not_changed_is_read_once_and_nothing_is_imported_or_rebuilt(
    created: Path, fake_uv: FakeUv, tiny: EnvironmentSpec, events: Events, monkeypatch: pytest.MonkeyPatch
) -> None:
    # uv does so to files that a further environment shares.
    os.link(site(created) / "tinyframework" / "kernels.py", created / "link")
    (site(created) / "tinyframework" / "__init__.py").touch()
    imported = watch_imports(monkeypatch)
    ensure(tiny, events.report)
    assert events.stages == ["checking", "verifying", "ready"]
    assert imported == []
    events.events.clear()
    ensure(tiny, events.report)
    assert events.stages == ["checking", "ready"]
    assert fake_uv.count("venv") == 1


def watch_imports(monkeypatch: pytest.MonkeyPatch, more: Path | None = None) -> list[str]:
    """Return a list that receives the module of every import; interpreters also import from the folder `more`."""
    imported: list[str] = []
    inspect = known.inspect_interpreter

    def recorded(python: Path, module: str = "", limit_s: float = 60.0) -> InterpreterInfo:
        imported.extend([module] if module else [])
        found = inspect(python, module, limit_s)
        return replace(found, folders=[*found.folders, *([str(more)] if more else [])])

    for each in (known, verification):
        monkeypatch.setattr(each, "inspect_interpreter", recorded)
    return imported


def test_a_changed_standard_library_is_another_content_and_the_framework_is_imported_again(
    fake_uv: FakeUv, tiny: EnvironmentSpec, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    library = tmp_path / "library"
    library.mkdir()
    imported = watch_imports(monkeypatch, library)
    before = ensure(tiny).contents
    (library / "sitecustomize.py").write_text("")
    assert ensure(tiny).contents != before
    (library / "sitecustomize.py").unlink()
    assert ensure(tiny).contents == before
    assert imported == ["tinyframework"] * 3
    assert fake_uv.count("venv") == 1


def test_another_version_in_the_environment_is_noticed(created: Path, tiny: EnvironmentSpec, events: Events) -> None:
    info = site(created) / "tiny_framework-1.2.3.dist-info"
    metadata = (info / "METADATA").read_text()
    (info / "METADATA").write_text(metadata.replace("1.2.3", "1.2.4"))
    ensure(tiny, events.report)
    assert "tiny_framework-1.2.3.dist-info/METADATA was changed" in events.sentences


def test_byte_code_beside_the_packages_is_never_read_and_is_no_change(
    created: Path, tiny: EnvironmentSpec, events: Events, tmp_path: Path
) -> None:
    planted = tmp_path / "planted.py"
    planted.write_text("raise SystemExit('planted')")
    target = importlib.util.cache_from_source(str(site(created) / "tinyframework" / "__init__.py"))
    py_compile.compile(str(planted), target, invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH)
    environment = ensure(tiny, events.report)
    assert events.stages == ["checking", "ready"]
    done = subprocess.run(
        [*command(environment.python), "-c", "import tinyframework"], capture_output=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, b"")
    plain = subprocess.run([environment.python, "-I", "-c", "import tinyframework"], capture_output=True, check=False)
    assert b"planted" in plain.stderr


def test_a_cache_behind_a_symbolic_link_is_not_verified_again(
    created: Path, tiny: EnvironmentSpec, events: Events, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "environments").symlink_to(created.parent, target_is_directory=True)
    monkeypatch.setenv("STEELYARD_CACHE", str(tmp_path / "other"))
    ensure(tiny, events.report)
    assert events.stages == ["checking", "ready"]


def test_an_environment_that_is_created_again_has_the_same_contents(created: Path, tiny: EnvironmentSpec) -> None:
    before = ensure(tiny).contents
    assert len(before) == 64
    remove(["tiny"])
    assert ensure(tiny).contents == before


@pytest.mark.parametrize("text", ["", "garbage", "0\n{}", None])
def test_a_damaged_record_of_an_interpreter_is_made_again(
    created: Path, tiny: EnvironmentSpec, events: Events, text: str | None
) -> None:
    (record,) = created.parent.glob("interpreters/*/interpreter.json")
    record.write_text(record.read_text()[:-1] if text is None else text)
    ensure(tiny, events.report)
    assert events.stages == ["checking", "verifying", "ready"]
    assert unchanged(python_in(created))


def test_an_unfinished_environment_is_never_used(created: Path, fake_uv: FakeUv, tiny: EnvironmentSpec) -> None:
    (created / MARKER).unlink()
    assert [one.state for one in list_environments()] == ["unfinished"]
    ensure(tiny)
    assert fake_uv.count("venv") == 2


def test_a_damaged_marker_counts_as_unfinished(created: Path, fake_uv: FakeUv, tiny: EnvironmentSpec) -> None:
    (created / MARKER).write_text('{"stamp": ')
    ensure(tiny)
    assert fake_uv.count("venv") == 2


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


def test_an_environment_that_is_damaged_even_when_fresh_is_refused_after_one_more_try(
    fake_uv: FakeUv, tiny: EnvironmentSpec, events: Events
) -> None:
    fake_uv.behave("incomplete")
    with pytest.raises(UserError, match=r"does not work: tinyframework/kernels\.py is missing"):
        ensure(tiny, events.report)
    assert fake_uv.count("venv") == 2
    assert "uv's cache is damaged" in events.sentences


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


def test_a_file_damaged_in_uvs_cache_is_found_in_a_new_environment(
    fake_uv: FakeUv, tiny: EnvironmentSpec, events: Events
) -> None:
    fake_uv.behave("damaged")
    with pytest.raises(UserError, match=r"does not work: tinyframework/kernels\.py was changed"):
        ensure(tiny, events.report)
    assert "uv's cache is damaged (tinyframework/kernels.py was changed)" in events.sentences
