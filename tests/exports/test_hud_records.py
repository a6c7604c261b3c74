"""Benchmark records for PyTorch HUD, read by DuckDB with the types of HUD's table."""

from __future__ import annotations

import json

import duckdb
import golden_archives
import pytest

import steelyard
from steelyard.exports import hud

MAP = "MAP(VARCHAR, VARCHAR)"
# pytorch/test-infra, clickhouse_db_schema/oss_ci_benchmark_v3/schema.sql
TABLE = {
    "benchmark": f"STRUCT(name VARCHAR, mode VARCHAR, dtype VARCHAR, extra_info {MAP})",
    "model": f"STRUCT(name VARCHAR, type VARCHAR, backend VARCHAR, origins VARCHAR[], extra_info {MAP})",
    "inputs": f"MAP(VARCHAR, STRUCT(dtype VARCHAR, extra_info {MAP}))",
    "dependencies": f"MAP(VARCHAR, STRUCT(repo VARCHAR, branch VARCHAR, sha VARCHAR, version VARCHAR, extra_info {MAP}))",
    "runners": "STRUCT(name VARCHAR, type VARCHAR, cpu_info VARCHAR, cpu_count UINTEGER, avail_mem_in_gb UINTEGER, gpu_info VARCHAR, "
    f"gpu_count UINTEGER, extra_info {MAP})[]",
    "metric": f"STRUCT(name VARCHAR, benchmark_values FLOAT[], extra_info {MAP})",
}


def test_duckdb_reads_the_records_with_the_types_of_the_table(recorded, tmp_path):
    recorded("training")
    run = steelyard.load("training")
    (path,) = run.export("hud", tmp_path / "records.json")
    columns = ", ".join(f"{name}: '{kind}'" for name, kind in TABLE.items())
    found = duckdb.sql(
        "SELECT model.backend, list_avg(metric.benchmark_values), metric.extra_info['low'], benchmark.extra_info['certificate'], "
        "dependencies['fake'].version, runners[1].cpu_info "
        f"FROM read_json('{path}', columns={{{columns}}}) "
        "WHERE metric.name = 'step time' AND map_contains(inputs, 'pipeline') ORDER BY 1"
    ).fetchall()
    assert [(row[0], row[3], row[5]) for row in found] == [
        ("dummy/scripted", "certified", "Test Processor"),
        ("fake/scripted", "certified", "Test Processor"),
    ]
    assert found[1][4] == "1.2.3"
    standings = {row["contender"]: row for row in run.table() if row["input"] == "pipeline"}
    for backend, mean, low, *_ in found:
        assert mean == pytest.approx(standings[backend]["value"], rel=1e-3)
        assert float(low) == pytest.approx(standings[backend]["low"])


@pytest.mark.parametrize("kind", golden_archives.kinds())
def test_every_kind_has_records_without_more_fields(kind, readable):
    for run in readable(kind):
        found = json.loads(hud.text(run.view()))
        for one in found:
            assert one.keys() == TABLE.keys()
            assert one["metric"]["benchmark_values"]
            texts = [one[part]["extra_info"] for part in ("benchmark", "model", "metric")]
            assert all(isinstance(value, str) for part in texts for value in part.values())
        measured = {part.group for part in run.view().comparisons if any(each.trials for each in part.contenders)}
        assert {one["benchmark"]["extra_info"]["group"] for one in found} == measured
