"""The network.py of a user's workload may do anything: the command that asks it says so in one line and never takes part."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable

    from finished_runs import Steelyard

pytestmark = pytest.mark.end_to_end
LINE = Path(__file__).parents[1] / "workloads" / "line"
RETURN = "    return Network(parameters, inputs, features * classes)"
PLAN = ("run", "-w", "line", "-f", "fake", "--dry-run")


@pytest.fixture
def own(tmp_path: Path) -> Callable[..., str]:
    """Return a folder with a copy of the workload `line`: `first` stands before its network.py, `last` replaces its return."""

    def copy(first: str = "", last: str = RETURN) -> str:
        folder = shutil.copytree(LINE, tmp_path / "own" / "line", ignore=shutil.ignore_patterns("__pycache__"))
        text = (folder / "network.py").read_text()
        text = text.replace("from __future__ import annotations\n", f"from __future__ import annotations\n{first}\n")
        (folder / "network.py").write_text(text.replace(RETURN, last))
        return str(tmp_path / "own")

    return copy


def refused(done: subprocess.CompletedProcess[str]) -> str:
    """Return the one line with which a command was refused."""
    assert (done.returncode, done.stdout) == (2, "")
    (line,) = [each for each in done.stderr.splitlines() if each.startswith("steelyard: ")]
    return line


@pytest.mark.parametrize(
    ("first", "reason"),
    [
        ("import sys; sys.exit(0)", "it called sys.exit(0) (line 4)"),
        ("import os; os._exit(0)", "its process ended with exit code 0"),
        ("import os, signal; os.kill(os.getpid(), signal.SIGSEGV)", "its process was ended by SIGSEGV"),
        ("raise KeyboardInterrupt", "KeyboardInterrupt (line 4)"),
        ("raise RuntimeError('no\\nlicence')", "RuntimeError: no licence (line 4)"),
    ],
)
def test_a_network_that_ends_its_process_is_refused_in_one_line(
    steelyard: Steelyard, own: Callable[..., str], first: str, reason: str
) -> None:
    line = refused(steelyard(*PLAN, "--workloads", own(first)))
    assert "line/network.py failed for [presets.small.sizes]: " in line
    assert reason in line


@pytest.mark.parametrize(
    "asked",
    [
        ("list", "presets", "--json"),
        ("certify", "-w", "line", "-f", "fake", "-f", "dummy"),
        ("doctor", "--adapter", "fake"),
    ],
)
def test_no_command_ends_well_where_a_network_ends_its_process(
    steelyard: Steelyard, own: Callable[..., str], asked: tuple[str, ...]
) -> None:
    assert "it called sys.exit(0) (line 4)" in refused(steelyard(*asked, "--workloads", own("import sys; sys.exit(0)")))


def test_an_endless_network_is_ended_after_the_limit_of_silence(steelyard: Steelyard, own: Callable[..., str]) -> None:
    line = refused(steelyard(*PLAN, "--silence", "1", "--workloads", own("while True:\n    pass")))
    assert "it did not return within 1 s and was ended" in line


def test_what_a_network_prints_is_shown_and_is_not_in_the_result(steelyard: Steelyard, own: Callable[..., str]) -> None:
    printing = f"    import os\n    os.write(1, b'by the system\\n')\n    print('\\x1b[2Jby Python')\n{RETURN}"
    done = steelyard("list", "presets", "--workloads", own(last=printing), "--json")
    assert done.returncode == 0
    assert "line:small" in {each["preset"] for each in json.loads(done.stdout)}
    assert "line/network.py printed:" in done.stderr
    assert "    by the system\n    \\x1b[2Jby Python\n" in done.stderr


def test_a_network_that_prints_without_end_fills_no_disk(steelyard: Steelyard, own: Callable[..., str]) -> None:
    printing = "import sys\nfor _ in range(300):\n    sys.stdout.write('x' * 1_000_000 + '\\n')\nprint('the end')"
    done = steelyard("list", "presets", "--workloads", own(printing))
    assert done.returncode == 0
    assert len(done.stderr) < 10_000
    assert "the end" in done.stderr


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("import sys; sys.exit(0)", "it called sys.exit(0) (line "),
        ("import os; os._exit(0)", "its process ended with exit code 0"),
        ("raise LookupError('no words')", "LookupError: no words (line "),
    ],
)
def test_a_batch_that_cannot_be_drawn_is_refused_in_one_line(
    steelyard: Steelyard, own: Callable[..., str], body: str, reason: str
) -> None:
    draw = f"    def draw(generator, batch):\n        {body}\n    return Network(parameters, inputs, 24, draw=draw)"
    line = refused(steelyard(*PLAN, "--workloads", own(last=draw)))
    assert "line/network.py cannot draw a batch of 16 at these sizes: " in line
    assert reason in line


def test_user_code_runs_in_no_process_of_the_tool(
    steelyard: Steelyard, own: Callable[..., str], tmp_path: Path
) -> None:
    """Every process that imports network.py notes its program: it is a worker, or one that only describes networks."""
    noted = (
        f"import sys\nwith open({str(tmp_path / 'programs')!r}, 'a') as file:\n    file.write(repr(sys.argv) + '\\n')"
    )
    folder = own(noted)
    done = steelyard("run", "-w", "line", "-f", "fake", "--rounds", "2", "--no-certify", "--workloads", folder)
    assert done.returncode == 0
    programs = (tmp_path / "programs").read_text().splitlines()
    describing = [each for each in programs if each.startswith("['-c'")]
    workers = [each for each in programs if "steelyard_worker" in each]
    assert len(describing) == 1
    assert (len(workers), len(describing) + len(workers)) == (2, len(programs))


# What an implementation does when it is imported by its worker -> what is said of it, and the exit code.
HARM = {
    "removes its trial": (
        "import os, shutil; shutil.rmtree(os.getcwd())",
        "The process removed the folder of its trial",
        3,
    ),
    "removes all trials": (
        "import os, shutil; shutil.rmtree(os.path.dirname(os.getcwd()))",
        "The process removed the folder of its trial",
        1,  # that of the other contender, which waits for its turn, is among them
    ),
    "removes its run": (
        "import os, shutil; shutil.rmtree(os.path.dirname(os.path.dirname(os.getcwd())))",
        "run.json",
        2,
    ),
    "ends": ("import os; os._exit(0)", "The worker ended with exit code 0", 3),
}


def imports(folder: str, code: str) -> None:
    """Make the implementation for Dummy do something when its worker imports it."""
    path = Path(folder) / "line" / "dummy.py"
    text = path.read_text()
    assert "import numpy as np\n" in text
    path.write_text(text.replace("import numpy as np\n", f"import numpy as np\n{code}\n"))


@pytest.mark.parametrize("harm", HARM)
def test_an_implementation_that_harms_the_record_is_named_in_a_sentence(
    steelyard: Steelyard, own: Callable[..., str], harm: str
) -> None:
    folder = own()
    code, sentence, ends = HARM[harm]
    imports(folder, code)
    settings = ("-w", "line", "-f", "fake", "-f", "dummy", "--rounds", "2", "--no-certify", "--plain")
    done = steelyard("run", *settings, "--workloads", folder)
    assert sentence in " ".join(done.stderr.split())
    assert done.returncode == ends, done.stderr


def test_processes_that_an_implementation_leaves_are_ended_and_the_table_says_so(
    steelyard: Steelyard, own: Callable[..., str]
) -> None:
    folder = own()
    leaves = (
        "import subprocess, sys\n"
        "subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'], start_new_session=True)"
    )
    imports(folder, leaves)
    settings = ("-w", "line", "-f", "fake", "-f", "dummy", "--rounds", "2", "--no-certify", "--plain")
    done = steelyard("run", *settings, "--workloads", folder)
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("dummy on line: It left 1 process behind (") >= 2, "once in each attempt at a round"
    assert "Its process left other processes behind." in " ".join(done.stdout.split())
