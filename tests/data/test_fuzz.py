"""Files that were damaged end in a clean error or in a table, whatever the damage."""

import gzip
import io
import json
import subprocess
import sys
import time
import warnings
from pathlib import Path

import numpy as np
import PIL.Image
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
import pytest
import scipy.io
import scipy.sparse

from mercer.data.errors import BudgetError
from mercer.data.files import FileError, MissingValues, read_table
from tests.catalogue import others_slow

CASES = {".csv": 5200, ".npy": 3600, ".npz": 700, ".mtx": 800, ".arrow": 500, ".parquet": 500}
CASES |= {".gz": 400, ".png": 400}
FEW = 8  # the first of so many in make test; all where slow tests run
# Damage can make the HDF5 library itself loop for ever (seen with seed 3, in the attribute that
# names the layout): few files, in a process of its own, from a seed that does not.
H5AD = 60

TOKENS = [
    *(b",", b";", b"\t", b"|", b"\n", b"\r", b"\r\n", b'"', b'""', b"'", b"\0", b" ", b"\\"),
    *(b"NA", b"nan", b"-inf", b"1e999", b"1e-999", b"0x1F", b"1,5", b"1_000", b"true", b"=cmd()"),
    *(b"\xff\xfe", b"\xef\xbb\xbf", b"\xe9", b"\xed\xa0\x80", "😀".encode(), b"__import__('os')"),
    *(b"9" * 400, b"-1", b"0", b"2147483648", b"9223372036854775808", b"999999999999", b"1" * 30),
    *(b"'shape': (", b"'|O'", b"'<f8'", b"True", b"(", b")", b"[" * 50, b"{", b"}", b"lambda:0"),
]


def originals() -> dict[str, list[bytes]]:
    """Return small files of every format, whole."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((8, 3)).round(3)
    S = scipy.sparse.random_array((9, 5), density=0.3, rng=1)
    found: dict[str, list[bytes]] = {suffix: [] for suffix in CASES}
    head, body = "a,b,c\n", "\n".join(",".join(map(str, row)) for row in X)
    found[".csv"] = [
        (head + body).encode(),
        body.replace(",", ";").encode(),
        b'"",id,"x ""y""",flag\r\n1,a,"1.5",true\r\n2,"b\n,c",2.5,false\r\n3,NA,,true\r\n',
        b"# made, by\n#hand\nid,a,b\n17,1.5,2\n# so, 1\n18,2.5,3\n19,,4\n",
        b'"a" "b"\n"r 1" 1.5 2\n"r2" 2.5 3\n',
    ]
    found[".gz"] = [gzip.compress(text) for text in found[".csv"]]
    for array in (X, np.asfortranarray(X.astype("f4")), (X * 10).astype(">i2")):
        found[".npy"].append(_saved(np.save, array))
    found[".npz"] = [_saved(np.savez, X), _saved(np.savez_compressed, X)]
    found[".npz"] += [_saved(scipy.sparse.save_npz, S.asformat(kind)) for kind in ("csr", "coo")]
    found[".mtx"] = [_saved(scipy.io.mmwrite, matrix) for matrix in (X, S)]
    table = pa.table({"a": X[:, 0], "b": X[:, 1].astype("f4"), "t": list("abcdefgh")})
    for compression in ("uncompressed", "lz4"):
        file = io.BytesIO()
        pyarrow.feather.write_feather(table, file, compression=compression)
        found[".arrow"].append(file.getvalue())
    file = io.BytesIO()
    with pa.ipc.new_stream(file, table.schema) as stream:
        stream.write_table(table)
    found[".arrow"].append(file.getvalue())
    for compression in ("none", "snappy"):
        file = io.BytesIO()
        pyarrow.parquet.write_table(table, file, compression=compression)
        found[".parquet"].append(file.getvalue())
    for pixels in (np.arange(48, dtype="u1").reshape(8, 6), np.ones((3, 5, 3), "u1")):
        image = PIL.Image.fromarray(pixels)
        found[".png"].append(_saved(lambda file, image: image.save(file, "png"), image))
    return found


def _saved(save, array) -> bytes:
    file = io.BytesIO()
    save(file, array)
    return file.getvalue()


def mutated(data: bytes, rng: np.random.Generator) -> bytes:
    """Damage a file in one to four places."""
    out = bytearray(data)
    for _ in range(rng.integers(1, 5)):
        # Headers are short, and most of what can go wrong is there.
        reach = len(out) if rng.uniform() < 0.6 else min(len(out), 160)
        at, kind = int(rng.integers(0, reach + 1)), rng.integers(0, 7)
        if kind == 0 and at < len(out):
            out[at] ^= 1 << int(rng.integers(0, 8))
        elif kind == 1 and at < len(out):
            out[at] = int(rng.integers(0, 256))
        elif kind == 2:
            del out[at:]
        elif kind == 3:
            del out[at : at + int(rng.integers(1, 12))]
        elif kind == 4:
            out[at:at] = out[at : at + int(rng.integers(1, 60))]
        elif kind == 5:
            out[at : at + 4] = rng.choice([0, 1, 0x7F, 0xFF], 4).astype(np.uint8).tobytes()
        else:
            token = TOKENS[rng.integers(0, len(TOKENS))]
            out[at : at + int(rng.integers(0, 2)) * len(token)] = token
    return bytes(out)


def outcome(path: Path) -> str:
    """Read a file; return how it ended, which must be one of a few ways."""
    size = path.stat().st_size
    options = {"remarks": size % 2 == 0, "missing": "refuse" if size % 3 else "keep"}
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            table = read_table(path, **options)
    except (FileError, MissingValues, BudgetError) as error:
        return type(error).__name__ if str(error) else "an error without a word"
    n, d = table.source.shape
    assert n > 0
    assert d > 0
    assert set(table.missing) <= set(table.source.names or map(str, range(d)))
    if n * d < 10**6:
        assert np.asarray(table.source.collect()).shape == (n, d)
    return "table"


@pytest.mark.parametrize("part", others_slow([FEW, 1], FEW))
@pytest.mark.parametrize("suffix", CASES)
def test_damaged_files(tmp_path, suffix, part):
    rng = np.random.default_rng(sum(suffix.encode()))
    files, path, ends = originals()[suffix], tmp_path / f"x{suffix}", dict[str, int]()
    longest = 0.0
    for file in files:
        path.write_bytes(file)
        assert outcome(path) in ("table", "MissingValues")
    count = CASES[suffix] // part
    for i in range(count):
        data = mutated(files[i % len(files)], rng)
        path.write_bytes(data)
        begin = time.process_time()
        try:
            end = outcome(path)
        except BaseException as error:
            raise AssertionError(f"case {i}: {data!r}") from error
        longest = max(longest, time.process_time() - begin)
        ends[end] = ends.get(end, 0) + 1
    assert longest < 60.0  # of the processor: no damage makes it go on and on
    assert ends.keys() <= {"FileError", "MissingValues", "BudgetError", "table"}
    assert ends["FileError"] > count // 50  # the damage is felt
    if suffix != ".gz":  # whose checksum finds it
        assert ends["table"] > count // 100  # and is not always total


def test_there_are_enough_of_them():
    assert sum(CASES.values()) >= 10_000


def damaged_h5ad(folder: str) -> None:
    """Read damaged AnnData files, and print how each ended; runs in a process of its own."""
    from tests.data.test_formats import write_h5ad

    rng, path, ends = np.random.default_rng(4), Path(folder) / "x.h5ad", dict[str, int]()
    X, files = np.random.default_rng(0).poisson(0.7, (12, 4)).astype("f4"), []
    for dense in (True, False):
        write_h5ad(path, X, dense)
        files.append(path.read_bytes())
    for i in range(H5AD):
        path.write_bytes(mutated(files[i % 2], rng))
        end = outcome(path)
        ends[end] = ends.get(end, 0) + 1
    print(json.dumps(ends))


def test_damaged_h5ad(tmp_path):
    code = f"from tests.data.test_fuzz import damaged_h5ad; damaged_h5ad({str(tmp_path)!r})"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=600, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
    ends = json.loads(done.stdout.splitlines()[-1])
    assert sum(ends.values()) == H5AD
    assert ends["FileError"] > 0
