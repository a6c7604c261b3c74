"""Rules for the source code, each with a test that a planted violation is found."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import source_rules

from steelyard.catalog import frameworks
from steelyard.certificates.sources import NOT_COMPUTING
from steelyard.environments import read_locks

if TYPE_CHECKING:
    from collections.abc import Iterator

SOURCES = Path(frameworks.__file__).resolve().parents[2]
ORCHESTRATOR, WORKER = SOURCES / "steelyard", SOURCES / "steelyard_worker"
# The modules of the worker that the orchestrator may use: the protocol between them, and descriptions without computation.
SHARED = {
    "steelyard_worker",
    "steelyard_worker.case",
    "steelyard_worker.distances",
    "steelyard_worker.job_kinds",
    "steelyard_worker.network",
    "steelyard_worker.port.side_functions",
    "steelyard_worker.protocol",
    "steelyard_worker.records",
    "steelyard_worker.rules",
    "steelyard_worker.sizes",
    "steelyard_worker.strategy",
    "steelyard_worker.strategy_kinds",
    "steelyard_worker.accumulation",
    "steelyard_worker.tensors",
    "steelyard_worker.variables",
    "steelyard_worker.weight_names",
}
# Files in which the name of a framework is no dependence on it. An entry that is no longer needed fails the test.
EXCEPTIONS = {
    "descriptions.py": "the examples of the help",
    "embedding.py": "the name of a data set",
}

# Import every module of a package, then print the deep-learning frameworks that were imported.
IMPORT_ALL = f"""
import importlib, pkgutil, sys
package = importlib.import_module(sys.argv[1])
for found in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
    if not found.name.endswith("__main__"):
        importlib.import_module(found.name)
print(*sorted({set(source_rules.FRAMEWORK_MODULES)!r} & sys.modules.keys()))
"""


def _imported_frameworks(package: str, *folders: Path) -> list[str]:
    env = {"PYTHONPATH": ":".join(map(str, folders)), "PATH": ""}
    done = subprocess.run(
        [sys.executable, "-c", IMPORT_ALL, package], capture_output=True, text=True, env=env, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


def test_the_orchestrator_imports_no_framework_when_it_runs() -> None:
    assert _imported_frameworks("steelyard", SOURCES) == []


def test_an_import_of_a_framework_at_run_time_is_found(tmp_path: Path) -> None:
    (tmp_path / "torch.py").write_text("")
    (tmp_path / "planted").mkdir()
    (tmp_path / "planted" / "__init__.py").write_text("")
    (tmp_path / "planted" / "deep.py").write_text("import torch\n")
    assert _imported_frameworks("planted", tmp_path) == ["torch"]


def test_the_orchestrator_has_no_import_of_a_framework() -> None:
    assert [found for path in ORCHESTRATOR.rglob("*.py") for found in source_rules.framework_imports(path)] == []


@pytest.mark.parametrize(
    "planted",
    [
        "import torch",
        "import torch.nn as nn",
        "from jax import numpy",
        "def late():\n    import mxnet",
        "try:\n    import keras\nexcept E: pass",
        "__import__('optax')",
        "import importlib\nimportlib.import_module('tensorflow.keras')",
    ],
)
def test_every_form_of_import_of_a_framework_is_found(planted: str, tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text(planted)
    assert len(source_rules.framework_imports(tmp_path / "a.py")) == 1


def _names() -> frozenset[str]:
    format_of_files = {"onnx"}
    return (frozenset(frameworks.listed()) | source_rules.FRAMEWORK_MODULES) - format_of_files


def _neutral_files() -> Iterator[Path]:
    yield from sorted(ORCHESTRATOR.rglob("*.py"))
    yield from sorted(WORKER.glob("*.py"))
    yield from (WORKER / "frameworks" / "__init__.py", WORKER / "frameworks" / "base.py")
    yield from sorted(WORKER.glob("workloads/*/network.py"))


def test_no_framework_is_named_in_code_outside_its_own_files() -> None:
    found = {path: source_rules.names_in_code(path, _names()) for path in _neutral_files()}
    assert [each for path, each in found.items() if each and path.name not in EXCEPTIONS] == []
    assert {path.name for path, each in found.items() if each} == EXCEPTIONS.keys(), (
        "Remove the exceptions that are no longer needed."
    )


@pytest.mark.parametrize(
    "planted",
    [
        "if name == 'pytorch': pass",
        "torch_threads = 2",
        "x.use_mxnet()",
        "def for_jax(): pass",
        "f(tensorflow=1)",
        "from a import keras_layer",
        "message = f'{x} is not MindSpore'",
        "class Jax: pass",
        "match x:\n    case 'horovod': pass",
    ],
)
def test_a_frameworks_name_is_found_in_identifiers_and_strings(planted: str, tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text(planted)
    assert source_rules.names_in_code(tmp_path / "a.py", _names())


@pytest.mark.parametrize(
    "permitted",
    ['"""As in torch."""', "def f():\n    '''Like jax.'''", "x = 1  # as in mxnet", "ajax = 'flaxen torches'"],
)
def test_comments_and_docstrings_and_longer_words_may_contain_a_name(permitted: str, tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text(permitted)
    assert source_rules.names_in_code(tmp_path / "a.py", _names()) == []


def test_the_orchestrator_uses_only_the_shared_modules_of_the_worker() -> None:
    used = {
        module
        for path in ORCHESTRATOR.rglob("*.py")
        for _, module in source_rules.imported(path.read_text(encoding="utf-8"))
        if module.startswith("steelyard_worker")
    }
    assert used <= SHARED


# What a user's own model may be an object of: file of `port/objects` -> libraries.
OBJECTS = {
    "torch_module.py": {"torch"},
    "keras_model.py": {"keras", "tensorflow"},
    "tf_module.py": {"tensorflow"},
    "mindspore_cell.py": {"mindspore"},
    "gluon_block.py": {"mxnet"},
    "onnx_model.py": {"onnx", "onnxruntime", "google"},
    "onnx_nodes.py": {"onnx"},
    "onnx_float64.py": {"onnx"},
    "jax_tensors.py": {"jax"},
    "jax_models.py": {"jax", "flax"},
    "nnx_module.py": {"jax", "flax"},
    "equinox_module.py": {"jax", "equinox"},
    "haiku_functions.py": {"jax", "haiku"},
}
TEMPLATES = {"pytorch.py": {"torch"}, "tensorflow.py": {"keras"}, "jax.py": {"jax"}}


def _allowed(path: Path) -> frozenset[str]:
    """Return what a worker's file may import: NumPy, and for a framework's own files what its lock files install."""
    parts = path.relative_to(WORKER).parts
    if parts[0] == "port":
        own = {"objects": OBJECTS, "template": TEMPLATES}.get(parts[1], {}).get(path.name, set())
        return frozenset({"numpy", "steelyard_worker", *own})
    name = (
        parts[1]
        if parts[0] == "frameworks" and len(parts) > 2
        else path.stem
        if parts[0] in ("workloads", "template", "update_rule")
        else ""
    )
    known = frameworks.all_frameworks().get(name)
    modules = {known.module.partition(".")[0]} if known else set()
    locks = " ".join(lock.text for lock in read_locks() if lock.framework == name)
    return frozenset(
        {"numpy", "steelyard_worker"}
        | modules
        | {module for module in source_rules.FRAMEWORK_MODULES if re.search(rf"^(# built = )?{module}==", locks, re.M)}
    )


def test_a_workers_file_imports_only_the_standard_library_numpy_and_its_own_framework() -> None:
    assert [
        found for path in WORKER.rglob("*.py") for found in source_rules.foreign_imports(path, _allowed(path))
    ] == []


@pytest.mark.parametrize(
    "planted", ["import rich", "from steelyard import errors", "import torch", "def f():\n    from scipy import stats"]
)
def test_a_foreign_import_in_the_worker_is_found(planted: str, tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text(planted)
    assert len(source_rules.foreign_imports(tmp_path / "a.py", frozenset({"numpy", "steelyard_worker"}))) == 1


def test_what_certifies_uses_no_file_that_is_left_out_of_a_certificates_key() -> None:
    """A change of such a file leaves certificates in the cache valid, so it may not change what they certify."""
    used = source_rules.reached(WORKER, "certify.py")
    assert used >= {"certify.py", "tensors.py", "batches.py", "case.py", "protocol.py", "ranks.py"}
    assert used & NOT_COMPUTING == set()
    assert all((WORKER / name).is_file() for name in NOT_COMPUTING)


@pytest.mark.parametrize(
    "planted",
    [
        "from steelyard_worker import measure",
        "import steelyard_worker.measure",
        "def late():\n    from steelyard_worker.measure import Block",
        "from .measure import Block",
        "from . import measure",
        "from steelyard_worker import other",
    ],
)
def test_a_file_that_certifying_uses_is_found(planted: str, tmp_path: Path) -> None:
    package = tmp_path / "steelyard_worker"
    package.mkdir()
    (package / "certify.py").write_text(f"import numpy\nfrom steelyard_worker import VERSION, tensors\n{planted}\n")
    (package / "other.py").write_text("import steelyard_worker.measure\nimport steelyard_worker.certify\n")
    (package / "tensors.py").write_text(
        "if TYPE_CHECKING:\n    from steelyard_worker import steady\nelse:\n    import math\n"
    )
    for name in ("measure.py", "steady.py"):
        (package / name).write_text("")
    others = {"other.py"} if "other" in planted else set()
    assert source_rules.reached(package, "certify.py") == {"certify.py", "tensors.py", "measure.py"} | others


def test_the_worker_is_written_for_python_3_10() -> None:
    for path in WORKER.rglob("*.py"):
        ast.parse(path.read_text(encoding="utf-8"), feature_version=(3, 10))
        modules = {module for _, module in source_rules.imported(path.read_text(encoding="utf-8"))}
        assert "tomllib" not in modules, f"{path}: Python 3.10 has no tomllib"


def test_newer_syntax_is_found() -> None:
    with pytest.raises(SyntaxError):
        ast.parse("try:\n    pass\nexcept* ValueError:\n    pass", feature_version=(3, 10))


def _imported_at_start(source: str) -> set[str]:
    """Return the top-level modules that a piece of code imports, without the standard library."""
    script = f"import sys; before = set(sys.modules)\n{source}\nprint(*(set(sys.modules) - before))"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, env={"PYTHONPATH": str(SOURCES)}, check=True
    )
    return {name.partition(".")[0] for name in done.stdout.splitlines()[-1].split()} - sys.stdlib_module_names


def test_startup_and_argument_parsing_import_only_the_standard_library() -> None:
    assert _imported_at_start("from steelyard.cli import main as cli; cli.main(['--help'])") == {"steelyard"}
    source = "from steelyard.cli.parser import parser; parser(['run', '-w', 'x']).parse_args(['run', '-w', 'x'])"
    assert _imported_at_start(source) == {"steelyard"}
    assert "numpy" in _imported_at_start("import steelyard.stages")


def test_help_does_not_import_argparse_which_would_take_most_of_its_time() -> None:
    script = (
        "import sys; from steelyard.cli import main as cli; cli.main(['--help']); sys.exit('argparse' in sys.modules)"
    )
    assert (
        subprocess.run(
            [sys.executable, "-c", script], capture_output=True, env={"PYTHONPATH": str(SOURCES)}, check=False
        ).returncode
        == 0
    )


# The files that import a network.py: the process that describes those of the user, and the check of update rules, whose network
# is steelyard's own.
IMPORTING = {"catalog/describing_process.py", "certificates/rule_plan.py"}


def _imports_networks(source: str) -> bool:
    """Return whether a text calls what imports the code of a workload."""
    functions = r"(describe|load|load_implementation)"
    return bool(
        re.search(rf"\bnetworks?\.{functions}\(", source)
        or re.search(rf"from steelyard_worker\.network import [^\n]*\b{functions}\b", source)
        or re.search(r"\b(spec_from_file_location|exec_module|runpy)\b", source)
    )


def test_the_orchestrator_imports_no_code_of_the_user() -> None:
    found = {
        path.relative_to(ORCHESTRATOR).as_posix()
        for path in ORCHESTRATOR.rglob("*.py")
        if _imports_networks(path.read_text(encoding="utf-8"))
    }
    assert found == IMPORTING


@pytest.mark.parametrize(
    "planted",
    [
        "networks.describe(folder, sizes)",
        "from steelyard_worker.network import Network, load",
        "importlib.util.spec_from_file_location(name, path)",
    ],
)
def test_an_import_of_the_users_code_is_found(planted: str) -> None:
    assert _imports_networks(planted)
