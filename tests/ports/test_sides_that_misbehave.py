"""A side that cannot be asked: one sentence that names the side and the line, exit code 2, and no process left behind."""

from __future__ import annotations

import psutil
import pytest

pytestmark = pytest.mark.end_to_end

CASES = {
    "an error in model()": (
        "def model():\n    raise ValueError('no checkpoint')\n",
        "line 2: ValueError: no checkpoint",
    ),
    "an error at import": ("import no_such_library\n\ndef model(): pass\n", "No module named 'no_such_library'"),
    "a syntax error": ("def model(:\n", "invalid syntax"),
    "no model()": ("def network(): pass\n", "has no function model()"),
    "nothing returned": ("def model(): pass\n", "model() returned a NoneType"),
    "exit": ("import sys\n\ndef model():\n    sys.exit(0)\n", "it called sys.exit(0)"),
    "an end without a word": ("import os\n\ndef model():\n    print('out of luck')\n    os._exit(0)\n", "out of luck"),
    "another shape": (
        "from numpy_model import *\n\ndef model():\n    return NumpyModel([dense('a', 7, 3, 0)], lambda call, tokens: call('a', tokens))\n",
        "The forward pass failed",
    ),
    "a generator": (
        "from numpy_model import *\n\ndef model():\n    return NumpyModel([dense('a', 7, 3, 0)], lambda call, tokens: (x for x in tokens))\n",
        "returned a generator without a tensor",
    ),
}


@pytest.mark.parametrize("text, said", CASES.values(), ids=CASES)
def test_one_sentence_names_the_side_and_the_line(port, text, said):
    port.write("second.py", text)
    answer = port.check()
    assert answer.code == 2
    assert "'second'" in answer.err.splitlines()[-1]
    assert said in answer.err
    assert "Traceback" not in answer.err
    assert answer.out == ""


def test_a_side_that_hangs_is_stopped_with_its_children(port):
    port.write(
        "second.py",
        "import subprocess, time\n\ndef model():\n    subprocess.Popen(['sleep', '98765'])\n    time.sleep(1000)\n",
    )
    answer = port.check("--silence", "20")  # the other side must answer in this time on a busy machine, too
    assert answer.code == 2
    assert "Side 'second' did not answer within 20 s" in answer.err
    assert not [each for each in psutil.process_iter(["cmdline"]) if "98765" in (each.info["cmdline"] or [])]


def test_what_a_side_prints_is_no_answer(port):
    port.write(
        "second.py", "print('hello')\n" + (port.folder / "second.py").read_text() + "\nimport os\nos.write(1, b'raw')\n"
    )
    assert port.check().code == 0


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("[inputs.tokens]", "[inputs.tokens]\nfile = 'a.npy'", "give either 'shape' or 'file'"),
        ('framework = "fake"', 'framework = "torhc"', "is no framework that steelyard knows"),
        ("[sides.second]", "[sides.third]", "there is no file third.py"),
        ("high = 20", "high = 0", "'high' must be above 'low'"),
        ("int64", "int63", "The dtype 'int63'"),
    ],
)
def test_a_mistake_in_port_toml_is_named(port, old, new, said):
    text = (port.folder / "port.toml").read_text(encoding="utf-8")
    port.write("port.toml", text.replace(old, new, 1) if "inputs" not in old else text.replace(old, new))
    answer = port.check()
    assert (answer.code, answer.out) == (2, "")
    assert said in answer.err


def test_a_record_whose_page_is_a_link_writes_nothing_outside_its_folder(port, tmp_path, steelyard_port):
    folder, other = tmp_path / "record", tmp_path / "other.html"
    port.check("--output", str(folder))
    other.write_text("mine", encoding="utf-8")
    (folder / "report.html").unlink()
    (folder / "report.html").symlink_to(other)
    steelyard_port("show", str(folder))
    assert other.read_text(encoding="utf-8") == "mine"


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('"format": 1', '"format": 9', "has format 9"),
        ('"compared": [', '"compared": [7, ', "is damaged"),
        ("{", "", "is damaged"),
    ],
)
def test_a_damaged_record_is_refused_in_one_sentence(port, tmp_path, steelyard_port, old, new, said):
    folder = tmp_path / "record"
    port.check("--output", str(folder))
    path = folder / "port.json"
    path.write_text(path.read_text(encoding="utf-8").replace(old, new, 1), encoding="utf-8")
    answer = steelyard_port("show", str(folder))
    assert (answer.code, answer.out) == (2, "")
    assert said in answer.err
    assert len(answer.err.splitlines()) == 1


def test_a_hostile_name_is_shown_as_text(port, tmp_path, steelyard_port):
    folder = tmp_path / "record"
    port.check("--output", str(folder))
    path = folder / "port.json"
    path.write_text(
        path.read_text(encoding="utf-8").replace('"up.kernel"', '"<script>alert(1)</script>"'), encoding="utf-8"
    )
    steelyard_port("show", str(folder))
    page = (folder / "report.html").read_text(encoding="utf-8")
    assert "<script>alert" not in page
    assert "&lt;script&gt;alert(1)" in page
