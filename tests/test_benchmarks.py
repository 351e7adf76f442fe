"""Benchmarks run, on little."""

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
