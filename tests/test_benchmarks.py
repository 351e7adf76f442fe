"""Benchmarks run, on little."""

import numpy as np
import pytest

pytest.importorskip("psutil", reason="benchmarks need psutil: mercer[bench]")


@pytest.mark.slow
def test_basis():
    from benchmarks import basis, report

    rows = basis.run(quick=True)
    best = [row for row in rows if row.measure == "E_emp of Subset / best other"]
    assert len(best) == 3
    assert all(row.ours <= 1.0 for row in best)
    assert len(report.table(rows).splitlines()) == len(rows) + 1


@pytest.mark.slow
def test_ways():
    from benchmarks import report, ways

    rows = ways.run(1, quick=True)
    passes = {row.case.split()[-1]: row.ours for row in rows if row.measure.startswith("passes to")}
    if passes:  # USPS is there
        assert passes["KHA-SMD"] < passes["KHA"] < np.inf
    time, growth = rows[-2:]
    assert time.peer > 0 < time.ours
    assert growth.measure == "skipped" or 0 < growth.ours < growth.must
    assert len(report.table(rows).splitlines()) == len(rows) + 1


@pytest.mark.slow
def test_faces():
    from benchmarks import faces, report

    rows = faces.run(quick=True)
    if rows[0].measure == "skipped":
        pytest.skip(rows[0].note)
    assert len(rows) == 4 * 10
    printed = [row.ours for row in rows if "hashing, as printed" in row.case]
    assert max(abs(diff - 0.55) for diff in printed) <= 0.1
    assert len(report.table(rows).splitlines()) == len(rows) + 1


@pytest.mark.slow
def test_applications():
    from benchmarks import applications, report

    rows = applications.run(1, quick=True)
    if rows[0].measure == "skipped":
        pytest.skip(rows[0].note)
    time, error = rows
    assert time.peer > 0 < time.ours
    assert error.peer < error.ours < 0.3
    assert len(report.table(rows).splitlines()) == len(rows) + 1


@pytest.mark.slow
def test_files():
    from benchmarks import files, report

    rows = files.run(1, quick=True)
    assert [row.measure for row in rows] == ["time"] * 3 + ["memory growth"] * 2
    assert all(row.ours > 0 and row.peer > 0 for row in rows)
    assert "polars.read_csv" in report.table(rows)


@pytest.mark.slow
def test_beyond():
    from benchmarks import beyond, report

    rows = beyond.run(1, quick=True)
    if rows[0].measure == "skipped":
        pytest.skip(rows[0].note)
    assert [row.measure for row in rows] == ["time", "memory growth"] * 2
    assert all(row.ours > 0 for row in rows)
    assert all(row.ours < 2**30 for row in rows[1::2])
    assert "reads 1." in rows[0].note or "reads 2." in rows[0].note
    assert len(report.table(rows).splitlines()) == len(rows) + 1


@pytest.mark.slow
def test_certificates():
    from benchmarks import certificates, report

    rows = certificates.run(1, quick=True)
    gaps = [row for row in rows if row.measure == "certified gap"]
    if not gaps:
        pytest.skip(rows[0].note)
    assert all(0.0 <= row.ours < 1.0 for row in gaps)
    assert all(row.peer <= row.ours + 1e-6 for row in gaps if row.peer is not None)
    assert len(report.table(rows).splitlines()) == len(rows) + 1


@pytest.mark.slow
def test_single_cell():
    from benchmarks import report, single_cell

    rows = single_cell.run(1, quick=True)
    if rows[0].measure == "skipped":
        pytest.skip(rows[0].note)
    assert all(row.met for row in rows if row.measure != "time")
    assert len(report.table(rows).splitlines()) == len(rows) + 1
