"""The tidy table as CSV and Parquet, read back by pandas, pyarrow and DuckDB; the page of its columns; the queries of the docs."""

from __future__ import annotations

import contextlib
import csv
import io
import json
import re
import sys
from pathlib import Path

import duckdb
import golden_archives
import pandas as pd
import pyarrow.parquet
import pytest

import steelyard
from steelyard.errors import UserError
from steelyard.exports import csv_table, tidy_columns
from steelyard.results.quantities import QUANTITIES

DOCS = Path(__file__).parents[2] / "docs"


@pytest.fixture
def run(recorded):
    recorded("training")
    return steelyard.load("latest")


def test_pandas_reads_the_csv_file_as_the_tidy_table(run, tmp_path):
    (path,) = run.export("csv", tmp_path / "values.csv")
    texts = {name: str for name, column in tidy_columns.COLUMNS.items() if column.kind in ("text", "JSON")}
    frame = pd.read_csv(path, dtype=texts, keep_default_na=False)
    tidy = run.tidy()
    assert list(frame.columns) == list(tidy.names) == list(tidy_columns.COLUMNS)
    assert frame.to_dict("records") == tidy.rows
    assert frame["counts"].dtype == bool


def test_pyarrow_and_duckdb_read_the_parquet_file_with_its_types(run, tmp_path):
    (path,) = run.export("parquet", tmp_path)
    assert path == tmp_path / "training.parquet"
    assert pyarrow.parquet.read_table(path).to_pylist() == run.tidy().rows
    types = dict(duckdb.sql(f"SELECT column_name, column_type FROM (DESCRIBE SELECT * FROM '{path}')").fetchall())
    assert (types["machine"], types["round"], types["value"], types["counts"]) == (
        "VARCHAR",
        "BIGINT",
        "DOUBLE",
        "BOOLEAN",
    )


def test_a_table_without_rows_has_its_columns(recorded, tmp_path):
    recorded("nothing")
    run = steelyard.load("nothing")
    (path,) = run.export("parquet", tmp_path / "values.parquet")
    assert pyarrow.parquet.read_table(path).schema.names[: len(tidy_columns.COLUMNS)] == list(tidy_columns.COLUMNS)
    (path,) = run.export("csv", tmp_path / "values.csv")
    assert path.read_text().splitlines()[0].split(",") == list(tidy_columns.COLUMNS)


@pytest.mark.parametrize("kind", golden_archives.kinds())
def test_every_kind_has_the_columns_of_the_page(kind, readable):
    for run in readable(kind):
        view = run.view()
        lines = list(csv.DictReader(io.StringIO(csv_table.text(view))))
        assert len(lines) == len(run.tidy())
        assert all(line.keys() == tidy_columns.COLUMNS.keys() for line in lines)


def test_a_spreadsheet_runs_no_text_of_a_record(monkeypatch):
    names = ["=1+1", "+1", "-1", "@x", "\tx", "plain", "a=1"]
    monkeypatch.setattr(tidy_columns, "rows", lambda _: [{"title": name, "value": -1.5} for name in names])
    found = list(csv.DictReader(io.StringIO(csv_table.text(None))))
    assert [line["title"] for line in found] == ["'=1+1", "'+1", "'-1", "'@x", "'\tx", "plain", "a=1"]
    assert {line["value"] for line in found} == {"-1.5"}


def test_the_page_of_the_columns_is_up_to_date(tmp_path):
    assert (DOCS / "reference" / "tidy-table.md").read_text() == tidy_columns.markdown(), "write it anew: make tables"
    assert all(f"| {name} |" in tidy_columns.markdown() for name in QUANTITIES)
    assert tidy_columns.main([str(tmp_path / "page.md")]) == 0
    assert (tmp_path / "page.md").read_text() == tidy_columns.markdown()


def test_a_missing_library_is_one_sentence(run, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(UserError) as raised:
        run.export("parquet", tmp_path / "x.parquet")
    assert str(raised.value) == "The format parquet needs the package pyarrow: pip install 'steelyard[export]'"
    assert not list(tmp_path.glob("*.parquet"))


BLOCK = re.compile(r"^```(?P<language>[\w -]+)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)


def test_the_five_queries_of_the_page_give_what_it_says(recorded, tmp_path, monkeypatch):
    recorded("training")
    monkeypatch.chdir(tmp_path)
    steelyard.load("training").export("parquet", "results.parquet")
    blocks = [
        (found["language"], found["text"]) for found in BLOCK.finditer((DOCS / "pandas-and-duckdb.md").read_text())
    ]
    names: dict[str, object] = {}
    queries = 0
    for place, (language, text) in enumerate(blocks):
        if language == "python":
            printed = io.StringIO()
            with contextlib.redirect_stdout(printed):
                exec(compile(text, "page", "exec"), names)
        elif language == "sql":
            printed = io.StringIO(f"{duckdb.sql(text)}\n")
        else:
            continue
        if blocks[place + 1 : place + 2] and blocks[place + 1][0] == "text":
            assert [line.rstrip() for line in printed.getvalue().strip().splitlines()] == [
                line.rstrip() for line in blocks[place + 1][1].strip().splitlines()
            ]
            queries += 1
    assert queries == 5


def test_json_columns_are_json(run):
    kinds = {name for name, column in tidy_columns.COLUMNS.items() if column.kind == "JSON"}
    for name in kinds:
        assert isinstance(json.loads(run.tidy()[0][name]), dict | list)
