"""A network of the user's own is described, and its batches drawn, in a process beside; what comes back is the same as data."""

from __future__ import annotations

import json
import os
import shutil
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import psutil
import pytest

from steelyard.catalog import network_data, user_networks, workloads
from steelyard.catalog.describing_process import Failure
from steelyard.catalog.user_networks import Drawing
from steelyard.errors import UserError
from steelyard_worker.network import Adversarial, Network

if TYPE_CHECKING:
    from collections.abc import Callable

LINE = Path(__file__).parents[1] / "workloads" / "line"
SIZES = {"features": 8, "classes": 3, "batch": 16}


@pytest.fixture
def own(tmp_path: Path) -> Callable[[str], Path]:
    """Return a copy of the workload `line` with a text at the end of its network.py."""

    def copy(last: str = "") -> Path:
        folder = shutil.copytree(LINE, tmp_path / "line", ignore=shutil.ignore_patterns("__pycache__"))
        with (folder / "network.py").open("a") as file:
            file.write(f"\n\n{last}\n")
        return folder

    return copy


@pytest.fixture
def limit() -> Any:
    yield user_networks.allow
    user_networks.allow(600.0)


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the requests of all processes that are started from here on."""
    found: list[str] = []
    run = user_networks._run

    def noted(path: Path, place: Path, *others: Any) -> str:
        found.append((place / "request.json").read_text())
        return run(path, place, *others)

    monkeypatch.setattr(user_networks, "_run", noted)
    return found


def without_functions(network: Network) -> Network:
    adversarial = replace(network.adversarial, draw=None)
    return replace(network, draw=None, draw_set=None, predictions=None, write=None, adversarial=adversarial)


@pytest.mark.parametrize("name", sorted(workloads.find()))
def test_every_network_crosses_as_data(name: str) -> None:
    known = workloads.find()[name]
    for preset, network in known.networks().items():
        drawing = {each for each in network_data.DRAWING if network_data.function(network, each)}
        found = network_data.from_text(network_data.to_text(network), lambda name: lambda *_: name)
        assert without_functions(found) == without_functions(network), preset
        assert [bool(each) for each in (found.predictions, found.write)] == [
            bool(network.predictions),
            bool(network.write),
        ]
        assert {each for each in network_data.DRAWING if network_data.function(found, each)} == drawing
        assert all(network_data.function(found, each)() == each for each in drawing)  # type: ignore[misc]


@pytest.mark.parametrize(
    ("name", "function"), [("bert", "draw"), ("deepspeech2", "draw_set"), ("gnmt", "adversarial.draw")]
)
def test_batches_of_the_users_code_are_those_that_it_would_draw_here(name: str, function: str, tmp_path: Path) -> None:
    known = workloads.find()[name]
    sizes = known.preset("tiny").sizes
    copied = shutil.copytree(known.folder, tmp_path / name)
    here, beside = workloads.described(known.folder, sizes), workloads.described(copied, sizes)
    assert without_functions(here) == without_functions(beside)
    drawn_here, drawn_beside = (network_data.function(each, function) for each in (here, beside))
    assert isinstance(drawn_beside, Drawing)
    assert drawn_here is not None
    expected, found = (draw(np.random.Generator(np.random.PCG64(5)), 4) for draw in (drawn_here, drawn_beside))
    assert list(expected) == list(found)
    for each, array in expected.items():
        assert (array.dtype, array.shape) == (found[each].dtype, found[each].shape)
        assert (array == found[each]).all()


def test_one_process_describes_all_presets_once(own: Callable[..., Path], started: list[str]) -> None:
    folder = own()
    with (folder / "spec.toml").open("a") as file:
        file.write(
            '\n[presets.wide]\nsummary = "w"\noptimizer = "sgd"\nsizes = {features = 9, classes = 3, batch = 16}\n'
        )
    known = workloads.parse(folder / "spec.toml")
    assert [each.parameters[0].shape for each in known.networks().values()] == [(3, 8), (3, 9)]
    known.network(known.preset("wide"))
    workloads.described(folder, SIZES)
    assert len(started) == 1
    (folder / "helper.py").write_text("")
    workloads.described(folder, SIZES)
    assert len(started) == 2, "its files have changed"


def test_the_code_of_steelyard_itself_needs_no_process(started: list[str]) -> None:
    for known in workloads.find().values():
        known.networks()
    assert started == []


def test_a_folder_that_is_called_like_steelyards_is_not_taken_for_it(tmp_path: Path, started: list[str]) -> None:
    folder = shutil.copytree(LINE, tmp_path / "steelyard_worker" / "workloads" / "line")
    workloads.described(folder, SIZES)
    assert len(started) == 1


def test_networks_before_the_one_that_does_not_end_are_described(own: Callable[..., Path], limit: Any) -> None:
    endless = "usual = describe\ndef describe(sizes):\n    while sizes['features'] == 9: pass\n    return usual(sizes)"
    limit(3)
    found = user_networks.describe(own(endless), [SIZES, SIZES | {"features": 9}, SIZES | {"features": 10}])
    assert isinstance(found[0], Network)
    assert isinstance(found[1], Failure)
    assert "it did not return within 3 s and was ended" in found[1].reason
    assert len(found) == 2, "the third was never tried"


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ("macs='many'", "'macs' of the network must be a whole number, but it is 'many'"),
        ("probes=('a', 3)", "'probes' of the network[1] must be a string, but it is '3'"),
        ("adversarial=Adversarial(scale=float('inf'))", "'scale' of the adversarial step must be a finite number"),
        ("small_variances={'a': 'b'}", "'small_variances' of the network.a must be a number, but it is 'b'"),
        ("macs={1}", "TypeError: a network is data, and set is none"),
        ("parameters=(Parameter('a', (2,), 'bias', 3),)", "'initial' of a parameter must be a string, but it is '3'"),
    ],
)
def test_a_network_of_wrong_types_is_refused_where_it_is_described(
    changed: str, reason: str, own: Callable[..., Path]
) -> None:
    code = (
        "from dataclasses import replace\nfrom steelyard_worker.network import Adversarial\nusual = describe\n"
        f"def describe(sizes):\n    return replace(usual(sizes), {changed})"
    )
    with pytest.raises(UserError) as raised:
        workloads.described(own(code), SIZES)
    assert reason in str(raised.value)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize("number", [3, np.int64(3), np.float32(3)])
def test_numbers_of_numpy_are_numbers(number: Any) -> None:
    network = Network((), (), 3, adversarial=Adversarial(scale=number, factors={"a": number}))
    found = network_data.from_text(network_data.to_text(network), lambda _: dict)
    assert (found.adversarial.scale, found.adversarial.factors) == (3.0, {"a": 3.0})
    assert type(found.adversarial.scale) is float


@pytest.mark.parametrize(
    "answer", ["", "[]", "{}", '{"functions": ["__init__"]}', "[" * 100_000, '{"parameters": 3}', "\\xff"]
)
def test_an_answer_that_the_users_code_has_written_itself_is_read_as_data_alone(
    answer: str, own: Callable[..., Path]
) -> None:
    code = (
        "import os, sys\nplace = sys.argv\nimport steelyard.catalog.describing_process as process\n"
        f"process._write = lambda path, text: path.with_name('network0.json').write_text({answer!r}, 'latin-1')"
    )
    with pytest.raises(
        UserError, match=r"network\.py failed for the sizes .*: the network that it describes cannot be used"
    ):
        workloads.described(own(code), SIZES)


@pytest.mark.parametrize(
    ("drawn", "reason"),
    [
        ("{'point': np.array([object()])}", "'point' is an array of objects, and a batch has arrays of numbers"),
        ("None", "AttributeError: 'NoneType' object has no attribute 'items'"),
    ],
)
def test_a_batch_that_is_no_data_is_refused(drawn: str, reason: str, own: Callable[..., Path]) -> None:
    code = (
        "import numpy as np\nfrom dataclasses import replace\nusual = describe\n"
        f"def describe(sizes):\n    return replace(usual(sizes), draw=lambda generator, batch: {drawn})"
    )
    network = workloads.described(own(code), SIZES)
    assert network.draw is not None
    with pytest.raises(UserError, match=reason):
        network.draw(np.random.Generator(np.random.PCG64(5)), 4)


def test_processes_that_the_users_code_leaves_are_ended(own: Callable[..., Path], tmp_path: Path) -> None:
    left = (
        "import subprocess, sys\n"
        "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'], start_new_session=True)\n"
        f"open({str(tmp_path / 'pid')!r}, 'w').write(str(child.pid))"
    )
    workloads.described(own(left), SIZES)
    pid = int((tmp_path / "pid").read_text())
    limit = time.monotonic() + 60
    while psutil.pid_exists(pid) and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE:
        assert time.monotonic() < limit
        time.sleep(0.02)


def test_without_its_interpreter_one_sentence_says_so(
    own: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(user_networks.sys, "executable", "/no/python")
    with pytest.raises(
        UserError, match=r"the interpreter /no/python, which describes it, could not be started \(No such file"
    ):
        workloads.described(own(), SIZES)


def test_what_the_users_code_does_to_its_process_does_not_reach_this_one(own: Callable[..., Path]) -> None:
    code = (
        "import json, os, sys\njson.dumps = None\nos.environ['STEELYARD_TEST'] = 'x'\nos.chdir('/')\nsys.path.clear()"
    )
    before = Path.cwd()
    with pytest.raises(UserError):
        workloads.described(own(code), SIZES)
    assert callable(json.dumps)
    assert (Path.cwd(), os.environ.get("STEELYARD_TEST")) == (before, None)
