"""A bundle can be published: it holds nothing private, reads as the run does, and is what its hashes say."""

from __future__ import annotations

import hashlib
import json
import subprocess
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import golden_archives
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from private_record import change, forms, planted

from steelyard import analysis
from steelyard.errors import UserError
from steelyard.exports import bundle, private_words
from steelyard.results import record

# Names that no word of a record has.
NAME = st.from_regex(r"\A[a-z]{2}q[a-z]{3,6}z[0-9]{1,2}\Z")


@given(user=NAME, host=NAME, node=NAME, word=NAME)
@settings(max_examples=4, deadline=None, phases=[Phase.generate], suppress_health_check=[HealthCheck.too_slow])
def test_no_private_word_is_in_any_file(user, host, node, word):
    with TemporaryDirectory() as name, pytest.MonkeyPatch.context() as patch:
        golden_archives.unpack("training", Path(name))
        run = Path(name, "runs", "training")
        planted(run, user, host, node, word)
        patch.setattr("platform.node", lambda: f"{host}.example.lan")
        done = bundle.write(run, Path(name, "out"))
        assert done.not_hidden == []
        files = [path for path in done.folder.rglob("*") if path.is_file()]
        assert len(files) > 30
        for path in files:
            content = path.read_bytes() + path.relative_to(done.folder).as_posix().encode()
            for private in (user, host, node, word, "/home/", "/mnt/", "pro jects", "10.1.2.3"):
                assert not any(form in content for form in forms(private)), (path, private)
        assert analysis.view(done.folder).comparisons[0].contenders[0].standings


@pytest.mark.parametrize("kind", golden_archives.kinds())
def test_a_bundle_of_every_kind_shows_the_same_numbers(kind, readable, tmp_path):
    for run in readable(kind):
        before = sorted(run.folder.rglob("*"))
        done = bundle.write(run.folder, tmp_path / "out" / run.name)
        assert sorted(run.folder.rglob("*")) == before
        ours, theirs = run.view(), analysis.view(done.folder)
        assert len(ours.warnings) == len(theirs.warnings)
        for left, right in zip(ours.comparisons, theirs.comparisons, strict=True):
            assert left.sentences == right.sentences
            for one, other in zip(left.contenders, right.contenders, strict=True):
                for name in ("variant", "standings", "latencies", "losses", "evaluation"):
                    assert repr(getattr(one, name)) == repr(getattr(other, name)), name
                assert one.profile is None or one.profile.breakdown == other.profile.breakdown


def test_the_hashes_are_those_of_the_files(recorded, tmp_path):
    run = recorded("training") / "training"
    done = bundle.write(run, tmp_path / "out")
    assert "README.md" in done.files
    checked = subprocess.run(
        ["sha256sum", "--check", "--quiet", "SHA256SUMS"], cwd=done.folder, check=False, capture_output=True
    )
    assert checked.returncode == 0, checked.stdout
    certificates = json.loads((done.folder / "certificates.json").read_text())
    text = json.dumps(next(iter(certificates.values())), sort_keys=True, separators=(",", ":"))
    readme = (done.folder / "README.md").read_text()
    assert f"| {hashlib.sha256(text.encode()).hexdigest()} |" in readme
    assert "```\nsteelyard run -f fake -f dummy\n```" in readme
    listed = (done.folder / "SHA256SUMS").read_text().splitlines()
    assert {line.split("  ", 1)[1] for line in listed} == {*done.files} - {"SHA256SUMS"}


def test_a_word_of_the_record_stays_and_is_named(recorded, tmp_path, capsys):
    from steelyard.cli.main import main

    recorded("training")
    assert main(["bundle", "training", "-o", str(tmp_path / "out"), "--hide", "line", "--hide", "processor"]) == 0
    out, err = capsys.readouterr()
    assert out == f"{tmp_path / 'out'}\n"
    assert "Not hidden, because names in the record consist of it: line." in err
    assert "Processor" not in (tmp_path / "out" / "README.md").read_text()
    assert main(["report", str(tmp_path / "out")]) == 0


def test_a_case_that_changes_has_a_new_id_everywhere(recorded, tmp_path):
    run = recorded("training") / "training"

    def edit(known: dict[str, Any]) -> dict[str, Any]:
        for variant in known["plan"]["groups"][0]["variants"]:
            variant["case"]["data"] = {"kind": "table", "folder": "/mnt/abc"}
        return known

    before = {variant.case.id: variant.name for variant in record.read(run).plan.variants}
    change(run / "run.json", edit)
    now = {variant.name: variant.case.id for variant in record.read(run).plan.variants}
    change(run / "certificates.json", lambda known: {now[before[key]]: value for key, value in known.items()})
    for job in run.glob("trials/*/job.json"):
        change(job, lambda known: known | {"case": known["case"] | {"data": {"kind": "table", "folder": "/mnt/abc"}}})
    view = analysis.view(bundle.write(run, tmp_path / "out").folder)
    assert {each.proof.state for each in view.comparisons[0].contenders} == {"certified"}
    assert {each.case.id for each in view.comparisons[0].contenders}.isdisjoint(now.values())


def test_a_folder_that_exists_or_is_the_run_is_refused(recorded, tmp_path):
    run = recorded("training") / "training"
    (tmp_path / "there").mkdir()
    with pytest.raises(UserError, match="exists already"):
        bundle.write(run, tmp_path / "there")
    with pytest.raises(UserError, match="inside the folder of the run"):
        bundle.write(run, run / "bundle")
    assert not (run / "bundle").exists()


def test_a_word_that_is_left_leaves_no_bundle(recorded, tmp_path, monkeypatch):
    run = recorded("training") / "training"
    (run / "rounds.jsonl").write_text("")
    monkeypatch.setattr(bundle.bundle_readme, "text", lambda *_: "by Somebody")
    with pytest.raises(UserError, match=r"A private word is left in README\.md"):
        bundle.write(run, tmp_path / "out", ["somebody"])
    assert not (tmp_path / "out").exists()


def test_a_damaged_array_is_left_out_of_the_bundle(recorded, tmp_path):
    run = recorded("training") / "training"
    victim = next(run.glob("trials/*/predictions"))
    (victim / "tensors.bin").write_bytes(b"short")
    done = bundle.write(run, tmp_path / "out")
    assert not (done.folder / victim.relative_to(run)).exists()


@pytest.mark.parametrize(
    ("text", "hidden"),
    [
        ("fake/scripted is 1.2x faster, 300 samples/s", "fake/scripted is 1.2x faster, 300 samples/s"),
        ("/home/x/y z", "PATH-1"),
        ("see /a/b (line 3), ~/c and ../d/e.", "see PATH-1 (line 3), PATH-2 and PATH-3."),
        ("https://github.com/a/b at http://mars:80/x", "https://github.com/a/b at ADDRESS"),
        ("data:/srv/x and /srv/x", "data:PATH-1 and PATH-1"),
        ("Mars and marsh, mars_2", "HOST and marsh, HOST_2"),
        ("C:\\Users\\x\\y.txt", "PATH-1"),
        ("192.168.0.7 has 2.21.0.1", "ADDRESS has 2.21.0.1"),
    ],
)
def test_paths_hosts_and_addresses_are_hidden_and_names_of_contenders_are_not(text, hidden):
    assert private_words.Hiding({"mars": "HOST"}).text(text) == hidden


def test_equal_paths_are_equal_words():
    hiding = private_words.Hiding({})
    assert hiding.value({"/a/b": ["/a/b", "/c"]}) == {"PATH-1": ["PATH-1", "PATH-2"]}


def test_a_command_keeps_its_options_and_loses_its_places(recorded):
    known = record.read(recorded("training") / "training")
    typed = "steelyard run ./mine.toml -f fake --env=fake=/opt/x/python --store postgresql://me:pw@h/d --rounds 3"
    hidden = private_words.command(replace(known, command=typed))
    assert hidden.split()[:5] == ["steelyard", "run", "PATH", "-f", "fake"]
    assert hidden.endswith("--rounds 3")
    assert not any(word in hidden for word in ("opt", "pw", "me:", "mine"))
    assert private_words.command(replace(known, command="it's no command")) == ""
