"""Runs and certificates started from Python are those of the command line; a wrong option is refused as there."""

from __future__ import annotations

import shlex
import subprocess
import sys
from pathlib import Path

import pytest

import steelyard
from steelyard.cli import keywords, parser
from steelyard.cli.commands import selection
from steelyard.errors import UserError
from steelyard.library import certifying
from steelyard.plan.options import Options

WORKLOADS = Path(__file__).parents[1] / "workloads"


def options(**given):
    argv, asked = keywords.read("run", given)
    assert selection.options_of(parser.parser(argv).parse_args(argv)) == selection.options_of(asked)
    return selection.options_of(asked)


def test_keywords_are_the_options_of_the_command_line():
    assert options() == Options()
    given = options(
        study="first-look",
        workloads="resnet18:digits",
        frameworks=["pytorch", "jax"],
        minutes=3,
        seeds=[1, 2],
        rounds="3-5",
        threads=2,
        deterministic=True,
        certify=False,
        delta=0.05,
        external={"pytorch": sys.executable},
        set=["mels=8"],
    )
    assert given == Options(
        study="first-look",
        workloads=("resnet18:digits",),
        frameworks=("pytorch", "jax"),
        minutes=3.0,
        seeds=(1, 2),
        rounds="3-5",
        threads=(2,),
        deterministic=True,
        certify=False,
        delta=0.05,
        external={"pytorch": sys.executable},
        set=("mels=8",),
    )


def test_two_options_for_one_field_are_two_keywords():
    assert options(knobs=["layout=channels_first"]) == Options(knobs=("layout=channels_first",))
    assert options(accumulate="1,4") == Options(knobs=("accumulate=1,4",))


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"framework": "jax"}, "run() has no option 'framework'. Did you mean 'frameworks'"),
        ({"delta": 5}, "delta"),
        ({"seeds": "one"}, "one"),
        ({"optimizer_implementation": "fast"}, "fast"),
    ],
)
def test_a_wrong_option_is_one_sentence(given, message):
    with pytest.raises(UserError) as raised:
        keywords.read("run", given)
    assert message in str(raised.value)
    assert "\n" not in str(raised.value)


def test_importing_the_package_imports_nothing_else():
    code = "import sys; before = set(sys.modules); import steelyard; print(sorted(set(sys.modules) - before))"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert "numpy" not in loaded
    assert "'typing'" not in loaded, "importing it takes as long as starting the interpreter"
    assert "steelyard.library" not in loaded
    assert set(steelyard.__all__) <= set(dir(steelyard))
    for name in steelyard.__all__:
        assert getattr(steelyard, name).__doc__
    with pytest.raises(AttributeError, match="no attribute 'lode'"):
        steelyard.lode  # noqa: B018


def test_certify_of_a_folder_takes_all_its_presets(tmp_path):
    folder = tmp_path / "mine"
    (folder / "line").mkdir(parents=True)
    for path in (WORKLOADS / "line").iterdir():
        if path.is_file():
            (folder / "line" / path.name).write_bytes(path.read_bytes())
    found = certifying._with_folders({"workloads": str(folder), "frameworks": ["fake"]})
    assert found["workload_folders"] == [str(folder)]
    assert "line:tiny" in found["workloads"] or "line:small" in found["workloads"]
    assert all(name.startswith("line:") for name in found["workloads"])


def test_certificates_are_required():
    good, bad = {"passed": True, "sentence": "Same."}, {"passed": False, "sentence": "Weights differ."}
    assert steelyard.Certificates({"a": good}).require() is None
    with pytest.raises(UserError, match="b: Weights differ"):
        steelyard.Certificates({"a": good, "b": bad}).require()
    with pytest.raises(UserError, match="Nothing was certified"):
        steelyard.Certificates({}).require()
    assert shlex.split(repr(steelyard.Certificates({"b": bad})))[0] == "REJECTED"
