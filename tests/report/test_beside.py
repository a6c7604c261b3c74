"""Real published entries beside invented measurements: which pairs they mean, and the judgement on each."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from recorded import unstated

from steelyard.analysis.matching import OVER_BATCHES, MeasuredContender, MeasuredGroup, beside, count
from steelyard.analysis.published_rows import setting
from steelyard.files import settings_files
from steelyard.published import gathering
from steelyard.published.study_tables import Side, StudyTable
from steelyard.statistics.claims import MAXIMUM, MEAN, Claim
from steelyard.statistics.intervals import Ratio

FOLDER = Path(__file__).parents[1] / "published" / "study_tables"


def tables(study):
    """Return what a study is held against, as if the documents stated no settings; test_other_settings.py is about them."""
    path = FOLDER / f"{study}.toml"
    return unstated(gathering.gather(study, gathering.read(path, settings_files.read(path)["published"]))).tables


def contender(title, framework, mode, reason="", workers=0, **knobs):
    settings = {name: str(value) for name, value in knobs.items()} | {"workers": str(workers)}
    return MeasuredContender(title, title, framework, mode, settings, f"{title}'s", reason)


def group(cell, speeds, width=0.02, task="training", batch=64, optimizer="adam", name="", missing=None):
    """Return a group of sides with these speeds; intervals reach `width` to either side."""
    known = {each.key: speed for each, speed in speeds}

    def ratio(a, b):
        if any(each.reason for each, _ in speeds if each.key in (a, b)):
            return None
        value = known[a] / known[b]
        return Ratio(value, value * (1 - width), value * (1 + width), 5)

    return MeasuredGroup(name or cell, cell, task, batch, optimizer, [each for each, _ in speeds], ratio, missing or {})


def judged(rows):
    return [(row.sides, row.judgement) for row in rows]


MINDSPORE, PYTORCH = contender("MindSpore", "mindspore", "graph"), contender("PyTorch", "pytorch", "eager")


def test_ratios_of_a_whole_training():
    times, claim = tables("mindspore-training")
    groups = [
        group("googlenet:cifar10", [(MINDSPORE, 1.20), (PYTORCH, 1)], batch=16),
        group("lstm-imdb:mindspore", [(MINDSPORE, 0.7), (PYTORCH, 1)]),
        group("bert:cn-wiki", [(MINDSPORE, 1.3), (PYTORCH, 1)], name="bert:tiny"),
    ]
    rows = beside(times, groups)
    assert [row.judgement for row in rows] == ["same size", "opposite order", "same order"]
    assert {row.sides for row in rows} == {("MindSpore", "PyTorch")}
    assert [row.group for row in rows] == ["googlenet:cifar10", "lstm-imdb:mindspore", "bert:tiny"]
    assert rows[0].values == ("MindSpore's", "PyTorch's")
    assert [row.judgement for row in beside(claim, groups)] == ["same order", "opposite order", "same order"]
    assert {word: number for word, number in count(rows).items() if number} == {
        "same size": 1,
        "same order": 1,
        "opposite order": 1,
    }


def test_a_mode_that_is_not_meant_is_left_out():
    times, _ = tables("mindspore-training")
    others = [
        (contender("PyTorch, compiled", "pytorch", "compiled"), 9),
        (contender("MindSpore, pynative", "mindspore", "pynative"), 9),
    ]
    rows = beside(times, [group("googlenet:cifar10", [(MINDSPORE, 1.2), (PYTORCH, 1), *others])])
    assert judged(rows[:1]) == [(("MindSpore", "PyTorch"), "same size")]
    assert sum(row.judgement is not None for row in rows) == 1


def test_every_setting_of_the_same_mode_has_a_row():
    """TensorFlow against PyTorch in both memory layouts: the document does not say which it means."""
    (speed, *_) = tables("single-gpu-speed")
    layouts = [
        (contender(f"PyTorch, {each}", "pytorch", "eager", layout=each), 1 / (1 + place))
        for place, each in enumerate(("last", "first"))
    ]
    rows = beside(
        speed, [group("resnet50:imagenet", [(contender("TensorFlow", "tensorflow", "graph"), 1.05), *layouts], batch=8)]
    )
    assert judged(rows[:2]) == [
        (("TensorFlow", "PyTorch, last"), "same size"),
        (("TensorFlow", "PyTorch, first"), "same order"),
    ]
    assert rows[2].reason == "vgg16:imagenet is not in this run."


def test_v100_and_p100_disagree_on_bert_so_one_of_them_has_the_opposite_order():
    p100, v100, overall = tables("single-gpu-speed")
    groups = [
        group("bert:wikitext", [(contender("TensorFlow", "tensorflow", "graph"), 1.04), (PYTORCH, 1)], width=0.015)
    ]
    assert [row.judgement for table in (p100, v100, overall) for row in beside(table, groups) if row.judgement] == [
        "opposite order",
        "same order",
        "same size",  # 1.024 to 1.056 is not near 1.023
    ]


def lstm_contenders(framework, **speeds):
    return [
        (contender(f"{framework} {name}", framework, "eager", lstm=name, layout="x"), speed)
        for name, speed in speeds.items()
    ]


def test_kernels_are_compared_within_a_framework():
    kernels, cited = tables("lstm-kernels")
    sides = lstm_contenders("tensorflow", loop=1, cell=1.05, fused=2.7) + lstm_contenders(
        "pytorch", loop=1, cell=1.34, fused=3
    )
    rows = beside(kernels, [group("deepspeech2:librispeech", sides, name="deepspeech2:tiny")])
    assert judged(row for row in rows if row.judgement) == [
        (("tensorflow fused", "tensorflow loop"), "same size"),
        (("pytorch fused", "pytorch loop"), "same order"),
        (("tensorflow cell", "tensorflow loop"), "same order"),
        (("pytorch cell", "pytorch loop"), "same size"),
    ]
    assert beside(cited, []) == ()


def test_a_setting_that_is_not_named_must_be_equal_on_both_sides():
    kernels, _ = tables("lstm-kernels")
    sides = [
        (contender("fused x", "pytorch", "eager", lstm="fused", layout="x"), 4.14),
        (contender("loop x", "pytorch", "eager", lstm="loop", layout="x"), 1),
        (contender("fused y", "pytorch", "eager", lstm="fused", layout="y"), 9),
        (contender("fused compiled", "pytorch", "compiled", lstm="fused", layout="x"), 9),
    ]
    rows = beside(kernels, [group("deepspeech2:librispeech", sides)])
    assert judged(row for row in rows if row.judgement) == [(("fused x", "loop x"), "same size")]


def test_epoch_times_of_transfer_learning():
    times, utilisation, ahead = tables("transfer-cifar10")
    sides = [(contender("TensorFlow", "tensorflow", "graph"), 1), (PYTORCH, 1.2)]
    groups = [
        group("vgg16:cifar10-tl", sides),
        group("resnet50:cifar10-tl", [(sides[0][0], 1.06), (PYTORCH, 1)], width=0.02),
    ]
    assert [row.judgement for row in beside(times, groups)] == ["opposite order", "same size"]
    assert [row.judgement for row in beside(ahead, groups)] == ["opposite order", "same order"]
    assert beside(utilisation, groups) == ()


def sweep_arms(**speeds):
    """Return sides named framework, sparse or dense, and workers, such as pytorch_dense_0."""
    found = []
    for name, speed in speeds.items():
        framework, kind, workers = name.split("_")
        mode = "imperative" if framework == "mxnet" else "eager"
        found.append((contender(name, framework, mode, workers=int(workers), sparse=kind == "sparse"), speed))
    return found


def test_loader_workers_and_sparse_gradients():
    speeds = {
        "pytorch_dense_0": 1.1,
        "mxnet_dense_0": 1.0,
        "mxnet_dense_1": 1.5,
        "mxnet_dense_2": 2.2,
        "pytorch_dense_2": 1.1,
        "pytorch_sparse_2": 1.9,
        "pytorch_dense_1": 1.1,
    }
    groups = [
        group("lstm-imdb:keras", sweep_arms(**speeds), batch=1024, width=0.015),
        group("lstm-imdb:keras", sweep_arms(pytorch_dense_0=0.9, mxnet_dense_0=1.0), batch=64),
    ]
    no_workers, workers, sparse, optimum = tables("lstm-imdb-sweep")
    assert [(row.batch, row.judgement) for row in beside(no_workers, groups)] == [
        (1024, "same size"),
        (64, "opposite order"),
    ]
    gains = {(row.statement.first.words, row.judgement or row.reason) for row in beside(workers, groups)}
    assert gains == {
        ("mxnet 4 workers", "'mxnet 4 workers' is not in this run."),
        ("pytorch 4 workers", "'pytorch 4 workers' is not in this run."),
        ("mxnet 2 workers", "same size"),  # 2.2 / 1.5 = 1.467 +- 1.5 % against 1.516
        ("pytorch 2 workers", "same size"),  # "does not noticeably": within 2 % on both sides
    }
    assert judged(beside(sparse, groups)) == [(("pytorch_sparse_2", "pytorch_dense_2"), "same order")]
    assert judged(beside(optimum, groups)) == [
        (("mxnet_dense_2", "pytorch_dense_2"), "same size"),
        (("mxnet_dense_2", "pytorch_sparse_2"), "same size"),
    ]


def test_the_published_batch_is_preferred_and_any_other_is_shown_with_both_numbers():
    *_, optimum = tables("lstm-imdb-sweep")
    speeds = {"mxnet_dense_2": 2.0, "pytorch_dense_2": 1.0}
    small, large = (group("lstm-imdb:keras", sweep_arms(**speeds), batch=batch) for batch in (64, 1024))
    assert [row.batch for row in beside(optimum, [small, large]) if row.judgement] == [1024]
    (row,) = [row for row in beside(optimum, [small]) if row.judgement]
    assert (row.batch, row.statement.batch) == (64, 1024)


def test_static_graphs_are_compared_in_every_group_that_has_both():
    static, declarative, scope = tables("static-dynamic")
    pynative = contender("MindSpore, pynative", "mindspore", "pynative")
    groups = [
        group("resnet18:digits", [(MINDSPORE, 2), (pynative, 1)]),
        group("tacotron2:ljspeech", [(MINDSPORE, 1), (pynative, 1.01)]),
        group("bert:wikitext", [(PYTORCH, 1)]),
    ]
    assert [(row.group, row.judgement) for row in beside(static, groups)] == [
        ("resnet18:digits", "same order"),
        ("tacotron2:ljspeech", "open"),
    ]
    (missing,) = beside(declarative, groups)
    assert missing.reason == "'mxnet declarative' is not in this run."
    assert beside(scope, groups) == ()


def test_what_was_not_measured_has_its_reason():
    times, _ = tables("mindspore-training")
    uncertified = contender("MindSpore", "mindspore", "graph", "MindSpore is not certified.")
    groups = [
        group("googlenet:cifar10", [(uncertified, 1.2), (PYTORCH, 1)]),
        group("lstm-imdb:mindspore", [(PYTORCH, 1)], missing={"mindspore": "MindSpore has no device 'cuda'."}),
        group("bert:cn-wiki", [(MINDSPORE, 2), (PYTORCH, 1)], task="inference"),
    ]
    rows = beside(times, groups)
    assert [row.reason for row in rows] == [
        "MindSpore is not certified.",
        "MindSpore has no device 'cuda'.",
        "bert:cn-wiki is not in this run.",
    ]
    assert not any(row.judgement or row.measured for row in rows)


def test_a_cell_that_this_machine_cannot_measure_has_its_reason():
    times, _ = tables("mindspore-training")
    rows = beside(times, [], {"bert:cn-wiki": "BERT needs 27 GB of memory."})
    assert [row.reason for row in rows] == [
        "googlenet:cifar10 is not in this run.",
        "lstm-imdb:mindspore is not in this run.",
        "BERT needs 27 GB of memory.",
    ]


def on_link(framework, mode, link):
    return contender(f"{framework} {link}", framework, mode, strategy="ddp", devices=2, link=link)


def test_ranks_are_compared_over_the_same_link_unless_the_document_compares_links():
    """Two hosts with a faster and a slower link, and one host."""
    where = {"1gbit": 1.0, "10gbit": 1.4, "": 2.0}
    sides = [
        (on_link(name, mode, link), speed * other)
        for name, mode, other in (("pytorch", "eager", 1.0), ("tensorflow", "graph", 0.8))
        for link, speed in where.items()
    ]
    named = {"faster-link": "link=10gbit", "slower-link": "link=1gbit"}
    faster = gathering.gather("link-speed", (StudyTable("S1:claim-bandwidth", sides=named),)).tables[0]
    assert judged(beside(faster, [group("vgg16:tiny", sides)])) == [
        (("tensorflow 10gbit", "tensorflow 1gbit"), "same order"),
        (("pytorch 10gbit", "pytorch 1gbit"), "same order"),
    ]
    ahead = unstated(gathering.gather("transfer-cifar10", (StudyTable("S3:claim-tensorflow-ahead"),))).tables[0]
    assert judged(beside(ahead, [group("vgg16:tiny", sides)])) == [
        ((f"tensorflow {link}", f"pytorch {link}"), "opposite order") for link in where
    ]


def test_a_variant_that_is_not_the_documents_has_a_ratio_and_no_word():
    why = "PyTorch as it comes instead of its search for algorithms"
    held = StudyTable(
        "S1:table-2",
        where={"quantity": "difference", "cell": "deepspeech2:librispeech"},
        differs={"pytorch,search=false": why},
    )
    (table,) = unstated(gathering.gather("single-gpu-speed", (held,))).tables
    sides = [(contender(f"PyTorch, {each}", "pytorch", "eager", search=each), 1.056) for each in ("true", "false")]
    rows = beside(
        table, [group("deepspeech2:librispeech", [(contender("TensorFlow", "tensorflow", "graph"), 1), *sides])]
    )
    assert [(row.sides[0], row.judgement, row.differences) for row in rows] == [
        ("PyTorch, true", "same size", ()),
        ("PyTorch, false", None, (why,)),
    ]
    assert rows[1].measured


def test_two_frameworks_are_compared_with_as_many_loader_workers():
    times, _ = tables("mindspore-training")
    more = contender("PyTorch, workers 2", "pytorch", "eager", workers=2)
    rows = beside(times, [group("googlenet:cifar10", [(MINDSPORE, 1.2), (PYTORCH, 1), (more, 1)])])
    assert judged(row for row in rows if row.judgement) == [(("MindSpore", "PyTorch"), "same size")]


def test_one_round_gives_no_judgement():
    times, _ = tables("mindspore-training")
    single = group("googlenet:cifar10", [(MINDSPORE, 1.2), (PYTORCH, 1)])
    (row, *_) = beside(times, [MeasuredGroup(**{**single.__dict__, "ratio": lambda a, b: None})])
    assert (row.measured, row.judgement, row.reason) == (None, None, "They have fewer than two rounds in common.")


@pytest.mark.parametrize("written", ["false", "False"])
def test_values_of_knobs_are_compared_as_text(written):
    from steelyard.analysis.matching import means
    from steelyard.published.study_tables import Side

    assert means(Side("dense", "", "", {"sparse": written}), contender("PyTorch", "pytorch", "eager", sparse=False))
    assert not means(Side("dense", "", "", {"sparse": written}), contender("PyTorch", "pytorch", "eager", sparse=True))
    assert not means(Side("dense", "", "", {"sparse": written}), contender("JAX", "jax", "jit"))


def over_batches(statistic, speeds, said=1.15):
    """Return the rows of a statement of several batches beside these speeds of TensorFlow, PyTorch's being 1."""
    table = tables("single-gpu-speed")[0]
    statement = replace(
        table.statements[0],
        network="VGG16",
        cell="vgg16:imagenet",
        batch=0,
        optimizer="",
        statistic=statistic,
        first=Side("tensorflow", "tensorflow"),
        second=Side("pytorch", "pytorch"),
        said=Claim(said, said, ordered=True),
    )
    tensorflow = contender("TensorFlow", "tensorflow", "graph")
    groups = [
        group("vgg16:imagenet", [(tensorflow, speed), (PYTORCH, 1)], batch=batch) for batch, speed in speeds.items()
    ]
    return beside(replace(table, statements=(statement,)), groups)


def test_a_mean_over_batches_is_judged_once_as_a_mean():
    (row,) = over_batches(MEAN, {32: 1.05, 64: 1.15, 128: 1.28})
    assert (row.measured.value, row.measured.low) == pytest.approx((1.16, 1.16 * 0.98))
    assert row.judgement == "same size"
    assert row.group == "vgg16:imagenet, mean over batches (32, 64 and 128)"
    assert setting(row) == row.group
    (least, *_) = over_batches("", {32: 1.05, 64: 1.15, 128: 1.28})
    assert least.judgement == "same order", "each batch by itself is not what the document says"


def test_a_maximum_over_batches_is_judged_once_as_a_maximum():
    (row,) = over_batches(MAXIMUM, {32: 1.05, 64: 1.21, 128: 1.1}, said=1.215)
    assert (row.measured.value, row.measured.high) == pytest.approx((1.21, 1.21 * 1.02))
    assert row.judgement == "same size"


def test_one_batch_is_no_mean_of_several():
    (row,) = over_batches(MEAN, {64: 1.15})
    assert (row.judgement, row.measured) == (None, None)
    assert row.reason == "The document has the mean over batches, and this run has one batch."


@given(st.lists(st.tuples(st.floats(0.5, 2), st.floats(1, 1.2)), min_size=2, max_size=6), st.data())
def test_the_interval_of_a_statistic_holds_wherever_the_ratios_lie_in_theirs(known, data):
    for words, combine in OVER_BATCHES.items():
        inside = [data.draw(st.floats(value / width, value * width)) for value, width in known]
        low, high = (combine([value * width**sign for value, width in known]) for sign in (-1, 1))
        assert low <= combine(inside) * (1 + 1e-12), words
        assert combine(inside) <= high * (1 + 1e-12), words
