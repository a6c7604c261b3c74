"""The plugin that lists the tests that compute longest."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

TESTS = Path(__file__).resolve().parents[1]
BURNT_S = 0.5
BURNING = f"import time\nwhile time.process_time() < {BURNT_S}: pass"
FILE = f"""
import subprocess, sys, time

def test_nothing(): time.sleep({BURNT_S})

def test_grandchild():
    code = "import subprocess, sys; subprocess.run([sys.executable, '-c', sys.argv[1]], check=True)"
    subprocess.run([sys.executable, "-c", code, {BURNING!r}], check=True)

def test_left_running():
    global left
    left = subprocess.Popen([sys.executable, "-c", {BURNING!r} + "\\nprint(flush=True)\\ntime.sleep(600)"], stdout=subprocess.PIPE)
    left.stdout.readline()

def test_ends_it():
    left.kill()
    left.communicate()
"""


def listed(output: str, title: str) -> Iterator[tuple[str, float]]:
    """Yield the names under a title with their seconds, in their order."""
    section = output.partition(f" CPU seconds of {title} =")[2].partition("\n")[2].partition("\n=")[0]
    for used_s, name in re.findall(r"^ *([\d.]+)  (.*)$", section, re.MULTILINE):
        yield name, float(used_s)


def test_the_processes_of_a_test_count_also_those_that_go_on(tmp_path: Path) -> None:
    (tmp_path / "room").mkdir()
    (tmp_path / "room" / "test_one.py").write_text(FILE)
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    environ = {**os.environ, "PYTHONPATH": str(TESTS)}
    argv = [sys.executable, "-m", "pytest", "-p", "cpu_times", "-p", "no:cacheprovider", "room"]
    done = subprocess.run(argv, cwd=tmp_path, env=environ, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
    tests = {name.partition("::")[2]: used_s for name, used_s in listed(done.stdout, "tests")}
    assert [*tests][2:] and {*[*tests][:2]} == {"test_grandchild", "test_left_running"}
    assert min(tests["test_grandchild"], tests["test_left_running"]) >= BURNT_S
    ((file, of_file),) = listed(done.stdout, "files")
    ((room, of_room),) = listed(done.stdout, "rooms")
    assert (file, room, of_file) == ("room/test_one.py", "room", of_room)
    assert of_room >= 2 * BURNT_S
