"""An external interpreter is inspected, used unchanged, or refused in one sentence."""

import json
import os
import shutil
import time
from pathlib import Path

import fake_uv
import pytest

from steelyard.environments import EnvironmentName, contents, external, external_environment
from steelyard.environments.folders import python_in, site_folders
from steelyard.environments.lock import parse_lock
from steelyard.errors import UserError

TINY = EnvironmentName("tiny")


@pytest.fixture(autouse=True)
def _only_tiny_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    header = {"framework": "tiny", "version": "1", "accelerator": "cpu", "import": "tinyframework"}
    header |= {"distribution": "tiny-framework", "python": "3.10 to 3.14"}
    lock = parse_lock("tiny", "".join(f"# {key} = {value}\n" for key, value in header.items()))
    monkeypatch.setattr(external, "read_locks", lambda: [lock])


@pytest.fixture
def mine(tmp_path: Path) -> Path:
    """The user's own environment with the tiny framework."""
    folder = tmp_path / "mine"
    fake_uv.venv.create(folder, symlinks=True)
    fake_uv.write_package(site_folders(folder)[0], "7.7", "")
    return python_in(folder)


def program(path: Path, text: str) -> Path:
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


def test_an_interpreter_with_the_framework_is_used_unchanged(mine: Path) -> None:
    environment = external_environment(TINY, mine)
    assert environment.external
    assert (environment.version, environment.python) == ("7.7", mine)
    assert environment.packages["tiny-framework"] == "7.7"
    assert environment.folder is None


def test_a_second_interpreter_of_a_framework_has_its_own_name(mine: Path) -> None:
    environment = external_environment(EnvironmentName("tiny", "mine"), mine)
    assert (environment.name, environment.framework) == ("tiny@mine", "tiny")


def test_an_unchanged_interpreter_is_not_imported_again_and_a_changed_one_is(mine: Path) -> None:
    external_environment(TINY, mine)
    package = site_folders(mine.parents[1])[0] / "tinyframework" / "__init__.py"
    stat = package.stat()
    assert external_environment(TINY, mine).version == "7.7"
    package.write_text("raise ImportError('gone')")
    assert stat.st_size != package.stat().st_size
    with pytest.raises(UserError, match="`import tinyframework` fails: ImportError: gone"):
        external_environment(TINY, mine)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("echo hello", "is not a working Python interpreter: it ended with code 0 and printed: nothing"),
        (
            "echo 'no such option' >&2; exit 2",
            "not a working Python interpreter.*code 2 and printed: no such option",
        ),
        ("kill -9 $$", "not a working Python interpreter: it was ended by signal 9"),
    ],
)
def test_a_program_that_is_no_python_is_refused(tmp_path: Path, text: str, sentence: str) -> None:
    with pytest.raises(UserError, match=sentence):
        external_environment(TINY, program(tmp_path / "python", text))


def test_an_old_python_is_refused_with_both_versions(tmp_path: Path) -> None:
    answer = {"python_version": "3.8.10", "folders": []}
    old = program(tmp_path / "python", f"echo 'STEELYARD-PROBE {json.dumps(answer)}'")
    with pytest.raises(UserError, match=r"is Python 3\.8\.10\. Name an interpreter of Python 3\.10 or newer"):
        external_environment(TINY, old)


def test_a_python_without_the_framework_is_refused_with_the_missing_module(tmp_path: Path) -> None:
    fake_uv.venv.create(tmp_path / "bare", symlinks=True)
    with pytest.raises(UserError, match="does not contain tiny: it has no module 'tinyframework'"):
        external_environment(TINY, python_in(tmp_path / "bare"))


def test_a_framework_that_kills_its_interpreter_is_refused(mine: Path) -> None:
    fake_uv.write_package(
        site_folders(mine.parents[1])[0], "7.7", "import os, signal; os.kill(os.getpid(), signal.SIGILL)"
    )
    with pytest.raises(UserError, match=r"`import tinyframework` crashes the interpreter: .* signal 4"):
        external_environment(TINY, mine)


def test_a_missing_file_and_a_folder_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="there is no such file"):
        external_environment(TINY, tmp_path / "absent")
    with pytest.raises(UserError, match=r"is a folder\. Name the interpreter in it"):
        external_environment(TINY, tmp_path)


def test_an_unknown_framework_suggests_the_closest(mine: Path) -> None:
    with pytest.raises(UserError, match=r"Did you mean 'tiny'\?"):
        external_environment(EnvironmentName("tinny"), mine)


def test_the_contents_of_an_interpreter_are_those_of_its_files(mine: Path, tmp_path: Path) -> None:
    site = site_folders(mine.parents[1])[0]
    before = external_environment(TINY, mine).contents
    kernels = site / "tinyframework" / "kernels.py"
    status = kernels.stat()
    original = kernels.read_bytes()
    kernels.write_bytes(original.upper())
    os.utime(kernels, ns=(status.st_atime_ns, status.st_mtime_ns))
    edited = external_environment(TINY, mine)
    assert (edited.version, len(edited.contents)) == ("7.7", 64)
    assert edited.contents != before
    kernels.write_bytes(original)
    assert external_environment(TINY, mine).contents == before


@pytest.mark.parametrize(
    "name", ["sitecustomize.py", "more.pth", "tinyframework/extra.so", "mine-1.0.dist-info/METADATA"]
)
def test_a_new_file_in_an_interpreter_is_another_content(mine: Path, name: str) -> None:
    before = external_environment(TINY, mine).contents
    stray = site_folders(mine.parents[1])[0] / name
    stray.parent.mkdir(exist_ok=True)
    stray.write_text("")
    assert external_environment(TINY, mine).contents != before


def test_an_equal_interpreter_elsewhere_has_the_same_contents_and_an_edited_one_has_others(
    mine: Path, tmp_path: Path
) -> None:
    other = tmp_path / "other" / "venv"
    fake_uv.venv.create(other, symlinks=True)
    site = site_folders(other)[0]
    shutil.copytree(site_folders(mine.parents[1])[0], site, dirs_exist_ok=True)
    (other / "pyvenv.cfg").write_text((mine.parents[1] / "pyvenv.cfg").read_text())
    assert external_environment(TINY, python_in(other)).contents == external_environment(TINY, mine).contents
    (site / "tinyframework" / "kernels.py").write_text("# edited")
    assert external_environment(TINY, python_in(other)).contents != external_environment(TINY, mine).contents


def test_a_framework_that_an_import_hook_finds_elsewhere_counts_as_contents(mine: Path, tmp_path: Path) -> None:
    site = site_folders(mine.parents[1])[0]
    shutil.move(site / "tinyframework", tmp_path / "source" / "tinyframework")
    finder = f"""
import sys, importlib.util
class Finder:
    def find_spec(name, path=None, target=None):
        if name == "tinyframework":
            return importlib.util.spec_from_file_location(name, {str(tmp_path / "source/tinyframework/__init__.py")!r})
sys.meta_path.append(Finder)
"""
    (site / "finder.py").write_text(finder)
    (site / "finder.pth").write_text("import finder\n")
    before = external_environment(TINY, mine).contents
    (tmp_path / "source" / "tinyframework" / "kernels.py").write_text("# edited")
    assert external_environment(TINY, mine).contents != before


def test_variables_that_say_where_libraries_are_count_as_contents(mine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LD_LIBRARY_PATH", raising=False)
    before = external_environment(TINY, mine).contents
    monkeypatch.setenv("LD_LIBRARY_PATH", "/elsewhere")
    assert external_environment(TINY, mine).contents != before


def test_an_import_that_hangs_is_ended_within_the_time_given(mine: Path) -> None:
    fake_uv.write_package(site_folders(mine.parents[1])[0], "7.7", "import time; time.sleep(600)")
    began = time.monotonic()
    with pytest.raises(
        UserError, match=r"`import tinyframework` hangs: it gave no result within 2 s\. Allow more time"
    ):
        external_environment(TINY, mine, limit_s=2.0)
    assert time.monotonic() - began < 60


def test_an_interpreter_with_too_many_files_is_refused(mine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(contents, "MOST_FILES", 3)
    with pytest.raises(
        UserError, match=r"more than 3 files, such as .*Name an interpreter that has an environment of its own"
    ):
        external_environment(TINY, mine)


def test_a_pipe_and_a_loop_of_folders_among_the_packages_end_in_time(mine: Path) -> None:
    site = site_folders(mine.parents[1])[0]
    os.mkfifo(site / "pipe.py")
    (site / "loop").symlink_to(site)
    (site / "nothing").symlink_to(site / "absent")
    assert external_environment(TINY, mine).contents
