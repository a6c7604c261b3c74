"""Errors in spec.toml and study files are reported with file, line and key."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from steelyard.catalog import frameworks, workloads
from steelyard.errors import UserError
from steelyard.files import settings_files
from steelyard.plan import studies

LINE = Path(__file__).resolve().parent.parent / "workloads" / "line"

SPEC = """\
name = "line"
title = "Line"
family = "dense"
summary = "One dense layer."
source = "our own"
unit = "points"
metric = "accuracy"

[optimizers.sgd]
name = "sgd"
learning_rate = 0.1
momentum = 0.9

[presets.small]
summary = "8 features"
optimizer = "sgd"
[presets.small.sizes]
features = 8
classes = 3
batch = 16
[presets.small.data]
name = "digits"
"""
WITHOUT_PRESETS = SPEC.partition("[presets")[0]
HEAD = SPEC.partition("[optimizers")[0]

STUDY = """\
name = "mine"
title = "Mine"
question = "Which?"
version = 1

[[cells]]
workloads = ["line:small"]
frameworks = ["fake"]
train_steps = 10

[[cells]]
workloads = ["line"]
batches = [8, 16]
"""


def _with(text: str, old: str, new: str) -> str:
    assert text.count(old) == 1, old
    return text.replace(old, new)


def _error_message(path: Path, text: str, parse: object) -> str:
    path.write_text(text)
    with pytest.raises(UserError) as raised:
        parse(path)  # type: ignore[operator]
    return str(raised.value)


def test_the_specification_that_these_tests_modify_is_valid(tmp_path: Path) -> None:
    (tmp_path / "spec.toml").write_text(SPEC)
    found = workloads.parse(tmp_path / "spec.toml")
    assert found.preset("small").sizes["batch"] == 16
    assert found.optimizers["sgd"].momentum == 0.9


@pytest.mark.parametrize(
    ("old", "new", "line", "message"),
    [
        ('title = "Line"', 'title = "Line', 2, "not valid TOML"),
        ('title = "Line"', "title = 3", 2, "'title' must be a string, but it is 3."),
        ('title = "Line"', 'titel = "Line"', 2, "the file has an unknown key 'titel'. Did you mean 'title'?"),
        ('unit = "points"\n', "", 1, "the file lacks the key 'unit'. Add it."),
        ('family = "dense"', 'family = "dense"\nfamily = "dense"', 4, "not valid TOML"),
        ("learning_rate = 0.1", "", 9, "[optimizers.sgd] lacks the key 'learning_rate'. Add it."),
        ("learning_rate = 0.1", "learning_rate = 'fast'", 11, "'learning_rate' must be a number, but it is 'fast'."),
        ("learning_rate = 0.1", "learning_rate = true", 11, "'learning_rate' must be a number, but it is True."),
        ("learning_rate = 0.1", "learning_rate = nan", 11, "'learning_rate' must be a finite number, but it is nan."),
        ("learning_rate = 0.1", "learning_rate = -inf", 11, "'learning_rate' must be a finite number, but it is -inf."),
        ("learning_rate = 0.1", "learning_rate = 1e999", 11, "'learning_rate' must be a finite number, but it is inf."),
        ("learning_rate = 0.1", "learning_rate = 0.0", 11, "'learning_rate' must be above 0, but it is 0.0."),
        ("learning_rate = 0.1", "learning_rate = -1", 11, "'learning_rate' must be above 0, but it is -1."),
        ("momentum = 0.9", "momentum = 1.0", 12, "'momentum' must be at least 0 and below 1, but it is 1.0."),
        ("momentum = 0.9", "momentum = -0.9", 12, "'momentum' must be at least 0 and below 1, but it is -0.9."),
        ("momentum = 0.9", "beta1 = 1.5", 12, "'beta1' must be at least 0 and below 1, but it is 1.5."),
        ("momentum = 0.9", "beta2 = -0.1", 12, "'beta2' must be at least 0 and below 1, but it is -0.1."),
        ("momentum = 0.9", "epsilon = -1e-8", 12, "'epsilon' must be at least 0, but it is -1e-08."),
        ("momentum = 0.9", "weight_decay = -0.1", 12, "'weight_decay' must be at least 0, but it is -0.1."),
        ("momentum = 0.9", "clip = -1", 12, "'clip' must be at least 0, but it is -1."),
        (
            "momentum = 0.9",
            "momentun = 0.9",
            12,
            "[optimizers.sgd] has an unknown key 'momentun'. Did you mean 'momentum'?",
        ),
        ("momentum = 0.9", "nesterov = 1", 12, "'nesterov' must be true or false, but it is 1."),
        ("momentum = 0.9", "decay = 'head'", 12, "'decay' must be a list of strings, but it is 'head'."),
        ("momentum = 0.9", "decay = [1]", 12, "'decay' must be a list of strings, but it is 1."),
        (
            "momentum = 0.9",
            "beta1 = 0.9",
            12,
            "'beta1' has no effect in [optimizers.sgd]: sgd does not use it. Remove it.",
        ),
        (
            "momentum = 0.9",
            "epsilon = 1e-8",
            12,
            "'epsilon' has no effect in [optimizers.sgd]: sgd does not use it. Remove it.",
        ),
        (
            'name = "sgd"\n',
            'name = "adam"\n',
            12,
            "'momentum' has no effect in [optimizers.sgd]: adam does not use it. Remove it.",
        ),
        (
            'name = "sgd"\n',
            'name = "lamb"\nnesterov = false\n',
            11,
            "'nesterov' has no effect in [optimizers.sgd]: lamb does not",
        ),
        (
            "momentum = 0.9",
            "nesterov = true",
            12,
            "'nesterov' has no effect in [optimizers.sgd]: there is no momentum.",
        ),
        (
            "momentum = 0.9",
            "weight_decay = 0.01",
            12,
            "'weight_decay' has no effect in [optimizers.sgd]: nothing decays. Set",
        ),
        (
            "momentum = 0.9",
            'decay = ["dense"]',
            12,
            "'decay' has no effect in [optimizers.sgd]: there is no weight decay. Set",
        ),
        (
            'optimizer = "sgd"',
            'optimizer = "sdg"',
            16,
            "[presets.small] names an unknown optimizer 'sdg'. Did you mean 'sgd'?",
        ),
        ('optimizer = "sgd"', "optimizer = 1", 16, "'optimizer' must be a string, but it is 1."),
        (
            'optimizer = "sgd"',
            'optimizer = "sgd"\nlearning_rate = "x"',
            17,
            "'learning_rate' must be a number, but it is 'x'.",
        ),
        (
            'optimizer = "sgd"',
            'optimizer = "sgd"\nlearning_rate = 0',
            17,
            "'learning_rate' must be above 0, but it is 0.",
        ),
        ("features = 8", "features = inf", 18, "'features' must be a finite number, but it is inf."),
        (
            "features = 8",
            "features = 9_223_372_036_854_775_808",
            18,
            "'features' is too large. It must be from -9,223,372,036,854",
        ),
        ("features = 8", "features = 0x1" + 5000 * "0", 18, "'features' is too large."),
        ('name = "digits"', 'name = "digits"\nmean = [0.5, nan]', 23, "'mean' must be a finite number, but it is nan."),
        (
            'name = "digits"',
            "name = 'synthetic'",
            21,
            "is synthetic and needs 'samples', the number of training samples, at least 1.",
        ),
        (
            'name = "digits"',
            "name = 'synthetic'\nsamples = -5",
            23,
            "needs 'samples', the number of training samples, at least 1.",
        ),
        (
            'name = "digits"',
            "name = 'synthetic'\nsamples = true",
            23,
            "needs 'samples', the number of training samples, at least 1.",
        ),
        ('optimizer = "sgd"', 'optimizer = "sgd"\nspeed = 3', 17, "[presets.small] has an unknown key 'speed'."),
        ("batch = 16", "batch = 0", 20, "[presets.small.sizes] needs 'batch', a whole number of at least 1."),
        ("batch = 16", "batch = true", 20, "[presets.small.sizes] needs 'batch', a whole number of at least 1."),
        ("batch = 16", "", 17, "[presets.small.sizes] needs 'batch', a whole number of at least 1."),
        ('name = "digits"', "name = 3", 22, "[presets.small.data] needs 'name', the name of a data set."),
        ('name = "digits"', "limit = 3", 21, "[presets.small.data] needs 'name', the name of a data set."),
        (
            '[presets.small.data]\nname = "digits"',
            "[unsupported]\nfake = 3",
            22,
            "'fake' must be a string, but it is 3.",
        ),
    ],
)
def test_an_error_in_a_workload_is_reported_with_file_line_and_key(
    old: str, new: str, line: int, message: str, tmp_path: Path
) -> None:
    found = _error_message(tmp_path / "spec.toml", _with(SPEC, old, new), workloads.parse)
    assert str(tmp_path / "spec.toml") in found
    assert message in found
    assert re.search(rf"line {line}\b", found), found


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "lacks the key 'family'"),
        (WITHOUT_PRESETS, "lacks the key 'presets'"),
        (WITHOUT_PRESETS + "[presets]\n", "[presets] is empty. Add at least one."),
        (HEAD + "optimizers = 3\n[presets]\n", "'optimizers' must be a table of tables, but it is 3."),
        (HEAD + "presets = 'x'\n[optimizers.a]\n", "'presets' must be a table of tables"),
        (WITHOUT_PRESETS + "[presets]\nsmall = 3\n", "'small' must be a table, but it is 3."),
        (
            WITHOUT_PRESETS + "[presets.a]\nsummary = ''\noptimizer = 'sgd'\nsizes = 3\n",
            "'sizes' must be a table, but it is 3.",
        ),
        (HEAD + "[optimizers]\nsgd = 'x'\n[presets]\n", "is empty"),
        (SPEC.replace("[presets.small.data]", "[presets.small]"), "not valid TOML"),
    ],
)
def test_missing_or_misplaced_tables_are_reported(text: str, message: str, tmp_path: Path) -> None:
    found = _error_message(tmp_path / "spec.toml", text, workloads.parse)
    assert message in found
    assert "spec.toml" in found


def test_a_binary_file_is_rejected(tmp_path: Path) -> None:
    (tmp_path / "spec.toml").write_bytes(b"\xff\xfe\x00name")
    with pytest.raises(UserError, match=r"spec\.toml cannot be read"):
        workloads.parse(tmp_path / "spec.toml")


@pytest.mark.parametrize(
    ("spec", "network", "message"),
    [
        (("features = 8\n", ""), None, "spec.toml, line 17: [presets.small.sizes] lacks the key 'features'. Add it."),
        (
            ("features = 8", "features = 'many'"),
            None,
            "line 17: [presets.small.sizes] gives 'head.weight' the shape (3, 'many')",
        ),
        (("features = 8", "features = 0"), None, "line 17: [presets.small.sizes] gives 'head.weight' the shape (3, 0)"),
        (("features = 8", "features = {}"), None, "network.py failed for [presets.small.sizes]: TypeError"),
        (
            None,
            "def describe(sizes):\n    return 1 / 0\n",
            "network.py failed for [presets.small.sizes]: ZeroDivisionError",
        ),
        (None, "def describe(sizes:\n", "network.py failed for [presets.small.sizes]: SyntaxError"),
        (None, "", "network.py failed for [presets.small.sizes]: AttributeError"),
    ],
)
def test_an_error_in_the_description_of_a_network_is_reported(
    spec: tuple[str, str] | None, network: str | None, message: str, tmp_path: Path
) -> None:
    folder = shutil.copytree(LINE, tmp_path / "line", ignore=shutil.ignore_patterns("__pycache__"))
    (folder / "spec.toml").write_text(_with(SPEC, *spec) if spec else SPEC)
    if network is not None:
        (folder / "network.py").write_text(network)
    found = workloads.parse(folder / "spec.toml")
    with pytest.raises(UserError) as raised:
        found.network(found.preset("small"))
    assert message in str(raised.value)
    assert str(folder) in str(raised.value)


@pytest.mark.parametrize(
    ("features", "message"),
    [
        (None, "network.py failed for the sizes {"),
        ("many", "gives 'head.weight' the shape (3, 'many'); sizes must be whole numbers from 1."),
        (0, "gives 'head.weight' the shape (3, 0); sizes must be whole numbers from 1."),
    ],
)
def test_impossible_sizes_of_a_record_are_reported(features: object, message: str) -> None:
    with pytest.raises(UserError, match=re.escape(message)):
        workloads.described(LINE, {"features": features, "classes": 3, "batch": 16})


def test_a_folder_without_workloads_is_rejected(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"no spec\.toml was found"):
        workloads.find((tmp_path,))
    with pytest.raises(UserError, match="is not a folder"):
        workloads.find((tmp_path / "missing",))


@pytest.mark.parametrize(
    ("old", "new", "line", "message"),
    [
        ("version = 1", "version = '1'", 4, "'version' must be a whole number, but it is '1'."),
        ("version = 1", "version = true", 4, "'version' must be a whole number, but it is True."),
        (
            'workloads = ["line:small"]',
            "workloads = 'line'",
            7,
            "'workloads' must be a list of strings, but it is 'line'.",
        ),
        ('workloads = ["line:small"]', "workloads = [1]", 7, "'workloads' must be a list of strings, but it is 1."),
        ('workloads = ["line:small"]', "workloads = []", 7, "'workloads' is empty"),
        ('workloads = ["line:small"]', "", 6, "table 1 of [[cells]] lacks the key 'workloads'. Add it."),
        (
            "train_steps = 10",
            "train_stesp = 10",
            9,
            "table 1 of [[cells]] has an unknown key 'train_stesp'. Did you mean 'train_steps'?",
        ),
        ("train_steps = 10", "train_steps = 1.5", 9, "'train_steps' must be a whole number, but it is 1.5."),
        ("batches = [8, 16]", "batches = [8, 16.5]", 13, "'batches' must be a list of whole numbers, but it is 16.5."),
        ("version = 1", "version = 0", 4, "'version' must be at least 1, but it is 0."),
        ("version = 1", "version = 1\nminutes = nan", 5, "'minutes' must be a finite number, but it is nan."),
        ("version = 1", "version = 1\nminutes = -1", 5, "'minutes' must be at least 0, but it is -1."),
        ("version = 1", "version = 1\nprofiles = -1", 5, "'profiles' must be from 0 to 20, but it is -1."),
        ("version = 1", "version = 1\nprofiles = 21", 5, "'profiles' must be from 0 to 20, but it is 21."),
        (
            "version = 1",
            "version = 1\nthresholds = [0.9, inf]",
            5,
            "'thresholds' must be a finite number, but it is inf.",
        ),
        (
            "version = 1",
            "version = 1\n[sizes.quick]\nsummary = ''\nminutes = -5",
            7,
            "'minutes' must be at least 0, but it is -5.",
        ),
        (
            "version = 1",
            "version = 1\nsizes.quick = { summary = '', minutes = -5 }",
            5,
            "'minutes' must be at least 0, but it is -5.",
        ),
        ("train_steps = 10", "train_steps = -5", 9, "'train_steps' must be from 0 to 1,000,000,000, but it is -5."),
        ("train_steps = 10", "evaluation_limit = -2", 9, "'evaluation_limit' must be at least 0, but it is -2."),
        ("batches = [8, 16]", "batches = [8, 0]", 13, "'batches' must be from 1 to 10,000,000, but one is 0."),
        (
            "batches = [8, 16]",
            "threads = [1, -3]",
            13,
            "'threads' must be from 0 to 4096 (0: each framework's own default), but one is -3.",
        ),
        ("batches = [8, 16]", "loader_workers = [-1]", 13, "'loader_workers' must be from 0 to 1024, but one is -1."),
        (
            "batches = [8, 16]",
            "seeds = [4294967296]",
            13,
            "'seeds' must be from 0 to 4,294,967,295, but one is 4294967296.",
        ),
        ("batches = [8, 16]", "sizes = ['Q']", 13, "'sizes' names 'Q', which is no size of this study."),
    ],
)
def test_an_error_in_a_study_is_reported_with_file_line_and_key(
    old: str, new: str, line: int, message: str, tmp_path: Path
) -> None:
    found = _error_message(tmp_path / "mine.toml", _with(STUDY, old, new), lambda path: studies.study(str(path)))
    assert f"{tmp_path / 'mine.toml'}, line {line}: {message}" in found


def test_a_number_of_thousands_of_digits_is_refused(tmp_path: Path) -> None:
    assert "mine.toml cannot be read (" in _error_message(
        tmp_path / "mine.toml", STUDY.replace("= 10", "= 1" + 5000 * "0"), lambda path: studies.study(str(path))
    )


@pytest.mark.parametrize("opened", ["x = " + "[" * 5000, "x" + ".x" * 5000 + " = 1", "x = " + "{x=" * 5000])
def test_a_file_that_is_nested_too_deeply_is_refused(tmp_path: Path, opened: str) -> None:
    assert _error_message(tmp_path / "mine.toml", f"{STUDY}\n{opened}\n", lambda path: studies.study(str(path))) in (
        f"{tmp_path / 'mine.toml'}: lists or tables are nested too deeply. Write fewer of them inside each other.",
    )


def test_the_included_studies_are_valid() -> None:
    assert "first-look" in studies.all_studies()


def test_the_line_of_a_key_is_found_in_its_own_table(tmp_path: Path) -> None:
    path = tmp_path / "a.toml"
    path.write_text('name = "x"\n[a]\nname = "y"\n[a.b]\n"name" = 1\n[c]\nother.name = 2\n')
    assert [settings_files.line_of(path, "name", where) for where in ("", "a", "a.b")] == [1, 3, 5]
    assert settings_files.line_of(path, "b", "a") == 4
    assert settings_files.line_of(path, "missing", "c") == 6
    assert settings_files.line_of(path, "missing", "d") == 1
    path.write_text('name = "x"\nlist = [\n]\n[a]\nb = { c = 1, "d" = { e = 2 } }\n')
    assert settings_files.line_of(path, "c", "a.b") == 5
    assert settings_files.line_of(path, "e", "a.b.d") == 5
    assert settings_files.line_of(path, "f", "list[1]") == 2


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('title = "Fake"', 'titel = "Fake"', "has an unknown key 'titel'. Did you mean 'title'?"),
        ('import = "numpy"\n', "", "lacks the key 'import'. Add it."),
        ("reference = 1", "reference = -1", "'reference' must be at least 0, but it is -1."),
        ("[devices]", "[start_seconds]\nscripted = 0\n[devices]", "line 14: 'scripted' must be above 0, but it is 0."),
        (
            "[knobs.fault]",
            "[knobs.mine]\ndefault = nan\n[knobs.fault]",
            "'default' must be a finite number, but it is nan.",
        ),
    ],
)
def test_a_wrong_key_or_number_of_a_framework_is_reported(old: str, new: str, message: str, tmp_path: Path) -> None:
    text = (frameworks.WORKER / "frameworks" / "fake" / "framework.toml").read_text()
    (tmp_path / "framework.toml").write_text(_with(text, old, new))
    with pytest.raises(UserError) as raised:
        frameworks._read(tmp_path)
    assert message in str(raised.value)


USED = {
    "sgd": 'momentum = 0.9\nnesterov = true\nweight_decay = 0.1\ndecay = ["dense", "conv"]\nclip = 1.0\n',
    "adam": 'beta1 = 0.8\nbeta2 = 0.9\nepsilon = 1e-6\nweight_decay = 0.1\ndecay = ["dense", "conv"]\nclip = 1.0\n',
}


@pytest.mark.parametrize("rule", [*USED, "adamw", "lamb"])
def test_all_constants_of_a_rule_are_accepted_and_some_kinds_of_decay_may_be_missing(rule: str, tmp_path: Path) -> None:
    folder = shutil.copytree(LINE, tmp_path / "line")
    head, _, rest = SPEC.partition("[optimizers.sgd]")
    table = f'[optimizers.sgd]\nname = "{rule}"\nlearning_rate = 0.1\n{USED.get(rule, USED["adam"])}\n'
    (folder / "spec.toml").write_text(f"{head}{table}[presets{rest.partition('[presets')[2]}")
    workload = workloads.parse(folder / "spec.toml")
    assert workload.optimizer(workload.presets["small"]).decay == ("head.weight",)


@pytest.mark.parametrize(
    ("kind", "frozen", "why"),
    [
        ("conv", False, "The weight decay (conv) has no effect on line:small: it has no tensor of these kinds."),
        (
            "dense",
            True,
            "The weight decay (dense) has no effect on line:small: all its tensors of these kinds are frozen.",
        ),
    ],
)
def test_a_weight_decay_of_no_trained_tensor_is_refused(kind: str, frozen: bool, why: str, tmp_path: Path) -> None:
    folder = shutil.copytree(LINE, tmp_path / "line")
    (folder / "spec.toml").write_text(_with(SPEC, "momentum = 0.9", f'weight_decay = 0.1\ndecay = ["{kind}"]'))
    code = (folder / "network.py").read_text()
    if frozen:
        code = re.sub(r'("dense", "[a-z_]+")', r"\1, trainable=False", code)
    (folder / "network.py").write_text(code)
    workload = workloads.parse(folder / "spec.toml")
    with pytest.raises(UserError, match=re.escape(why)):
        workload.optimizer(workload.presets["small"])


@pytest.fixture
def one_broken(tmp_path: Path) -> Path:
    """A folder with a workload, and another whose spec.toml has a mistake."""
    for name in ("good", "bad"):
        shutil.copytree(Path(__file__).parents[1] / "workloads" / "line", tmp_path / name)
        spec = tmp_path / name / "spec.toml"
        spec.write_text(spec.read_text().replace('name = "line"', f'name = "{name}"', 1))
    (tmp_path / "bad" / "spec.toml").write_text("name = [")
    return tmp_path


def test_a_broken_specification_does_not_keep_others_from_being_used(
    one_broken: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for _ in range(2):
        found = workloads.find([one_broken], asked=("good:small",))
        assert "good" in found
        assert "bad" not in found
    (said,) = capsys.readouterr().err.splitlines()
    assert said.startswith(f"steelyard: {one_broken / 'bad' / 'spec.toml'}: not valid TOML: ")
    assert said.endswith(f"The workload in {one_broken / 'bad'} is left out until then.")


@pytest.mark.parametrize("asked", ["bad", "bad:tiny"])
def test_a_broken_specification_is_refused_if_it_is_asked_for(one_broken: Path, asked: str) -> None:
    with pytest.raises(UserError, match=r"bad/spec\.toml: not valid TOML"):
        workloads.find([one_broken], asked=(asked,))
    with pytest.raises(UserError, match=r"bad/spec\.toml: not valid TOML"):
        workloads.find([one_broken / "bad"])
