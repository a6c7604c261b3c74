"""Several processes create the same thing at once, and one of them is killed."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from environment_doubles import FakeUv

from steelyard.environments import EnvironmentSpec

# The stand-in for uv takes its place in these processes, too.
ENSURE = """
import sys
from pathlib import Path
from steelyard.environments import ensure, fetch_package, uv
from steelyard.environments.lock import parse_lock
from steelyard.environments.spec import EnvironmentSpec
uv.find_uv = lambda: Path({program!r})
spec = EnvironmentSpec("tiny", parse_lock("tiny-1.2.3-cpu", {lock!r}), {python!r})
"""
CREATE = (
    ENSURE + "found = ensure(spec, lambda event: print(event.stage, event.sentence, flush=True))\nprint(found.python)\n"
)
FETCH = ENSURE + "print(fetch_package('tiny-framework==1.2.3', Path({target!r})))\n"


def start(script: str, fake_uv: FakeUv, tiny: EnvironmentSpec, target: Path) -> "subprocess.Popen[str]":
    program = str(fake_uv.folder / "uv")
    text = script.format(program=program, lock=tiny.lock.text, python=tiny.python_version, target=str(target))
    return subprocess.Popen(
        [sys.executable, "-c", text],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )


@pytest.mark.parametrize(
    ("script", "command"), [(CREATE, "venv"), (FETCH, "pip install")], ids=["environment", "package"]
)
def test_four_processes_on_an_empty_cache_create_it_once(
    fake_uv: FakeUv, tiny: EnvironmentSpec, tmp_path: Path, script: str, command: str
) -> None:
    fake_uv.behave("slow")
    started = [start(script, fake_uv, tiny, tmp_path / "package") for _ in range(4)]
    printed = [process.communicate(timeout=120) for process in started]
    assert [process.returncode for process in started] == [0] * 4, printed
    assert len({output.splitlines()[-1] for output, _ in printed}) == 1
    assert sum("waiting" in output + errors for output, errors in printed) == 3
    assert fake_uv.count(command) == 1


@pytest.mark.parametrize(
    ("script", "command"), [(CREATE, "venv"), (FETCH, "pip install")], ids=["environment", "package"]
)
def test_after_a_killed_creator_the_next_process_begins_at_once(
    fake_uv: FakeUv, tiny: EnvironmentSpec, tmp_path: Path, script: str, command: str
) -> None:
    fake_uv.behave("hangs")
    first = start(script, fake_uv, tiny, tmp_path / "package")
    limit = time.monotonic() + 60
    while not fake_uv.count("pip install") and time.monotonic() < limit:
        time.sleep(0.05)
    os.kill(first.pid, signal.SIGKILL)
    first.communicate()
    fake_uv.behave("")
    second = start(script, fake_uv, tiny, tmp_path / "package")
    output, errors = second.communicate(timeout=120)
    os.killpg(first.pid, signal.SIGKILL)  # the stand-in for uv, which still sleeps
    assert second.returncode == 0, errors
    assert "waiting" not in output + errors
    assert fake_uv.count(command) == 2
