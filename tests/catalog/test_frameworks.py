"""A framework.toml that is wrong is refused with its file, its line and its key."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from steelyard.catalog import frameworks
from steelyard.errors import UserError
from steelyard_worker.case import NO_OPTIMIZER, Optimizer, Settings

if TYPE_CHECKING:
    from collections.abc import Iterator

RIGHT = """\
title = "Mine"
import = "numpy"
distribution = "numpy"
default_mode = "plain"
reference = 4
maintained = true

[modes]
plain = "As it is"

[devices]
cpu = ""

[precisions]
float32 = ""
float64 = ""

[unsupported]
cuda = "NumPy computes on the CPU."

[start_seconds]
plain = 1.5

[knobs.order]
default = "rows"
values = ["rows", "columns"]
help = "Order of the loops"

[optimizers.adam]
form = "canonical"
correction = "float64"
"""


@pytest.fixture(autouse=True)
def built_in_only() -> Iterator[None]:
    """Forget the folders of a test."""
    yield
    frameworks.use(())


def written(root: Path, text: str = RIGHT, name: str = "mine") -> Path:
    """Write one framework.toml below `root` and return `root`."""
    (root / name).mkdir(parents=True)
    (root / name / "framework.toml").write_text(text)
    return root


def test_the_file_that_the_mistakes_are_made_in_is_right(tmp_path: Path) -> None:
    frameworks.use([written(tmp_path)])
    found = frameworks.framework("mine")
    assert (found.module, found.reference, found.knobs["order"].values) == ("numpy", 4, ("rows", "columns"))
    assert found.user_folder == str(tmp_path / "mine")
    assert frameworks.framework("fake").user_folder == ""


@pytest.mark.parametrize(
    ("old", "new", "line", "sentence"),
    [
        ("maintained", "maintaned", 6, "the file has an unknown key 'maintaned'. Did you mean 'maintained'?"),
        ("maintained = true", "maintained = 'no'", 6, "'maintained' must be true or false, but it is 'no'."),
        ("reference = 4", "reference = true", 5, "'reference' must be a whole number, but it is True."),
        (
            "reference = 4",
            "reference = 4\nreference_knobs = { order = 'row' }",
            6,
            "'order' must be one of 'rows', 'columns', but it is 'row'.",
        ),
        (
            "reference = 4",
            "reference = 4\nreference_knobs = { odrer = 'rows' }",
            6,
            "'odrer' must be one of 'order', but it is 'odrer'.",
        ),
        ('title = "Mine"\n', "", 1, "the file lacks the key 'title'. Add it."),
        ('"plain"', '"plian"', 4, "'default_mode' must be one of 'plain', but it is 'plian'."),
        ('plain = "As it is"', "plain = 1", 9, "'plain' must be a string, but it is 1."),
        ('float64 = ""\n', "", 5, "a 'reference' needs float64, but [precisions] does not list it."),
        ("[unsupported]", "[unsuported]", 18, "the file has an unknown key 'unsuported'. Did you mean 'unsupported'?"),
        ("plain = 1.5", "plain = 'long'", 22, "'plain' must be a number, but it is 'long'."),
        ("plain = 1.5", "plian = 1.5", 22, "'plian' must be one of 'plain', but it is 'plian'."),
        ('"rows"\n', '"row"\n', 25, "'default' must be one of 'rows', 'columns', but it is 'row'."),
        ('"columns"]', "2]", 26, "'values' must be of the type of 'default', but one is 2."),
        ("values = [", "value = [", 26, "[knobs.order] has an unknown key 'value'. Did you mean 'values'?"),
        ('help = "Order of the loops"', "help = []", 27, "'help' must be a string, but it is []."),
        ('"canonical"', '"other"', 30, "'form' must be one of 'canonical', 'epsilon-hat', but it is 'other'."),
        ('correction = "float64"', "", 29, "[optimizers.adam] lacks the key 'correction'. Add it."),
    ],
)
def test_a_mistake_is_refused_with_file_line_and_key(
    old: str, new: str, line: int, sentence: str, tmp_path: Path
) -> None:
    assert old in RIGHT
    root = written(tmp_path, RIGHT.replace(old, new, 1))
    where = re.escape(f"{tmp_path / 'mine' / 'framework.toml'}, line {line}: ")
    with pytest.raises(UserError, match=where + re.escape(sentence)):
        frameworks.use([root])
    assert "mine" not in frameworks.all_frameworks(), "a refused folder is not used"


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("fake", "a framework named 'fake' is built in already"),
        *((name, f"'{name}' cannot name a framework") for name in ("-own", "my.own", "My-own", "2own")),
    ],
)
def test_a_name_that_is_taken_or_does_not_fit_is_refused(name: str, sentence: str, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=re.escape(sentence)):
        frameworks.use([written(tmp_path, name=name)])


@pytest.mark.parametrize("name", ["my-own", "my_own", "own-2"])
def test_hyphens_and_underscores_are_parts_of_a_name(name: str, tmp_path: Path) -> None:
    frameworks.use([written(tmp_path, name=name)])
    assert frameworks.framework(name).user_folder


def test_two_folders_with_the_same_name_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="'mine' is in another folder already"):
        frameworks.use([written(tmp_path / "a"), written(tmp_path / "b")])


def test_a_folder_without_a_framework_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"holds no framework: there is no framework\.toml"):
        frameworks.use([tmp_path])
    with pytest.raises(UserError, match="is not a folder"):
        frameworks.use([tmp_path / "absent"])


def test_a_change_of_any_source_file_changes_the_hash_of_a_folder(tmp_path: Path) -> None:
    root = written(tmp_path)
    before = frameworks.files_hash(root / "mine")
    (root / "mine" / "workloads").mkdir()
    (root / "mine" / "workloads" / "line.py").write_text("x = 1\n")
    assert frameworks.files_hash(root / "mine") != before


CONDITIONS = """
[knobs.lstm]
default = "loop"
values = ["loop", "fused"]
help = "How an LSTM runs"
matters_for = ["lstm_w_ih"]
[knobs.lstm.unsupported]
cell = "there is none"
"fused on cpu" = "there is no kernel"
"loop in traced" = "nothing is traced"
"fused with clip" = "it cannot clip"
"loop in float64" = "it has no double"
[knobs.lstm.float32_only]
"fused on cuda" = "the kernel is single"
[knobs.lstm.another_algorithm]
"loop with adam" = "only some rows are updated"
[knobs.lstm.wrong_on_purpose]
"loop with sgd" = "its gates are swapped"
"""


@pytest.mark.parametrize(
    ("settings", "rule", "expected"),
    [
        (Settings("plain", knobs={"lstm": "loop"}), Optimizer("sgd", 0.1), ""),
        (Settings("plain", knobs={"lstm": "cell"}), Optimizer("sgd", 0.1), "there is none"),
        (Settings("plain", knobs={"lstm": "fused"}), Optimizer("sgd", 0.1), "there is no kernel"),
        (Settings("plain", "cuda", knobs={"lstm": "fused"}), Optimizer("sgd", 0.1), ""),
        (Settings("plain", "cuda", knobs={"lstm": "fused"}), Optimizer("sgd", 0.1, clip=1.0), "it cannot clip"),
        (Settings("traced"), Optimizer("sgd", 0.1), "nothing is traced"),
        (Settings("plain", precision="float64"), Optimizer("sgd", 0.1), "it has no double"),
    ],
)
def test_a_value_of_a_knob_is_refused_under_its_conditions(
    tmp_path: Path, settings: Settings, rule: Optimizer, expected: str
) -> None:
    frameworks.use([written(tmp_path, RIGHT + CONDITIONS)])
    value = settings.knobs.get("lstm", "loop")
    sentence = f"Mine cannot run with lstm = {value}: {expected}." if expected else ""
    assert frameworks.framework("mine").obstacle(settings, rule) == sentence


@pytest.mark.parametrize(
    ("settings", "kinds", "expected"),
    [
        (Settings("plain", "cuda", knobs={"lstm": "fused"}), {"lstm_w_ih", "dense"}, False),
        (Settings("plain", "cuda", knobs={"lstm": "fused"}), {"dense"}, True),
        (Settings("plain", "cuda", knobs={"lstm": "loop"}), {"lstm_w_ih"}, True),
        (Settings("plain", "cpu", knobs={"lstm": "fused"}), {"lstm_w_ih"}, True),
    ],
)
def test_a_kernel_without_float64_leaves_its_networks_without(
    tmp_path: Path, settings: Settings, kinds: set[str], expected: bool
) -> None:
    frameworks.use([written(tmp_path, RIGHT + CONDITIONS)])
    assert frameworks.framework("mine").has_float64(settings, Optimizer("sgd", 0.1), kinds) is expected


def test_a_framework_without_float64_has_none(tmp_path: Path) -> None:
    frameworks.use([written(tmp_path, RIGHT.replace('float64 = ""\n', "").replace("reference = 4\n", ""))])
    assert not frameworks.framework("mine").has_float64(Settings("plain"), Optimizer("sgd", 0.1), set())


def test_what_is_computed_otherwise_on_purpose_is_named_for_its_optimizer_only(tmp_path: Path) -> None:
    frameworks.use([written(tmp_path, RIGHT + CONDITIONS)])
    known, settings = frameworks.framework("mine"), Settings("plain")
    assert known.otherwise(settings, Optimizer("adam", 0.1)) == ("another algorithm", "only some rows are updated")
    assert known.otherwise(settings, Optimizer("sgd", 0.1)) == ("wrong on purpose", "its gates are swapped")
    assert known.otherwise(settings, Optimizer("adamw", 0.1)) == ("", "")


def test_a_mode_is_refused_with_a_part_of_an_optimizer(tmp_path: Path) -> None:
    own = '[unsupported]\n"plain with decay" = "nothing decays"\n"plain with none" = "it only trains"\n'
    frameworks.use([written(tmp_path, RIGHT.replace("[unsupported]\n", own))])
    known, decayed = frameworks.framework("mine"), Optimizer("sgd", 0.1, weight_decay=0.1, decay=("p",))
    assert known.obstacle(Settings("plain"), decayed) == "Mine cannot run in mode plain here: nothing decays."
    assert known.obstacle(Settings("plain"), NO_OPTIMIZER) == "Mine cannot run in mode plain here: it only trains."
    assert known.obstacle(Settings("traced"), decayed) == known.obstacle(Settings("plain"), Optimizer("sgd", 0.1)) == ""


def test_a_condition_on_a_value_that_does_not_exist_is_refused(tmp_path: Path) -> None:
    wrong = CONDITIONS.replace("fused on cpu", "fusd on cpu")
    with pytest.raises(UserError, match=r"line \d+: 'fusd on cpu' must be one of 'loop', 'fused', but it is 'fusd'"):
        frameworks.use([written(tmp_path, RIGHT + wrong)])
