"""A gallery of many runs: every page is there, nothing private or hostile has an effect, and nothing else is written."""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
import tempfile
from pathlib import Path

import golden_archives
import pytest
from private_record import change, forms, planted

from steelyard.cli.main import main
from steelyard.errors import UserError
from steelyard.exports import bundle, gallery

sys.path.append(str(Path(__file__).parents[1] / "report"))

from reading import Page, check_policy

# Without a slash, as a path would be hidden.
HOSTILE = '"><img src=x onerror=alert(1)><script>alert("&")'


@pytest.fixture
def many(tmp_path):
    """A folder in which every person has a folder: runs of four machines, others of other settings, and unreadable ones."""
    for kind in ("machines", "before-and-after", "inference", "unreadable"):
        golden_archives.unpack(kind, tmp_path / "unpacked" / kind)
        shutil.copytree(tmp_path / "unpacked" / kind / "runs", tmp_path / "many" / kind)
    for place, name in enumerate(("e-certificates", "f-search")):  # no copies of others
        change(
            tmp_path / "many" / "unreadable" / name / "run.json",
            lambda known, place=place: known | {"identity": f"{place}" * 16},
        )
    return tmp_path / "many"


@pytest.fixture
def run(tmp_path):
    """The folder of a run, the only one in `tmp_path / "one"`."""
    golden_archives.unpack("training", tmp_path / "unpacked")
    return Path(shutil.copytree(tmp_path / "unpacked" / "runs" / "training", tmp_path / "one" / "training"))


def contents(folder):
    return {
        path: (path.lstat().st_mtime_ns, path.is_file() and path.read_bytes()) for path in sorted(folder.rglob("*"))
    }


def page_of(path):
    return Page(path.read_text("utf-8"))


def pages_in(site):
    return [page_of(path) for path in sorted(site.rglob("*.html"))]


def test_every_readable_run_has_a_page_and_the_others_are_named(many, tmp_path, capsys):
    before = contents(many)
    assert main(["gallery", str(many), "-o", str(tmp_path / "site"), "--json"]) == 1
    out, err = capsys.readouterr()
    done = json.loads(out)
    assert contents(many) == before
    runs = {each["run"]: Path(each["page"]) for each in done["runs"]}
    wanted = {
        "run-aaaa",
        "run-bbbb",
        "run-cccc",
        "run-dddd",
        "before",
        "after",
        "noisy",
        "elsewhere",
        "inferred",
        "inference",
    }
    assert wanted <= runs.keys()
    assert {path for path in (tmp_path / "site").rglob("*") if path.is_file()} == {Path(done["index"]), *runs.values()}
    assert done["copies"] == []
    assert err.splitlines() == [f"steelyard: {sentence}" for sentence in done["left_out"]]
    for name in ("a-older", "b-newer", "c-cut", "d-foreign", "e-certificates"):
        assert sum(f"{many / 'unreadable' / name} was left out: " in line for line in err.splitlines()) == 1, name
    index = page_of(Path(done["index"]))
    check_policy(index, scripts=1)
    links = {each.words: each.attributes["href"] for each in index.all("a") if "/" in each.attributes["href"]}
    assert links == {name: path.relative_to(tmp_path / "site").as_posix() for name, path in runs.items()}
    for name in ("run-aaaa", "inference"):
        page = page_of(runs[name])
        check_policy(page, scripts=2)
        assert f"in run {name} with" in page.text()


def test_all_runs_can_be_shown_again_and_pages_of_runs_that_are_gone_are_removed(many, tmp_path, capsys):
    shutil.rmtree(many / "unreadable")
    site = tmp_path / "deep" / "site"
    assert main(["gallery", str(many), "-o", str(site)]) == 0
    assert capsys.readouterr().out == f"{site / 'index.html'}\n"
    first = contents(site)
    shutil.rmtree(many / "machines" / "run-cccc")
    gallery.write([many], site)
    gone = {path.name for path in first} - {path.name for path in contents(site)}
    assert len(gone) == 1
    assert gone.pop().startswith("run-cccc-")
    assert "Processor cccc" in first[site / "index.html"][1].decode()
    assert "Processor cccc" not in (site / "index.html").read_text()


def test_a_run_and_its_bundle_are_shown_once(run, tmp_path, capsys):
    bundle.write(run, run.parent / "by-somebody" / "out")
    (victim, *_) = sorted(run.glob("trials/*"))
    early = Path(shutil.copytree(run, run.parent / "z-earlier"))
    shutil.rmtree(early / "trials" / victim.name)
    assert main(["gallery", str(run.parent), "-o", str(tmp_path / "site"), "--json"]) == 0
    done = json.loads(capsys.readouterr().out)
    assert len(done["runs"]) == 1
    assert sorted(each.partition(" is a copy of ")[0] for each in done["copies"]) == [
        str(path)
        for path in sorted({run, run.parent / "by-somebody" / "out", early} - {Path(done["runs"][0]["folder"])})
    ]


def test_different_runs_of_one_name_are_both_shown(run, tmp_path):
    other = Path(shutil.copytree(run, tmp_path / "one" / "deeper" / "training"))
    change(other / "run.json", lambda known: known | {"identity": "ab" * 8})
    done = gallery.write([run.parent], tmp_path / "site")
    assert sorted(done.pages) == ["training", "training-00112233"] or sorted(done.pages) == [
        "training",
        "training-abababab",
    ]
    assert {path.name for path in done.pages.values()} == {"training-00112233.html", "training-abababab.html"}
    assert set(done.folders.values()) == {run, other}


def test_nothing_private_is_in_any_file_of_a_site(run, tmp_path, monkeypatch):
    user, host, node, word = "abqcdez1", "fgqhijz2", "klqmnoz3", "pqqrstz4"
    planted(run, user, host, node, word)
    run.rename(run.with_name(f"by-{user}-on-{word}"))
    monkeypatch.setattr("platform.node", lambda: f"{host}.example.lan")
    done = gallery.write([run.parent], tmp_path / "site", [word])
    assert len(done.pages) == 1
    for path in [each for each in done.folder.rglob("*") if each.is_file()]:
        content = re.sub(rb'id="library">[^<]*', b"", path.read_bytes()) + path.name.encode()
        for private in (user, host, node, word, "/home/", "/mnt/", "pro jects", "10.1.2.3", tempfile.gettempdir()):
            assert not any(form in content for form in forms(private)), (path, private)
    (name,) = done.pages
    assert name == "by-USER-on-HIDDEN"
    assert f"Run {name}" in page_of(done.pages[name]).text() or f"in run {name}" in page_of(done.pages[name]).text()


@pytest.mark.parametrize(
    "name",
    [
        HOSTILE.replace("/", ""),
        "-rf",
        "a b'c",
        "new\nline",
        "x" * 200,
        "名前",
        "index.html",
        "%2e%2e",
        "CON",
    ],
)
def test_a_hostile_name_is_a_text_and_its_page_lies_in_the_site(name, run, tmp_path):
    run.rename(run.with_name(name))
    before = {path for path in tmp_path.rglob("*") if not path.is_relative_to(tmp_path / "site")}
    done = gallery.write([run.parent], tmp_path / "site")
    assert {path for path in tmp_path.rglob("*") if not path.is_relative_to(tmp_path / "site")} == before
    (path,) = done.pages.values()
    assert path.parent == tmp_path / "site" / "runs"
    assert re.fullmatch(r"[a-z0-9][a-z0-9._-]{0,80}\.html", path.name)
    for page in (page_of(done.index), page_of(path)):
        assert page.all("img") == []
        check_policy(page, scripts=len([each for each in page.all("script") if not each.attributes]))
    assert " ".join(name.split()) in page_of(done.index).text()


def test_hostile_texts_of_a_record_are_texts_of_the_site(run, tmp_path):
    def hostile(known):
        for variant in known["plan"]["groups"][0]["variants"]:
            variant["title"] += HOSTILE
        known["plan"]["groups"][0]["title"] = HOSTILE
        known["host"] |= {"cpu_model": HOSTILE, "system": HOSTILE, "gpus": [HOSTILE]}
        return known | {"machine": HOSTILE, "steelyard": HOSTILE, "state": HOSTILE, "identity": "../../x"}

    change(run / "run.json", hostile)
    done = gallery.write([run.parent], tmp_path / "site")
    pages = pages_in(done.folder)
    assert len(pages) == 2
    for page in pages:
        assert page.all("img") == []
        assert not [each for each in page.elements if any(name.startswith("on") for name in each.attributes)]
    assert HOSTILE in page_of(done.index).text()
    assert {path.parent for path in done.pages.values()} == {tmp_path / "site" / "runs"}


def test_names_that_cannot_be_shown_are_named_and_left_out(run, tmp_path, capsysbinary):
    for name in (b"\xff\xfe", b"y" * 201, b"\x1b[31mred"):
        shutil.copytree(run, run.parent / os.fsdecode(name))
    change(run / "run.json", lambda known: known | {"identity": "ab" * 8})
    assert main(["gallery", str(run.parent), "-o", str(tmp_path / "site")]) == 1
    err = capsysbinary.readouterr().err
    assert b"its name is not UTF-8. Rename it." in err
    assert b"its name is longer than 200 bytes. Rename it." in err
    assert b"\x1b" not in err
    assert b"\xff" not in err


@pytest.mark.parametrize("place", ["run.json", "rounds.jsonl", "trials", "report.html", "lock"])
def test_a_run_with_a_link_is_left_out(place, run, tmp_path):
    other = Path(shutil.copytree(run, run.with_name("other")))
    secret = tmp_path / "secret"
    if (run / place).is_dir():
        shutil.move(run / place, secret)
    else:
        secret.write_text((run / place).read_text() if (run / place).exists() else "secret")
        (run / place).unlink(missing_ok=True)
    (run / place).symlink_to(secret)
    change(other / "run.json", lambda known: known | {"identity": "ab" * 8})
    done = gallery.write([run.parent], tmp_path / "site")
    assert list(done.folders.values()) == [other]
    assert done.left_out == [
        f"{run} was left out: {run / place} is a link, which is not followed: put what it leads to in its place."
    ]


def test_links_in_the_folder_and_deep_in_a_run_are_not_followed(run, tmp_path):
    shutil.move(run, tmp_path / "elsewhere")
    (run.parent / "linked").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(
        UserError, match=r"No run can be shown, so no site was written. .*linked was left out: it is a link"
    ):
        gallery.write([run.parent], tmp_path / "site")
    assert not (tmp_path / "site" / "index.html").exists()
    own = tmp_path / "own"
    own.symlink_to(tmp_path / "elsewhere")  # a folder that the user names may be reached through a link
    (job, *_) = (tmp_path / "elsewhere").glob("trials/*/job.json")
    assert list(gallery.write([own], tmp_path / "site").pages) == ["own"]
    job.rename(tmp_path / "job.json")
    job.symlink_to(tmp_path / "job.json")
    with pytest.raises(UserError, match=r"job.json is a link, which is not followed"):
        gallery.write([own], tmp_path / "site")


def test_links_among_the_processes_of_certificates_are_not_read_and_do_not_matter(run, tmp_path):
    (run / "certificates" / "a").mkdir(parents=True)
    (run / "certificates" / "a" / "latest").symlink_to("/etc")
    assert list(gallery.write([run.parent], tmp_path / "site").pages) == ["training"]


@pytest.mark.parametrize(
    ("made", "sentence"),
    [
        (
            "site/mine.txt",
            "site/mine.txt is of no gallery, so nothing was written. Name a new or empty folder with -o.",
        ),
        ("site/index.html", "site/index.html is of no gallery, so nothing was written."),
        ("site/runs/mine.html/x", "site/runs/mine.html is of no gallery, so nothing was written."),
        ("site/runs/Mine.txt", "site/runs/Mine.txt is of no gallery, so nothing was written."),
        ("site", "site is no folder. Name another one with -o."),
    ],
)
def test_a_folder_with_anything_else_is_refused_and_stays(made, sentence, run, tmp_path, capsys):
    path = tmp_path / made
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("mine")
    before = contents(tmp_path)
    assert main(["gallery", str(run.parent), "-o", str(tmp_path / "site")]) == 2
    assert f"{tmp_path}/{sentence}" in capsys.readouterr().err
    assert contents(tmp_path) == before


@pytest.mark.parametrize("name", ["runs", "index.html"])
def test_a_link_in_the_site_is_refused(name, run, tmp_path):
    gallery.write([run.parent], tmp_path / "site")
    shutil.move(tmp_path / "site" / name, tmp_path / "outside")
    (tmp_path / "site" / name).symlink_to(tmp_path / "outside")
    before = contents(tmp_path)
    with pytest.raises(UserError, match=f"{name} is a link"):
        gallery.write([run.parent], tmp_path / "site")
    assert contents(tmp_path) == before


def test_a_site_inside_a_run_is_refused(run):
    with pytest.raises(UserError, match="inside the folder of the run"):
        gallery.write([run.parent], run / "site")


def test_a_folder_without_a_run_and_a_folder_that_was_one_are_sentences(run, tmp_path, capsys):
    (tmp_path / "empty").mkdir()
    assert main(["gallery", str(tmp_path / "empty"), "-o", str(tmp_path / "site")]) == 2
    assert f"There is no run in {tmp_path / 'empty'}." in capsys.readouterr().err
    assert main(["gallery", str(tmp_path / "none")]) == 2
    assert f"{tmp_path / 'none'} is no folder." in capsys.readouterr().err
    other = Path(shutil.copytree(run, run.with_name("other")))
    (other / "run.json").unlink()
    done = gallery.write([run.parent], tmp_path / "site")
    assert list(done.pages) == ["training"]
    assert done.left_out == [f"{other} was left out: it has no run.json, without which it is no run."]


def test_the_copy_that_a_page_is_made_from_is_not_named(run, tmp_path, monkeypatch):
    place = tmp_path / "te mp'&"
    place.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(place))
    change(run / "run.json", lambda known: known | {"state": "interrupted"})
    (victim, *_) = sorted(run.glob("trials/*"))
    with (victim / "events.jsonl").open("a") as file:
        file.write("garbage\n")
    done = gallery.write([run.parent], tmp_path / "site")
    for page in pages_in(done.folder):
        assert "te mp" not in re.sub('id="library">[^<]*', "", page.html)
        assert not re.search("steelyard-[a-z0-9_]{8}", page.text())
    assert list(place.iterdir()) == []
