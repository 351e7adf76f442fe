"""Files larger than the memory: what stays on the disk, for how long, and how much memory."""

import gc
import os
import signal
import subprocess
import sys
import tempfile

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from mercer import PCA, as_source, config_context, progress
from mercer.data import ArraySource, NpySource
from mercer.data.files import FileError, read_table, write_table
from mercer.data.files.storage import Banded
from tests.catalogue import others_slow


@pytest.fixture
def scratch(tmp_path, monkeypatch):
    """Return a folder of its own for temporary files."""
    folder = tmp_path / "scratch"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


def write(path, n=8_000, d=5):
    X = np.random.default_rng(0).standard_normal((n, d))
    write_table(as_source(X), path)
    return X


@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".arrow"])
def test_rows_that_do_not_fit_lie_in_a_file_that_goes_with_them(tmp_path, scratch, suffix):
    X = write(tmp_path / f"x{suffix}")
    with config_context(memory="1MiB"):
        source = as_source(tmp_path / f"x{suffix}")
        assert isinstance(source, NpySource)
        assert_array_equal(source.collect(), X)
        others = [source.weighted(np.ones(len(X))), source.transposed()]
        others.append(source.map(lambda block: block.rows, 5))
        del source
        gc.collect()
        assert_array_equal(others[2].collect(), X)
        assert_array_equal(others[1].collect(), X.T)
    assert len(list(scratch.iterdir())) == 1
    del others
    gc.collect()
    assert list(scratch.iterdir()) == []


def test_rows_that_fit_stay_in_memory(tmp_path, scratch):
    write(tmp_path / "x.csv", n=100)
    assert isinstance(as_source(tmp_path / "x.csv"), ArraySource)
    assert list(scratch.iterdir()) == []


def test_an_error_leaves_nothing(tmp_path, scratch):
    write(tmp_path / "x.csv")
    with (tmp_path / "x.csv").open("a") as file:
        file.write("1,2\n")
    with config_context(memory="1MiB"), pytest.raises(FileError, match="line 8002: 2 fields"):
        as_source(tmp_path / "x.csv")
    gc.collect()
    assert list(scratch.iterdir()) == []


READ = """
import signal, sys, tempfile
signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored in the background of a shell
from mercer import PCA, config_context, set_config
from mercer.data.files import read_table
set_config(memory="1MiB")
"""


def run(code, *arguments, **options):
    return subprocess.Popen(
        [sys.executable, "-c", READ + code, *map(str, arguments)],
        stderr=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        **options,
    )


def test_the_end_of_the_process_leaves_nothing(tmp_path, scratch):
    write(tmp_path / "x.csv")
    code = "kept = read_table(sys.argv[1])\nprint(kept.source.path.exists())"
    done = run(code, tmp_path / "x.csv", env={**os.environ, "TMPDIR": str(scratch)})
    assert done.communicate()[0] == "True\n"
    assert list(scratch.iterdir()) == []


def test_ctrl_c_leaves_nothing(tmp_path, scratch):
    write(tmp_path / "x.csv")
    code = """
from mercer import progress
class Slow(progress.Listener):
    def begin(self, label, total): return label
    def advance(self, handle, steps):
        import time, os
        if os.listdir(tempfile.gettempdir()):
            print("now", flush=True); time.sleep(600)
    def end(self, handle): pass
with progress.session(Slow()):
    read_table(sys.argv[1])
"""
    done = run(code, tmp_path / "x.csv", env={**os.environ, "TMPDIR": str(scratch)})
    assert done.stdout.readline() == "now\n"
    assert len(list(scratch.iterdir())) == 1
    done.send_signal(signal.SIGINT)
    assert "KeyboardInterrupt" in done.communicate(timeout=300)[1]
    assert list(scratch.iterdir()) == []


@pytest.mark.slow
def test_a_forked_process_leaves_its_parents_rows_alone(tmp_path, scratch):
    X = write(tmp_path / "x.csv")
    code = """
import os
table = read_table(sys.argv[1])
child = os.fork()
if child == 0:
    sys.exit(0)
os.waitpid(child, 0)
print(table.source.collect().sum())
"""
    done = run(code, tmp_path / "x.csv", env={**os.environ, "TMPDIR": str(scratch)})
    assert_allclose(float(done.communicate()[0]), X.sum(), rtol=1e-9)
    assert list(scratch.iterdir()) == []


def test_no_room_on_the_disk(tmp_path, scratch):
    write(tmp_path / "x.csv")
    code = """
import resource
resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, 200_000))
try:
    read_table(sys.argv[1])
except OSError as error:
    print(error)
"""
    done = run(code, tmp_path / "x.csv", env={**os.environ, "TMPDIR": str(scratch)})
    out = done.communicate()[0]
    assert f"no room in {scratch}" in out
    assert "TMPDIR" in out
    assert list(scratch.iterdir()) == []


def test_reading_tells_how_far_it_is(tmp_path):
    class Heard(progress.Listener):
        def __init__(self):
            self.done = {}

        def begin(self, label, total):
            self.done[label] = [0, total]
            return label

        def advance(self, handle, steps):
            self.done[handle][0] += steps

        def end(self, handle):
            pass

    for suffix in (".csv", ".parquet", ".arrow", ".npz"):
        path = tmp_path / f"x{suffix}"
        np.savez(path, np.ones((10, 2))) if suffix == ".npz" else write(path)
        heard = Heard()
        with progress.session(heard):
            read_table(path)
        done, total = heard.done["read"]
        assert total == path.stat().st_size
        assert 0.5 * total < done <= 1.5 * total


MEASURE = """
from benchmarks.peak import measure
with tempfile.TemporaryDirectory() as folder:
    with open(f"{folder}/x.csv", "w") as file:
        file.write("a,b\\n" + "1.5,2.5\\n-1,2\\n" * 500)
    PCA(2).fit(f"{folder}/x.csv")
set_config(memory=sys.argv[2])
print(measure(lambda: PCA(3).fit(sys.argv[1]))["growth"])
"""


@pytest.mark.skipif(not os.path.exists("/proc/self/status"), reason="reads /proc")
@pytest.mark.parametrize("suffix", others_slow([".csv", ".parquet", ".arrow"], ".csv"))
def test_memory_stays_inside_the_budget(tmp_path, suffix):
    n, d, budget = 150_000, 24, 96 * 2**20  # 27 MiB of numbers, 70 MB of text
    X = np.random.default_rng(0).standard_normal((n, d))
    columns = {f"x{i}": X[:, i] for i in range(d)}
    path = tmp_path / f"x{suffix}"
    if suffix == ".csv":
        pa.csv.write_csv(pa.table(columns), path)
    elif suffix == ".parquet":
        pa.parquet.write_table(pa.table(columns), path, row_group_size=n)
    else:
        write_table(as_source(X), path, names=list(columns))
    out, problems = run(MEASURE, path, "96MiB").communicate()
    assert out, problems
    assert int(out) < budget, f"{int(out) / 2**20:.0f} MiB"
    with config_context(memory="96MiB"):
        source = as_source(path)
        # The batches of the Arrow file are small: they are read where they lie.
        assert isinstance(source, Banded if suffix == ".arrow" else NpySource)
        assert_array_equal(source.take([0, n // 2, n - 1]), X[[0, n // 2, n - 1]])
        found = PCA(3).fit(source).explained_variance_
    assert_allclose(found, PCA(3).fit(X).explained_variance_, rtol=1e-12)
