"""Packages that a side requires lie in an environment of their own, over the managed one, whose packages keep their versions."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib.metadata import distributions, version
from pathlib import Path
from types import SimpleNamespace

import pytest

from steelyard.environments import Environment, list_environments
from steelyard.errors import UserError
from steelyard.ports import requirements
from steelyard.ports.definition import SideSpec

UV_SAYS = """\
Resolved 3 packages in 12ms
Would download 1 package
Would install 2 packages
 + equinox==0.13.8
 + wadler-lindig==0.1.8 (from https://example.org/a.whl)
"""


@pytest.fixture
def environment(tmp_path, monkeypatch):
    """The environment of these tests stands for a managed one; no registry is asked."""
    monkeypatch.setenv("STEELYARD_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    python = ".".join(map(str, sys.version_info[:3]))
    packages = {each.metadata["Name"]: each.version for each in distributions() if each.metadata["Name"] != "steelyard"}
    folder = tmp_path / "jax-0.10.2-cpu-0123456789ab"
    folder.symlink_to(sys.prefix)
    return Environment("jax", "jax", "0.10.2", Path(sys.executable), python, packages, folder, "contents")


def side(*required):
    return SideSpec("second", "jax", requirements=required)


def test_what_uv_would_add_is_read_from_its_words():
    assert requirements.added(UV_SAYS) == {"equinox": "0.13.8", "wadler-lindig": "0.1.8"}


def test_an_environment_is_made_once_and_has_the_packages_of_the_managed_one(environment):
    said = []
    python = requirements.python_of(side("numpy"), environment, said.append)
    assert python != environment.python
    code = "import numpy, sys; print(numpy.__version__, sys.prefix)"
    done = subprocess.run([python, "-I", "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == [version("numpy"), str(python.parents[1])]
    marker = json.loads((python.parents[1] / requirements.MARKER).read_text(encoding="utf-8"))
    assert marker == {"packages": {}}
    assert requirements.python_of(side("numpy"), environment, said.append) == python
    (listed,) = list_environments()
    assert (listed.name, listed.folder) == ("jax@0.10.2+required", python.parents[1])
    assert said == ["Adding numpy to the environment of jax for side 'second'"]


@pytest.mark.parametrize("required", ["numpy<1.0", "no-such-package-at-all"])
def test_what_cannot_be_installed_is_one_sentence_and_leaves_nothing_that_looks_ready(environment, required):
    with pytest.raises(UserError) as caught:
        requirements.python_of(side(required), environment, lambda _: None)
    text = str(caught.value)
    assert text.startswith(f"The requirements of side 'second' ({required}) cannot be added to the environment of jax")
    assert "\n" not in text
    with pytest.raises(UserError):
        requirements.python_of(side(required), environment, lambda _: None)


def test_other_requirements_and_other_contents_have_other_environments(environment):
    other = Environment(**{**vars(environment), "contents": "changed"})
    names = [
        requirements._name(required, environment.folder, each)
        for required, each in ((("a", "b"), environment), (("a",), environment), (("a", "b"), other))
    ]
    assert len(set(names)) == 3
    assert requirements._name(("b", "a"), environment.folder, environment) == names[0]


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ('requirements = ["--pre"]', "'--pre' names no package"),
        ('requirements = ["./mine"]', "'./mine' names no package"),
        (
            'requirements = ["timm @ https://example.org/timm.whl"]',
            "'timm @ https://example.org/timm.whl' names no package",
        ),
        ('requirements = ["timm --pre"]', "'timm --pre' names no package"),
        ('requirements = ["numpy"]\nenv = "/usr/bin/python3"', "Give either 'env' or 'requirements'"),
        ('requirements = ["numpy"]', "fake has no managed environment"),
        ('requirements = "numpy"', "requirements"),
    ],
)
@pytest.mark.end_to_end
def test_requirements_that_cannot_be_are_refused(port, table, said):
    text = (port.folder / "port.toml").read_text(encoding="utf-8")
    port.write(
        "port.toml", text.replace('[sides.second]\nframework = "fake"', f'[sides.second]\nframework = "fake"\n{table}')
    )
    answer = port.check()
    assert (answer.code, answer.out) == (2, "")
    assert said in answer.err


def test_the_versions_of_required_packages_are_among_the_libraries(tmp_path, monkeypatch):
    from steelyard_worker.port import __main__ as program

    assert program.REQUIRED == requirements.MARKER
    (tmp_path / requirements.MARKER).write_text('{"packages": {"equinox": "0.13.8"}}', encoding="utf-8")
    monkeypatch.setattr(program.sys, "prefix", str(tmp_path))
    assert program._libraries()["equinox"] == "0.13.8"


@pytest.mark.parametrize(
    "text", ["torch.float32", "Float32", "<dtype: 'float32'>", "<class 'numpy.float32'>", "float32"]
)
def test_a_dtype_has_one_name_however_a_framework_writes_it(text):
    from steelyard_worker.port import __main__ as program

    assert program._dtype(SimpleNamespace(dtype=text)) == "float32"
