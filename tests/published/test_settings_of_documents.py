"""The published sizes of studies have the documents' settings; where they cannot, a row says what differs and has no word."""

from __future__ import annotations

from functools import cache

import pytest

from steelyard.analysis.measured_settings import of_plan
from steelyard.host import links
from steelyard.plan import resolve, studies
from steelyard.plan.options import Options
from steelyard.published.documents import documents, find, study_notes
from steelyard.redone.judgeable import planned_rows
from steelyard_worker.strategy import nodes_of

CNNS = ("resnet50:imagenet", "vgg16:imagenet", "inceptionv3:imagenet")
# Their frameworks, or one version, have none for NVIDIA GPUs (MindSpore, MXNet), or they are held against claims of no machine.
ON_ANY_DEVICE = {
    "mindspore-training",
    "mindspore-inference",
    "time-to-accuracy",
    "static-dynamic",
    "onnx-exchange",
    "lstm-imdb-sweep",
    "lstm-imdb-convergence",
    "framework-versions",
}
OF_DAI = (
    "single-gpu-speed",
    "gpu-share",
    "graph-optimizations",
    "variable-length",
    "multi-device-speed",
    "lstm-kernels",
)
NO_DROPOUT = "no dropout instead of dropout"


@cache
def plan(study, size="P"):
    with links.assumed():
        return resolve.plan(Options(study=study, size=size))


@cache
def rows(study, size="P"):
    """Return (entry, quantity, row) of every row that a run could give."""
    return [(table.entry, table.quantity, row) for table, found in planned_rows(study, size) for row in found]


def of_entry(study, entry, cell=""):
    return [row for name, _, row in rows(study) if name == entry and cell in ("", row.statement.cell)]


def cases(study, *cells):
    return [
        case
        for group in plan(study).groups
        for case in group.cases
        if not cells or f"{case.workload}:{case.preset}" in cells
    ]


@pytest.mark.parametrize(
    "name", sorted({name for name, each in studies.all_studies().items() if each.published} - ON_ANY_DEVICE)
)
def test_a_study_of_a_document_that_measured_on_gpus_does_so_at_its_published_size(name):
    assert {cells.device for cells in studies.study(name).of_size("P").cells} == {"cuda"}


@pytest.mark.parametrize("study", OF_DAI)
def test_tensorflow_has_the_lstm_of_the_document(study):
    """Table 1: cuDNN's, in GNMT, DeepSpeech2 and the encoder of Tacotron2."""
    cells = ("gnmt:wmt16", "deepspeech2:librispeech", "tacotron2:ljspeech")
    found = {case.settings.knobs["lstm"] for case in cases(study, *cells) if case.framework == "tensorflow"}
    assert found == ({"fused", "cell", "loop"} if study == "lstm-kernels" else {"fused"})


def test_every_way_to_compute_an_lstm_has_a_contender():
    ratios = {
        (row.sides, row.said.low): row.judgement
        for row in of_entry("lstm-kernels", "S1:claim-lstm", "deepspeech2:librispeech")
    }
    assert ratios[("TensorFlow, lstm fused", "TensorFlow, lstm loop"), 2.69]
    assert ratios[("PyTorch, lstm fused", "PyTorch, lstm loop"), 4.14]


@pytest.mark.parametrize(
    "study", ["single-gpu-speed", "gpu-share", "graph-optimizations", "variable-length", "lstm-kernels"]
)
def test_speech_is_read_whole_and_in_its_own_lengths(study):
    """1427 steps of 20 and 409 of 32 are all utterances and all clips."""
    speech = {case.workload: case.sizes for case in cases(study, "deepspeech2:librispeech", "tacotron2:ljspeech")}
    assert {name: sizes["lengths"] for name, sizes in speech.items()} == {"deepspeech2": "own", "tacotron2": "own"}
    assert (speech["deepspeech2"]["frames"], speech["deepspeech2"]["transcript"]) == (2460, 400)
    assert (speech["tacotron2"]["frames"], speech["tacotron2"]["characters"]) == (870, 190)


@pytest.mark.parametrize("entry", ["S1:table-2", "S1:claim-overall"])
def test_table_2_has_pytorchs_search_for_algorithms_and_pytorch_as_it_comes_has_no_word(entry):
    found = of_entry("single-gpu-speed", entry, "deepspeech2:librispeech")
    searched = {any("cudnn_search True" in side for side in row.sides): row for row in found}
    assert len(found) == 2
    assert searched[True].judgement and not searched[True].differences
    assert searched[False].judgement is None
    assert searched[False].differences == ("PyTorch as it comes instead of its search for algorithms",)


@pytest.mark.parametrize(
    ("study", "cell", "entry"),
    [
        ("resnet18-convergence", "resnet18:cifar10", "S2:claim-resnet18-speed"),
        ("vgg16-convergence", "vgg16:imagenet80", "S2:claim-vgg16-speed"),
    ],
)
def test_the_documents_inference_is_its_validation(study, cell, entry):
    inference = [
        (quantity, row)
        for name, quantity, row in rows(study)
        if name == entry and round(row.said.low, 3) in (1.587, 1.293)
    ]
    assert inference
    assert {(quantity, row.statement.cell) for quantity, row in inference} == {("evaluation time", cell)}
    assert all(row.measured for _, row in inference)
    assert all(bool(row.judgement) == (cell == "resnet18:cifar10") for _, row in inference)


def test_vgg16_on_small_images_was_trained_on_other_images():
    found = of_entry("vgg16-convergence", "S2:claim-vgg16-speed")
    assert found
    for row in found:
        assert row.judgement is None
        assert "imagenet instead of ImageNet's 50,000 validation images of 2010, in three parts" in row.differences
    (data, recipe, on_cifar10, optimizer, _) = study_notes()[1]["vgg16-convergence"].today
    assert "1.28 million training images" in data
    assert "They do not state where the rate falls." in recipe
    assert "How often the rate is halved is ours." in on_cifar10
    assert "names no optimizer" in optimizer


def test_what_the_texts_do_not_say_is_not_said_for_them():
    vgg16, resnet18 = (find(f"S2:settings-{name}")[1].settings for name in ("vgg16", "resnet18"))
    assert vgg16["optimizers"].startswith("not given")
    assert resnet18["learning_rate_schedule"] == "not given"
    (known,) = [each for each in documents()["S2"].conditions if "resnet18:cifar10" in each.cells]
    assert "schedule" in known.assumed


def test_fixed_is_one_setting_of_each_framework():
    """TensorFlow's without the search; PyTorch's was an option of its own, and without the search it is as it comes."""
    tables = {each.entry: each.sides for each in studies.study("conv-algorithms").published}
    assert tables["S1:figure-1-profiling-over-fixed"]["fixed"] == "tensorflow/graph,cudnn_search=false"
    assert "fixed" not in tables["S1:figure-1-fixed"]
    assert tables["S1:figure-1-ori-and-profiling"]["ori"] == "pytorch/eager,cudnn_search=false"
    ori = {table.sides["ori"] for table in studies.study("variable-length").published if "ori" in table.sides}
    assert ori == {"cudnn_search=false"}


def test_pytorch_as_it_comes_is_held_to_be_as_fast_as_with_its_search():
    found = of_entry("conv-algorithms", "S1:figure-1-ori-and-profiling")
    said = {
        (row.statement.cell, row.batch): (row.said.low, row.said.high)
        for row in found
        if row.judgement and not row.differences
    }
    assert len(said) == 15, "three networks at five batches"
    assert said.pop(("vgg16:imagenet", 128)) == (None, None), "an order"
    assert set(said.values()) == {(1.0, 1.0)}
    outside = [row for row in found if row.differences]
    assert [(row.batch, row.differences) for row in outside] == [(128, ("batch 128 instead of 8, 16, 32 or 64",))]


def test_deterministic_mode_is_measured_where_the_document_had_one_fixed_algorithm():
    found = [case for case in cases("conv-algorithms") if case.settings.deterministic]
    assert {(f"{case.workload}:{case.preset}", case.batch) for case in found} == {
        (cell, batch) for cell in CNNS for batch in (8, 16, 32, 64, 128)
    }
    assert {(case.framework, case.settings.knobs["cudnn_search"]) for case in found} == {
        ("tensorflow", False),
        ("pytorch", False),
    }
    assert [case.workload for case in cases("variable-length") if case.settings.deterministic] == ["tacotron2"]


def test_a_mean_over_batches_is_judged_as_one():
    found = of_entry("conv-algorithms", "S1:figure-1-profiling-over-fixed", "resnet50:imagenet")
    assert [row.group for row in found] == ["resnet50:imagenet, mean over batches (8, 16, 32, 64 and 128)"]


@pytest.mark.parametrize(
    ("cell", "text"),
    [
        ("bert:wikitext", f"{NO_DROPOUT} (assumed)"),
        ("gnmt:wmt16", f"{NO_DROPOUT} (assumed)"),
        ("tacotron2:ljspeech", NO_DROPOUT),
    ],
)
def test_networks_that_have_no_dropout_here_have_no_word(cell, text):
    found = [row for study in OF_DAI for _, _, row in rows(study) if row.statement.cell == cell and row.measured]
    assert len(found) > 5
    assert all(text in row.differences and row.judgement is None for row in found)


@pytest.mark.parametrize(
    "study", ["single-gpu-speed", "gpu-share", "conv-algorithms", "graph-optimizations", "multi-device-speed"]
)
def test_networks_that_have_dropout_here_are_measured_with_it(study):
    with_dropout = {group.cases[0].workload for group in plan(study).groups if of_plan(group).dropout == "on"}
    assert with_dropout == {"vgg16", "inceptionv3"}
    judged = [row for _, _, row in rows(study) if row.judgement]
    networks = {row.statement.cell for row in judged}
    assert set(CNNS) <= networks
    assert all(row.here.dropout == "on" for row in judged if row.statement.cell in CNNS[1:])


def test_two_a100_computed_in_tensorfloat_32():
    found = [row for row in of_entry("standalone-distributed", "S3:comparison-table") if row.measured]
    assert len(found) == 4
    assert {row.differences for row in found} == {("precision float32 instead of TensorFloat-32 (assumed)",)}
    everywhere, _ = study_notes()
    assert not any("did not exist" in each for each in everywhere)
    both = of_entry("standalone-distributed", "S3:claim-data-parallel")
    assert any(row.judgement for row in both), "on a T4 and two A100: no one format"


def test_a_run_with_tensorfloat_32_says_so():
    with links.assumed():
        asked = resolve.plan(Options(study="transfer-cifar10", size="P", knobs=("tf32=true",), frameworks=("pytorch",)))
    assert {of_plan(group).precision for group in asked.groups} == {"TensorFloat-32"}
    assert {of_plan(group).precision for group in plan("transfer-cifar10").groups} == {"float32"}


def test_a_run_on_a_part_of_a_data_set_says_so():
    options = {"workloads": ("resnet18:cifar10",), "frameworks": ("pytorch",)}
    whole, part = (resolve.plan(Options(**options, train_limits=limits)) for limits in ((), (500,)))
    assert [of_plan(each.groups[0]).data for each in (whole, part)] == ["cifar10", "cifar10, 500 training samples"]


def test_the_gain_without_horovod_is_an_order_and_its_size_is_computed():
    _, claim = find("S3:claim-horovod")
    _, computed = find("S3:comparison-horovod")
    assert [(each.relation, each.value) for each in claim.values] == [("order", None)]
    assert (computed.kind, [each.value for each in computed.values]) == ("derived", [1.072, 1.046])
    for entry in ("S3:claim-horovod", "S3:comparison-horovod"):
        found = of_entry("transfer-cifar10", entry)
        assert {row.statement.first.framework for row in found} == {"tensorflow", "pytorch"}
        assert all(row.judgement for row in found)


def test_rows_of_one_device_are_not_those_with_horovod():
    for entry in ("S3:comparison-table", "S3:claim-tensorflow-ahead"):
        assert not [row for row in of_entry("transfer-cifar10", entry) if "horovod" in "".join(row.sides)]
        assert not [row for row in of_entry("standalone-distributed", entry) if "horovod" in "".join(row.sides)]


@pytest.mark.parametrize(
    ("name", "entry", "study"),
    [
        ("D13", "figure-1-profiling-over-fixed", "conv-algorithms"),
        ("D14", "table-7-overhead", "multi-device-speed"),
        ("T9", "claim-vgg16-speed", "vgg16-convergence"),
    ],
)
def test_an_error_of_a_document_stands_on_the_page(name, entry, study):
    document = documents()["S2" if name.startswith("T") else "S1"]
    (flaw,) = [each for each in document.errors if each.id == name]
    assert entry in flaw.entries
    assert flaw.says in {each.says for each in plan(study).published.errors}


def test_close_overheads_are_contradicted_by_the_documents_table():
    document, _ = find("S1:claim-close-overheads")
    printed = {
        (each.network, each.framework): each.value
        for each in document.entry("table-7-overhead").complete_values
        if each.devices == 4
    }
    assert (printed["VGG16", "tensorflow"], printed["VGG16", "pytorch"]) == (1.077, 6.737)
    assert (printed["GNMT", "tensorflow"], printed["GNMT", "pytorch"]) == (16.991, 7.782)


@pytest.mark.parametrize(
    ("size", "links_of"), [("P", ("10gbit", "1gbit")), ("C", ("10gbit", "1gbit")), ("Q", ("10mbit", "1mbit"))]
)
def test_a_faster_link_is_held_against_a_slower_one_at_every_size(size, links_of):
    found = [row for entry, _, row in rows("link-speed", size) if entry == "S1:claim-bandwidth" and row.judgement]
    assert found
    assert {tuple(side.partition("@")[2] for side in row.sides) for row in found} == {links_of}
    assert {tuple(side.partition("@")[0] for side in row.sides) for row in found} <= {
        ("PyTorch, ddp:2",) * 2,
        ("TensorFlow, multi-worker:2",) * 2,
    }


def test_several_devices_are_also_on_several_nodes():
    tables = [
        each for each in studies.study("multi-device-speed").of_size("P").cells if each.strategies != ("single:1",)
    ]
    assert len(tables) == 8
    for each in tables:
        assert [nodes_of(text) for text in each.strategies].count(2) == 1
    skipped = [each.reason for each in plan("multi-device-speed").skipped if "2nodes" in each.reason]
    assert skipped and all("name one with --on" in each for each in skipped if "needs 2 nodes" in each)


@pytest.mark.parametrize("size", ["P", "C", "Q"])
def test_the_statement_on_versions_stands_beside_two_versions_of_one_framework(size):
    found = plan("framework-versions", size)
    assert {case.environment for case in cases("framework-versions")} == {"tensorflow", "tensorflow@2.20.0"}
    assert all(len(group.cases) == 2 for group in found.groups)
    assert [each.entry for each in found.published.tables] == ["S1:claim-versions"]


@pytest.mark.parametrize("size", ["P", "C", "Q"])
def test_batches_of_their_own_length_have_an_interval_at_every_size(size):
    assert all(group.protocol.rounds_max >= 2 for group in plan("variable-length", size).groups)
