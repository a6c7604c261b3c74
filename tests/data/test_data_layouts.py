"""What `steelyard list data NAME` says is what the readers read, and a missing file is named."""

from __future__ import annotations

import json
import re
import tarfile
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import official_layouts as layouts
import pytest
import soundfile
from PIL import Image

from steelyard.cli.main import main
from steelyard.errors import UserError
from steelyard.inputs import data
from steelyard.inputs.data import DataRequest, DataSet, OwnCode, list_data, prepare
from steelyard_worker.network import Input

if TYPE_CHECKING:
    from collections.abc import Callable

# Small sizes for the few words, frames and pixels of the files below.
OPTIONS: dict[str, dict[str, Any]] = {
    "image": {},
    "text": {"vocabulary": 20, "length": 8},
    "pairs": {"vocabulary": 60},
    "speech": {"frames": 200},
    "clips": {"frames": 200, "mels": 16},
    "language": {"vocabulary": 100, "length": 16, "masked": 2},
    "arrays": {},
    "running": {"length": 2, "vocabulary": 20},
    "code": {},
}
INPUTS = (Input("1", (2,), "int32", 9),)  # the name of the first file that is made
ROWS = (Input("row", (2,), "int32", 9),)  # what the code makes
CODE = """
def prepare(folder, sizes):
    return {"row": [[number, len(list(folder.iterdir()))] for number in range(5)]}
"""
SENTENCE = "a red house stands here ."
WIKI = "".join(f" = Title {n} = \n \n {SENTENCE} {SENTENCE} \n" for n in range(40))


def _sound(rate: int) -> Callable[[Path], None]:
    noise = 0.1 * np.random.default_rng(1).standard_normal(rate // 4)
    return lambda path: soundfile.write(path, noise, rate)


def _array(path: Path) -> None:
    rows = np.arange(8).reshape(4, 2)
    np.savez(path, **{INPUTS[0].name: rows}) if path.suffix == ".npz" else np.save(path, rows)


def _photograph(path: Path) -> None:
    Image.fromarray(np.arange(30 * 24 * 3, dtype=np.uint32).reshape(30, 24, 3).astype(np.uint8)).save(path)


def _text(content: str) -> Callable[[Path], None]:
    return lambda path: path.write_text(content, encoding="utf-8") and None


def _batch(path: Path) -> None:
    path.write_bytes(layouts.cifar_records(20, 1).tobytes())


def _pickled_batch(path: Path) -> None:
    layouts.write_cifar_python(path.parent / "source")
    (path.parent / "source" / path.name).replace(path)
    for each in (path.parent / "source").iterdir():
        each.unlink()
    (path.parent / "source").rmdir()


def _transcripts(path: Path) -> None:
    path.write_text("".join(f"{each.stem} HELLO\n" for each in path.parent.glob("*.flac")))


def _table_of_clips(path: Path) -> None:
    names = sorted(each.stem for each in path.parent.glob("*/*") if each.suffix in (".wav", ".flac"))
    path.write_text("".join(f"{name}|hello|hello\n" for name in names))


def _reviews(path: Path) -> None:
    path.write_text("text,label,source\n" + "".join(f"a good film {n},{n % 2},imdb\n" for n in range(20)))


# How a file is written whose path ends like this, with the format that the listing states for it.
WRITERS: list[tuple[str, str, Callable[[Path], Any]]] = [
    (r"_batch(_\d)?\.bin$", "records of 3,073 bytes", _batch),
    (r"_batch(_\d)?$", "a pickle of", _pickled_batch),
    (r"\.JPEG$", "a photograph", _photograph),
    (r"\d_\d+\.txt$", "one (negative|positive) review", _text("A good film, it is.")),
    (r"\.trans\.txt$", "a line per recording: its name, a space", _transcripts),
    (r"metadata\.csv$", r"id\|text\|normalised text", _table_of_clips),
    (r"\.flac$", "one channel at 16,000", _sound(16_000)),
    (r"\.wav$", "one channel at 16,000", _sound(16_000)),
    (r"\.wav$", "one channel at 22,050", _sound(22_050)),
    (r"\.(en|de)$", "one English sentence per line", _text(f"{SENTENCE}\n" * 40)),
    (r"wiki\.\w+\.(raw|tokens)$", "' = Title = ' begins an article", _text(WIKI)),
    (r"wiki_\d+$", "<doc ...> </doc>", _text(f'<doc id="1">\n{SENTENCE}。{SENTENCE}。\n</doc>\n' * 40)),
    (r"\.txt$", "one article per line", _text(f"{SENTENCE}。{SENTENCE}。\n" * 40)),
    (r"imdb\.npz$", "NumPy archive", lambda path: layouts.write_ranks(path, [[1, 2], [3]], [[1], [2]])),
    (r"\.csv\.gz$", "gzip of a table: 784 pixel values and the label", layouts.write_digits),
    (r"\.np[yz]$", r"an array \(samples|NumPy archive with an array", _array),
    (r"\.txt$", "text in UTF-8", _text(f"{SENTENCE}\n" * 9)),
    (r"^\d$", "whatever `prepare", _text("1")),
    (r"\.csv$", "CSV with the columns text,label,source", _reviews),
]


def _writer(path: str, stated: str) -> Callable[[Path], Any]:
    return next(write for ending, words, write in WRITERS if re.search(ending, path) and re.search(words, stated))


def request_of(known: DataSet, folder: Path, mine: Path) -> DataRequest:
    """Return a request for data that was made as listed; `mine`: a folder of code, for data that code makes."""
    options = OPTIONS[known.form] | ({"resize": 20, "crop": 16} if len(known.shape) == 1 else {})
    mine.mkdir(exist_ok=True)
    (mine / "data.py").write_text(CODE)
    inputs = ROWS if known.form == "code" else INPUTS
    return DataRequest(known.name, folder, options, inputs, OwnCode(mine, {}, folder))


def listed(name: str, capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    capsys.readouterr()
    assert main(["list", "data", name, "--json"]) == 0
    (row,) = json.loads(capsys.readouterr().out)
    return dict(row)


def make_as_listed(folder: Path, layout: dict[str, Any]) -> None:
    """Write the files of a layout: five of each kind whose name is free, in the stated format; an archive is packed."""
    place = folder / layout["path"]
    place.parent.mkdir(parents=True, exist_ok=True)
    if not layout["files"]:
        _writer(layout["path"], layout["format"])(place)
        return
    archive = place.name.endswith((".tar.gz", ".zip"))
    root, stated = folder / "packed" if archive else place, ""
    planned: list[tuple[Path, Callable[[Path], Any]]] = []
    for file in layout["files"]:
        # "the same" and the translation on the same line refer to the format of the file above
        stated = file["format"] if not re.match("the same|its translation", file["format"]) else stated
        for number in range(1, 6):
            splits = {"<train>": "train", "<test>": "test"} if "wiki" in file["path"] else {}
            splits = splits or {"<train>": "train-clean-100", "<test>": "test-clean"}
            path = file["path"]
            for place_, chosen in splits.items():
                path = path.replace(place_, chosen)
            path = re.sub(r"<(class|speaker|chapter)>", "1", path)
            path = re.sub(r"<[a-z]+>", str(number), path)
            if (write := (root / path, _writer(path, stated)))[0] not in [done for done, _ in planned]:
                planned.append(write)
    for path, write in sorted(planned, key=lambda each: each[0].suffix in (".txt", ".csv")):  # tables after recordings
        path.parent.mkdir(parents=True, exist_ok=True)
        write(path)
    if archive:
        _pack(root, place)


def _pack(root: Path, archive: Path) -> None:
    files = [path for path in sorted(root.rglob("*")) if path.is_file()]
    if archive.suffix == ".zip":
        with zipfile.ZipFile(archive, "w") as packed:
            for path in files:
                packed.write(path, path.relative_to(root).as_posix())
    else:
        with tarfile.open(archive, "w:gz") as tar:
            for path in files:
                tar.add(path, path.relative_to(root).as_posix())


@pytest.mark.parametrize("name", [each.name for each in list_data()])
def test_a_folder_made_as_the_listing_says_is_read_in_every_layout(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    row, known = listed(name, capsys), data.find(name)
    assert row["layouts"]
    for number, layout in enumerate(row["layouts"]):
        folder = tmp_path / str(number)
        make_as_listed(folder, layout)
        # a single file of one's own is named itself: its folder has the layout of several
        is_named = known.form in ("arrays", "running") and not layout["files"]
        request = request_of(known, folder / layout["path"] if is_named else folder, tmp_path / "mine")
        data.check(request)
        prepared = prepare(request)
        assert prepared.meta["layout"] == layout["layout"]
        assert prepared.meta["train_count"] > 0
        assert prepared.meta["test_count"] > 0


def test_the_listing_shows_the_tree_the_presets_and_the_source(capsys: pytest.CaptureFixture[str], monkeypatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    assert main(["list", "data", "wmt16-en-de"]) == 0
    lines = capsys.readouterr().out.splitlines()
    text = "\n".join(lines)
    assert "gnmt:wmt16" in text
    assert "https://www.statmt.org/wmt16/translation-task.html" in text
    assert "without --data  not downloaded" in text
    start = next(number for number, line in enumerate(lines) if line.startswith("DIR/wmt16_de_en"))
    assert lines[start + 1].split()[:2] == ["train.tok.clean.en", "training"]


def test_every_example_has_the_form_of_its_path_and_is_among_the_files_that_are_read() -> None:
    for known in list_data():
        resolved = known.with_splits("train-clean-100" if known.form == "speech" else "train", "test")
        for layout in known.readable:
            for part in layout.parts:
                pattern = re.sub(r"<[a-z]+>", "[^/]+", re.escape(part.forms[0]).replace("\\<", "<").replace("\\>", ">"))
                assert re.fullmatch(pattern, part.example), part
                if layout.is_folder and known.files != "$" and "test-clean" not in part.example:
                    assert re.search(resolved.files, part.example), part


def test_only_lists_of_data_and_presets_take_a_name(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["list", "studies", "first-look"]) == 2
    assert "only 'steelyard list data NAME' and 'steelyard list presets NAME' do." in capsys.readouterr().err
    assert main(["list", "data", "wmt61"]) == 2
    assert "There is no data set 'wmt61'. Did you mean 'wmt16-en-de'?" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "removed"),
    [
        ("cifar10", "test_batch.bin"),
        ("imagenet", "val"),
        ("aclimdb", "test"),
        ("librispeech", "test-clean"),
        ("ljspeech", "metadata.csv"),
        ("ljspeech", "wavs"),
        ("wmt16-en-de", "train.tok.clean.de"),
        ("wmt16-en-de", "newstest2014.tok.en"),
        ("wikitext-103-raw", "wiki.test.raw"),
    ],
)
def test_a_file_or_folder_that_is_missing_is_named_before_anything_is_read(
    name: str, removed: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    layout = listed(name, capsys)["layouts"][0]
    make_as_listed(tmp_path, layout)
    (tmp_path / layout["path"] / removed).rename(tmp_path / "elsewhere")
    with pytest.raises(UserError) as found:
        data.check(DataRequest(name, tmp_path, {"resize": 20, "crop": 16} if name == "imagenet" else {}))
    assert str(found.value).startswith(f"{tmp_path / layout['path']} does not hold '{removed}")
    assert f"is part of the layout '{layout['layout']}'" in str(found.value)
    assert str(found.value).endswith(f"steelyard list data {name}")


def test_data_that_is_not_downloaded_is_missing_before_anything_is_made() -> None:
    with pytest.raises(
        UserError, match=r"'imagenet' is not downloaded by steelyard: put 'imagenet-2012\.zip' .*--data"
    ):
        data.check(DataRequest("imagenet", None, {"resize": 20, "crop": 16}))
    data.check(DataRequest("mnist-5k"))


def test_folders_behind_links_belong_to_the_data_and_a_circle_of_links_ends(tmp_path: Path) -> None:
    real = layouts.write_reviews(tmp_path / "real", ["a good film"] * 4, ["a film"] * 2)
    linked = tmp_path / "aclImdb"
    linked.mkdir()
    for split in ("train", "test"):
        (linked / split).symlink_to(real / split)
    (linked / "circle").symlink_to(linked)
    options = {"vocabulary": 20, "length": 8}
    first = prepare(DataRequest("aclimdb", linked, options))
    assert first.meta["train_count"] == 4
    layouts.write_reviews(real, ["another film"] * 4, ["a film"] * 2)
    assert prepare(DataRequest("aclimdb", linked, options)).folder != first.folder
