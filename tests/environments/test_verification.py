"""What the verification of an environment notices, before every use: files, interpreters and records that were changed."""

import importlib.util
import os
import py_compile
import subprocess
from dataclasses import replace
from pathlib import Path

import fake_uv as fake_uv_module
import pytest
from environment_doubles import Events, FakeUv, site

from steelyard.environments import (
    UNCHECKED,
    EnvironmentSpec,
    ensure,
    interpreter_cache,
    list_environments,
    remove,
    verification,
)
from steelyard.environments.folders import python_in
from steelyard.environments.interpreter import InterpreterInfo, command
from steelyard.environments.interpreter_cache import unchanged
from steelyard.environments.verification import MARKER
from steelyard.errors import UserError


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
    monkeypatch.setattr(interpreter_cache, "starts", lambda _: False)
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
        "sitecustomize.py",
        "usercustomize.py",
        "more.pth",
        "tinyframework/extra.so",
        "tinyframework/kernels.pyc",
        "other-1.0.dist-info/entry_points.txt",
        "numpy/__init__.py",
    ],
)
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
    inspect = interpreter_cache.inspect_interpreter

    def recorded(python: Path, module: str = "", limit_s: float = 60.0) -> InterpreterInfo:
        imported.extend([module] if module else [])
        found = inspect(python, module, limit_s)
        return replace(found, folders=[*found.folders, *([str(more)] if more else [])])

    for each in (interpreter_cache, verification):
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


@pytest.mark.parametrize(("behaviour", "difference"), [("incomplete", "is missing"), ("damaged", "was changed")])
def test_an_environment_that_is_damaged_even_when_fresh_is_refused_after_one_more_try(
    fake_uv: FakeUv, tiny: EnvironmentSpec, events: Events, behaviour: str, difference: str
) -> None:
    fake_uv.behave(behaviour)
    with pytest.raises(UserError, match=rf"does not work: tinyframework/kernels\.py {difference}"):
        ensure(tiny, events.report)
    assert fake_uv.count("venv") == 2
    assert f"uv's cache is damaged (tinyframework/kernels.py {difference})" in events.sentences
