"""Tables [[published]] of study files: what their entries say of two sides, and which mistakes in them are refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from steelyard.errors import UserError
from steelyard.files import settings_files
from steelyard.plan import protocols
from steelyard.plan.studies import all_studies
from steelyard.published import gathering
from steelyard.published.documents import documents
from steelyard.published.study_tables import Side, read_side

FOLDER = Path(__file__).parent / "study_tables"
STUDIES = sorted(path.stem for path in FOLDER.glob("*.toml"))


def held(study):
    path = FOLDER / f"{study}.toml"
    return gathering.read(path, settings_files.read(path)["published"])


def gathered(study):
    return gathering.gather(study, held(study))


def stated(study):
    """Return {(entry, cell, first, second): (low, high, ordered)} of a study."""
    return {
        (table.entry, s.cell, s.first.words, s.second.words): (s.said.low, s.said.high, s.said.ordered)
        for table in gathered(study).tables
        for s in table.statements
    }


def about(ratio):
    return pytest.approx(ratio, abs=5e-4)


def test_times_of_two_frameworks_become_ratios():
    found = stated("mindspore-training")
    table = [(cell, first, low) for (entry, cell, first, _), (low, _, _) in found.items() if entry == "S0:table-2"]
    assert table == [
        ("googlenet:cifar10", "mindspore", about(1.198)),
        ("lstm-imdb:mindspore", "mindspore", about(1.100)),
        ("bert:cn-wiki", "mindspore", about(1.881)),
    ]
    assert found["S0:claim-speed-and-accuracy", "", "mindspore", "pytorch"] == (None, None, True)
    accuracy = gathered("mindspore-training").tables[1].figures
    assert [(each.words, each.quantity, each.printed) for each in accuracy] == [
        ("pytorch", "accuracy", "better than mindspore")
    ]


def test_the_faster_framework_of_a_difference_comes_first():
    found = stated("single-gpu-speed")
    assert gathered("single-gpu-speed").tables[0].statements[0].printed == "4.85 %"
    assert found["S1:table-2", "bert:wikitext", "pytorch", "tensorflow"] == (about(1.0231), about(1.0231), True)
    assert found["S1:table-2", "gnmt:wmt16", "tensorflow", "pytorch"] == (about(1.0271), about(1.0271), True)
    assert found["S1:table-7-single", "bert:wikitext", "tensorflow", "pytorch"] == (about(1.0523), about(1.0523), True)
    bounds = {cell: each for (entry, cell, *_), each in found.items() if entry == "S1:claim-overall"}
    assert len(bounds) == 7
    assert bounds["gnmt:wmt16"] == (about(1 / 1.08), about(1.08), False)


def test_of_a_value_for_several_cells_only_those_that_are_named_are_held(tmp_path):
    path = tmp_path / "study.toml"
    text = '[[published]]\nentry = "S1:claim-overall"\nwhere = { cell = ["gnmt:wmt16", "vgg16:imagenet"] }\n'
    path.write_text(text, encoding="utf-8")
    (table,) = gathering.gather("single-gpu-speed", gathering.read(path, settings_files.read(path)["published"])).tables
    assert [(each.cell, each.network) for each in table.statements] == [
        ("gnmt:wmt16", "all but VGG16"),
        ("vgg16:imagenet", "VGG16"),
    ]
    (whole,) = [each for each in gathered("single-gpu-speed").tables if each.entry == "S1:claim-overall"]
    assert {each.claim for each in table.statements} == {each.claim for each in whole.statements}


def test_both_sides_of_a_mode_are_of_one_framework():
    found = stated("lstm-kernels")
    assert found["S1:claim-lstm", "deepspeech2:librispeech", "pytorch cuDNNLSTM", "pytorch LC"] == (4.14, 4.14, True)
    assert found["S1:claim-lstm", "gnmt:wmt16", "tensorflow cuDNNLSTM", "tensorflow LC"] == (1.5, 1.5, True)
    assert found["S1:claim-lstm", "tacotron2:ljspeech", "tensorflow LBC", "tensorflow LC"] == (1, about(1.1), True)
    statements = [each for table in gathered("lstm-kernels").tables for each in table.statements]
    assert len(statements) == 10
    remarks = {each.first.framework for each in statements if each.remark == "the framework is not given"}
    assert remarks == {"tensorflow", "pytorch"}
    assert statements[0].first == Side("tensorflow cuDNNLSTM", "tensorflow", "", {"lstm": "fused"})


def test_a_number_of_no_single_cell_is_shown_and_not_judged():
    cited = gathered("lstm-kernels").tables[1]
    assert not cited.statements
    assert [(each.network, each.printed) for each in cited.figures] == [("LSTM layer alone", "[up to] 10×")]


def test_epoch_times_are_compared_and_utilisation_is_shown():
    found = stated("transfer-cifar10")
    assert found["S3:comparison-table", "vgg16:cifar10-tl", "tensorflow", "pytorch"][0] == about(1.0247)
    assert found["S3:comparison-table", "resnet50:cifar10-tl", "tensorflow", "pytorch"][0] == about(1.0521)
    first, second, _ = gathered("transfer-cifar10").tables
    assert [each.printed for each in first.statements] == [
        "48.6 seconds against 49.8 seconds",
        "57.6 seconds against 60.6 seconds",
    ]
    assert [each.printed for each in second.figures] == ["47.4%", "48.9%", "46.1%", "47.5%"]
    assert not second.statements


def test_workers_and_batches_are_part_of_both_sides():
    (optimum, sparse), (no_workers, *_), workers = (
        gathered("lstm-imdb-sweep").tables[place].statements for place in (3, 0, 1)
    )
    assert optimum.first == Side("mxnet 2 workers", "mxnet", "", {"workers": "2"})
    assert optimum.second == Side("pytorch dense 2 workers", "pytorch", "", {"sparse": "false", "workers": "2"})
    assert sparse.second.settings == {"sparse": "true", "workers": "2"}
    assert optimum.batch == 1024
    assert no_workers.first.settings == {"sparse": "false", "workers": "0"}
    said = {(each.first.framework, each.first.settings["workers"]): (each.said.low, each.said.high) for each in workers}
    assert said == {
        ("mxnet", "4"): (1, about(2.3)),
        ("pytorch", "4"): (1, about(1.05)),
        ("mxnet", "2"): (about(1.516), about(1.516)),
        ("pytorch", "2"): (1, 1),
    }


def test_a_mode_that_is_named_once_holds_for_both_frameworks(tmp_path):
    path = tmp_path / "study.toml"
    text = '[[published]]\nentry = "S1:figure-1-profiling"\nsides = { profiling = "search=true" }\n'
    path.write_text(text, encoding="utf-8")
    (table,) = gathering.gather("conv-algorithms", gathering.read(path, settings_files.read(path)["published"])).tables
    sides = {(each.cell, each.first.framework, each.second.framework) for each in table.statements}
    assert sides == {(f"{name}:imagenet", "tensorflow", "pytorch") for name in ("resnet50", "inceptionv3", "vgg16")}
    assert all(side.settings == {"search": "true"} for each in table.statements for side in (each.first, each.second))
    bounds = {each.cell: (each.said.low, each.said.high) for each in table.statements if not each.said.ordered}
    assert bounds == dict.fromkeys(("resnet50:imagenet", "inceptionv3:imagenet"), (about(1 / 1.06), about(1.06)))


def test_the_faster_of_two_times_comes_first_with_its_own_number(tmp_path):
    path = tmp_path / "study.toml"
    text = (
        (FOLDER / "mindspore-training.toml")
        .read_text(encoding="utf-8")
        .replace('["mindspore", "pytorch"]', '["pytorch", "mindspore"]')
    )
    path.write_text(text, encoding="utf-8")
    table = gathering.gather("mindspore-training", gathering.read(path, settings_files.read(path)["published"])).tables[
        0
    ]
    first = table.statements[0]
    assert (first.first.words, first.printed) == ("mindspore", "126.87(m) against 152(m)")


def test_inference_is_held_against_inference():
    found = stated("mindspore-inference")
    assert found["S0:table-4", "resnet50:imagenet", "mindspore", "pytorch"] == (about(1.7399), about(1.7399), True)
    assert found["S0:claim-inference", "resnet50:imagenet", "mindspore", "pytorch"] == (None, None, True)
    assert {table.task for table in gathered("mindspore-inference").tables} == {"inference"}


def test_phases_of_one_entry_are_held_against_quantities_of_their_own():
    tables = gathered("resnet18-convergence").tables[:3]
    ratios = [(table.task, table.quantity, table.statements[0].said.low) for table in tables]
    assert ratios == [
        ("training", "step time", about(1.18)),
        ("inference", "step time", about(1.587)),
        ("training", "first epoch", about(1.185)),
    ]
    assert {table.statements[0].first.words for table in tables} == {"pytorch"}


def test_seconds_of_delay_and_accuracies_are_shown_only():
    *_, delay, accuracy = gathered("resnet18-convergence").tables
    assert [each.printed for each in delay.figures] == ["8.68 seconds", "2.6 seconds"]
    assert [each.printed for each in accuracy.figures] == ["83.07%", *["better than tensorflow"] * 4]
    assert not delay.statements and not accuracy.statements


def test_values_themselves_have_one_side(tmp_path):
    path = tmp_path / "study.toml"
    entries = ("table-3", "claim-kernel-share", "claim-memory-copy", "claim-launches", "launch-rate")
    path.write_text(
        "".join(f'[[published]]\nentry = "S1:{each}"\nlevels = true\n' for each in entries), encoding="utf-8"
    )
    held = gathering.read(path, settings_files.read(path)["published"])
    shares, bounds, copies, launches, rates = gathering.gather("gpu-share", held).tables
    assert len(shares.statements) == 14
    first = shares.statements[0]
    assert (first.cell, first.first.framework, first.second, first.said.low, first.said.high, first.printed) == (
        "resnet50:imagenet",
        "tensorflow",
        None,
        96.38,
        96.38,
        "96.38 %",
    )
    said = {(each.cell, each.first.framework): (each.said.low, each.said.high) for each in bounds.statements}
    assert said["vgg16:imagenet", "pytorch"] == (96, None)
    assert said["gnmt:wmt16", "tensorflow"] == (86, 86)
    assert [each.network for each in bounds.figures] == ["most"], "of no single cell"
    assert {(each.said.low, each.said.high) for each in copies.statements} == {(0, 3)}
    assert len(copies.statements) == 14, "seven networks in both frameworks"
    assert [each.network for each in copies.figures] == ["mean of all"]
    assert [(each.first.words, each.printed) for each in launches.statements][2:] == [
        ("tensorflow", "447 in VGG16"),
        ("pytorch", "447 in VGG16"),
    ]
    assert rates.statements[0].printed == "35,322 to 40,363 launches/s"


def test_an_order_without_a_cell_holds_in_every_one():
    found = stated("static-dynamic")
    assert found == {
        ("S0:claim-static-dynamic", "", "mindspore graph", "mindspore pynative"): (None, None, True),
        ("S4:claim-static-dynamic", "", "mxnet declarative", "mxnet imperative"): (None, None, True),
    }


@pytest.mark.parametrize("study", STUDIES)
def test_a_study_has_its_sources_and_what_is_different_and_wrong(study):
    found = gathered(study)
    assert {each.short for each in found.sources} == {table.entry.partition(":")[0] for table in found.tables}
    assert len(found.today) >= 4
    cited = {each.cite for each in found.sources}
    assert {each.cite for each in found.errors} <= cited
    texts = [each.says for each in found.errors]
    concerned = {
        flaw.says
        for document in documents().values()
        for flaw in document.errors
        for table in found.tables
        if table.entry.partition(":")[2] in flaw.entries and table.cite == document.cite
    }
    assert set(texts) == concerned


def test_a_doubtful_number_is_judged_by_what_follows_from_the_document():
    """No percentage of a ratio is doubtful, so the rule is tried on one that is made so."""
    from dataclasses import replace

    document, entry = documents()["S1"], documents()["S1"].entry("table-2")
    value = replace(entry.values[2], doubtful=True, recomputed=5.0)
    made = replace(entry, values=(value,))
    from steelyard.published.statements import statements
    from steelyard.published.study_tables import StudyTable

    (found,) = statements(StudyTable("S1:table-2"), document, made)
    assert found.said.low == about(1.05)
    assert found.remark == "recomputed, printed 4.85"


def test_a_published_ratio_below_one_has_the_better_side_first():
    """All documents print ratios above 1, so the rule is tried on one that is turned."""
    from dataclasses import replace

    from steelyard.published.statements import statements
    from steelyard.published.study_tables import StudyTable

    document, entry = documents()["S0"], documents()["S0"].entry("table-2-ratios")
    made = replace(entry, values=(replace(entry.values[0], value=0.8),))
    (found,) = statements(StudyTable("S0:table-2-ratios"), document, made)
    assert (found.first.words, found.second.words, found.said.low) == ("pytorch", "mindspore", 1.25)


@pytest.mark.parametrize(
    ("relation", "text", "shown"),
    [
        (">", "92%", "[above] 92%"),
        ("<=", "10×", "[up to] 10×"),
        ("<", "3.5", "[below] 3.5"),
        (">", "greater than 96%", "greater than 96%"),
        ("", "92%", "92%"),
        ("about", "92%", "92%"),
    ],
)
def test_a_bound_is_shown_where_the_printed_number_does_not_say_it(relation, text, shown):
    from steelyard.published.documents import Value
    from steelyard.published.statements import printed

    assert printed(Value(relation=relation, value=92.0, printed=text)) == shown


def test_a_study_without_documents_has_nothing():
    assert gathering.gather("first-look", ()) == gathering.Published()
    assert gathering.gather("first-look", (), "Q").size == "Q"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("pytorch/eager", Side("w", "pytorch", "eager")),
        ("pytorch", Side("w", "pytorch")),
        ("/graph,workers=2", Side("w", "", "graph", {"workers": "2"})),
        ("lstm=fused", Side("w", settings={"lstm": "fused"})),
        ("jax,convolution=xla,unroll=2", Side("w", "jax", "", {"convolution": "xla", "unroll": "2"})),
    ],
)
def test_an_arm_is_written_as_variants_are(text, expected):
    assert read_side("w", text) == expected


@pytest.mark.parametrize("text", ["", "pytorch,eager", "lstm=", "=fused", "pytorch/eager,,a=1"])
def test_a_malformed_arm_is_refused(text):
    with pytest.raises(UserError, match=r"'w' stands for .*, which is not a variant"):
        read_side("w", text)


GOOD = 'entry = "S1:claim-lstm"\nsides = { cuDNNLSTM = "lstm=fused", LBC = "lstm=cell", LC = "lstm=loop" }\n'


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ('entry = "S1:claim-lstm"', r"line 6: S1:claim-lstm speaks of 'cuDNNLSTM', which 'sides' does not map"),
        (GOOD.replace("lstm=cell", "cell,lstm"), r"line 6: 'LBC' stands for 'cell,lstm', which is not a variant"),
        ('entry = "S1:claim-lstn"', r"line 6: 'S1' has no entry 'claim-lstn'. Did you mean 'claim-lstm'"),
        ('entry = "S7:table-1"', r"line 6: There is no document 'S7'"),
        (
            f"{GOOD}differs = {{ 'cell,lstm' = 'why' }}",
            r"line 6: 'cell,lstm' stands for 'cell,lstm', which is not a variant",
        ),
        (f"{GOOD}quantaty = 'step time'", r"line 8: .*unknown key 'quantaty'. Did you mean 'quantity'"),
        (f"{GOOD}where = {{ framewrk = 'pytorch' }}", r"'framewrk' must be one of .*'framework'"),
        (f"{GOOD}compare = ['LC']", r"line 8: 'compare' must name two words"),
        (f"{GOOD}compare = ['LC', 'LBC']", r"line 8: 'compare': no two values of S1:claim-lstm differ"),
        ("quantity = 'step time'", r"line 5: .*lacks the key 'entry'"),
        (f"{GOOD}levels = true\ncompare = ['LC', 'LBC']", r"line 8: 'levels' and 'compare' contradict each other"),
    ],
)
def test_a_mistake_in_a_study_file_is_refused_with_its_line(tmp_path, table, message):
    path = tmp_path / "study.toml"
    path.write_text(f'[[published]]\nentry = "S1:claim-scope"\n\n\n[[published]]\n{table}\n', encoding="utf-8")
    with pytest.raises(UserError, match=rf"study.toml, {message}" if message.startswith("line") else message):
        gathering.read(path, settings_files.read(path)["published"])


def test_the_documented_example_is_valid(tmp_path):
    page = (Path(__file__).parents[2] / "docs" / "reference" / "study-files.md").read_text(encoding="utf-8")
    path = tmp_path / "study.toml"
    path.write_text(page.partition("## published")[2].split("```")[1], encoding="utf-8")
    first, second = gathering.read(path, settings_files.read(path)["published"])
    assert (first.entry, second.entry) == ("S0:table-2", "S1:claim-lstm")


def test_published_must_be_a_list_of_tables(tmp_path):
    path = tmp_path / "study.toml"
    path.write_text("published = 'S1:table-2'\n", encoding="utf-8")
    with pytest.raises(UserError, match="'published' must be a list of tables"):
        gathering.read(path, settings_files.read(path)["published"])


def test_an_unknown_quantity_is_refused_before_anything_is_measured(tmp_path):
    from steelyard import feasibility
    from steelyard.plan.options import Options

    folder = Path(__file__).parents[1] / "workloads"
    path = tmp_path / "mine.toml"
    text = """name = "mine"\ntitle = "T"\nquestion = "Q?"\nversion = 1
[[cells]]
workloads = ["line"]
frameworks = ["fake", "dummy"]
stands_for = "googlenet:cifar10"
[[published]]
entry = "S0:table-2"
quantity = "step time"
"""
    options = Options(study=str(path), workload_folders=(str(folder),))
    path.write_text(text, encoding="utf-8")
    plan, _ = feasibility.planned(options)
    assert [each.entry for each in plan.published.tables] == ["S0:table-2"]
    assert plan.groups[0].stands_for == "googlenet:cifar10"
    path.write_text(text.replace("step time", "stap time"), encoding="utf-8")
    with pytest.raises(UserError, match=r"no quantity 'stap time'\. Did you mean 'step time'"):
        feasibility.planned(options)
    path.write_text(f"{text}levels = true\n", encoding="utf-8")
    with pytest.raises(
        UserError, match=r"S0:table-2 is held with 'levels' against step time, .* no quantity of profiles"
    ):
        feasibility.planned(options)


def test_the_studies_of_steelyard_are_held_against_entries_that_name_them():
    from steelyard.plan import studies
    from steelyard.profiles import quantities as profiled
    from steelyard.published.documents import find
    from steelyard.results.quantities import NODES, QUANTITIES
    from steelyard.statistics.claims import WEAK_SCALING
    from steelyard.statistics.scores import QUANTITIES as SCORES

    pairs = [(study.name, each) for study in studies.all_studies().values() for each in study.published]
    assert len(pairs) >= 10
    assert [(name, each.entry) for name, each in pairs if name not in find(each.entry)[1].studies] == []
    assert {each.quantity for _, each in pairs} <= {*QUANTITIES, *profiled.QUANTITIES, NODES, *SCORES, WEAK_SCALING}


@pytest.mark.parametrize("name", sorted(name for name, study in all_studies().items() if study.published))
def test_every_table_of_the_published_size_has_the_rounds_that_a_judgement_needs(name):
    study = all_studies()[name]
    found = {cell.protocol: protocols.protocol(cell.protocol, cell.rounds) for cell in study.of_size("P").cells}
    assert {known for known, protocol in found.items() if protocol.rounds_max < 3} == set()
