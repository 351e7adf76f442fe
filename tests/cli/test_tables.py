"""Tables as people have them: ids, labels, dates, constants, gaps, and what is said of them."""

import json
import re
import resource
import subprocess
import sys

import numpy as np
import pytest

from mercer import load
from mercer.data.files import read_table
from mercer.modelfile import read_header

pq = pytest.importorskip("pyarrow.parquet")

N = 60


@pytest.fixture
def ids():
    return [10**17 + 7 * ((37 * i) % N) + 1 for i in range(N)]


@pytest.fixture
def survey(tmp_path, ids):
    """An id, a label, a date, a constant and gaps; beside two measurements."""
    rng = np.random.default_rng(0)
    lines = ["sample_id,site,day,batch,length,width,code"]
    for i in range(N):
        length, width = rng.normal(), rng.normal()
        gap = "n.d." if i == 3 else f"{width:.6f}"
        day = f"2024-01-{1 + i % 28:02d}"
        lines.append(f"{ids[i]},{'AB'[i % 2]},{day},5,{50 * length:.6f},{gap},{i:04d}x")
    (tmp_path / "survey.csv").write_text("\n".join(lines) + "\n")
    return tmp_path / "survey.csv"


def page(path):
    """Return the text of a report, and what its charts are drawn from."""
    text = path.read_text("utf-8")
    data = re.search(r'<script type="application/json" id="data">(.*?)</script>', text, re.S)[1]
    return text, json.loads(data)


FIT = ("--label", "site", "--na", "n.d.", "--impute", "mean", "-o", "m.mercer")


@pytest.mark.parametrize("asked", [(), ("--id", "sample_id")])
def test_the_report_of_one_command(mercer, survey, tmp_path, ids, asked):
    pytest.importorskip("plotly")
    mercer("fit", survey, *FIT, *asked, "--scores", "s.csv", "--report", "r.html")
    text, data = page(tmp_path / "r.html")
    # Names the rows by id: where they are drawn, and in the table of outliers.
    assert data["points"]["ids"] == [str(i) for i in ids]
    table = text[text.index('id="furthest"') :]
    named = re.findall(r'<th scope="row"><bdi>(\d+)</bdi></th>', table)
    assert len(named) == 20
    assert set(named) <= {str(i) for i in ids}
    # Uses no id as a feature.
    assert list(load("m.mercer")[0].feature_names_in_) == ["batch", "length", "width"]
    # Says what was left out, and why.
    notes = re.findall(r"<li>(.*?)</li>", text[text.index('id="data-notes"') :], re.S)
    said = " ".join(notes).replace("&#39;", "'")
    assert "Left out: 'day' (dates); 'code' (text)." in said
    assert "'batch' is constant: it has no variance." in said
    assert "'length' has about 99" in said
    assert "1 missing value imputed with column means: 1 in 'width'." in said
    assert ("'sample_id' is used as row names" in said) == (not asked)
    scores = read_table("s.csv", keep=["site"])
    assert scores.extra["sample_id"].tolist() == ids
    assert scores.extra["site"].tolist() == ["A", "B"] * (N // 2)


@pytest.mark.parametrize("form", ["{}", "{}.0"], ids=["plain", "as pandas writes it"])
@pytest.mark.parametrize("options", [(), ("--impute", "mean", "--scale", "zscore")])
def test_an_id_with_a_gap(mercer, tmp_path, form, options):
    """Is no feature, is not counted as missing, and all commands name the row by its number."""
    pytest.importorskip("plotly")
    rng = np.random.default_rng(0)
    names = ["" if i == 7 else form.format(1000 + i) for i in range(N)]
    lines = ["id,a,b", *(f"{name},{rng.normal():.6f},{rng.normal():.6f}" for name in names)]
    (tmp_path / "x.csv").write_text("\n".join(lines) + "\n")
    done = mercer("fit", "x.csv", *options, "-o", "m.mercer", "--scores", "s.csv")
    notes = [line for line in done.err.splitlines() if line.startswith("note:")]
    assert len(notes) == 1
    assert "column 'id' is used as row names" in notes[0]
    assert "pass --columns 'id,*'" in notes[0]
    expected = [*range(1000, 1007), "#7", *range(1008, 1000 + N)]
    assert read_table("s.csv").row_names.tolist() == expected  # the gap is one of the scores too
    mercer("report", "m.mercer", "x.csv", "-o", "r.html")
    assert page(tmp_path / "r.html")[1]["points"]["ids"] == [str(name) for name in expected]
    mercer("novelty", "fit", "x.csv", "--contamination", 0.5, "-o", "n.mercer")
    facts = mercer("novelty", "score", "n.mercer", "x.csv", "--json").json
    assert facts["novel_ids"] == [expected[i] for i in facts["novel_rows"]]


def test_the_report_says_what_is_kept_and_no_feature(mercer, survey, tmp_path):
    pytest.importorskip("plotly")
    keep = ("--keep", "code,length", "--columns", "length,width,batch")
    done = mercer("fit", survey, *FIT, *keep, "--report", "r.html")
    text = page(tmp_path / "r.html")[0].replace("&#39;", "'")
    assert "Left out of the features by --keep: 'code'." in text
    assert "left out of the features by --keep: 'code'." in done.err
    assert "1 missing value, with the mean of its column" in done.out


@pytest.mark.parametrize("tiny", [1e-2, 1e-4, 1e-5, 3e-6])
def test_the_report_and_the_command_line_round_shares_alike(mercer, tmp_path, tiny):
    """And less than all of the variance is never 100 %."""
    pytest.importorskip("plotly")
    X = np.random.default_rng(0).normal(size=(50, 3)) * [1, 0.5, tiny]
    np.save("x.npy", X)
    options = ("--components", 2, "-o", "m.mercer", "--report", "r.html")
    done = mercer("fit", "x.npy", *options)
    text = page(tmp_path / "r.html")[0].replace("\u202f", " ")
    key = re.search(
        r"([\d.]+ %)\s*(?:<[^>]*>\s*)*variance explained|"
        r"variance explained\s*(?:<[^>]*>\s*)*([\d.]+ %)",
        text,
    )
    share = re.search(r"2 components explain ([\d.]+ %)", done.out)[1]
    assert (key[1] or key[2]) == share
    assert share != "100.00 %"
    body = re.sub(r"<script.*?</script>|<style.*?</style>", "", text, flags=re.S)
    assert not re.search(r"\b100(\.0+)? %", body)


def test_missing_values_of_features_alone_are_refused(mercer, tmp_path):
    (tmp_path / "x.csv").write_text("id,a,b\n1,2.5,\n,3.5,1.5\n3,1.5,2.5\n")
    done = mercer("fit", "x.csv", "-o", "m.mercer", code=1)
    assert "1 value is missing: 1 of 'b'." in done.err
    assert "'id'" not in done.err


def test_what_was_chosen_in_the_fit_need_not_be_repeated(mercer, survey, tmp_path, ids):
    mercer("fit", survey, *FIT, "--drop", "c*,batch", "--components", 1)
    origin = read_header("m.mercer")["origin"]
    assert (origin["id"], origin["drop"], origin["na"]) == ("sample_id", ["c*", "batch"], ["n.d."])
    done = mercer("transform", "m.mercer", survey, "--keep", "code", "-o", "s.csv")
    assert "sample_id" not in done.err
    found = read_table("s.csv", keep=["code"])
    assert (found.id, found.source.names) == ("sample_id", ["pca0"])
    assert found.extra["sample_id"].tolist() == ids
    assert found.extra["code"][0] == "0000x"
    mercer("inverse", "m.mercer", "s.csv", "-o", "x.parquet")
    assert pq.read_table("x.parquet")["sample_id"].to_pylist() == ids
    mercer("denoise", "m.mercer", survey, "-o", "d.csv")
    assert read_table("d.csv").extra["sample_id"].tolist() == ids
    mercer("report", "m.mercer", survey, "-o", "r.html")
    text, data = page(tmp_path / "r.html")
    assert data["points"]["ids"] == [str(i) for i in ids]
    assert "Left out by --drop: &#39;batch&#39;, &#39;code&#39;." in text


def test_the_id_of_the_fit_may_repeat_or_be_gone(mercer, survey, tmp_path):
    mercer("fit", survey, *FIT, "--components", 1)
    (tmp_path / "two.csv").write_text("width,length,batch,sample_id\n1,2,5,7\n2,2,5,7\n")
    mercer("transform", "m.mercer", "two.csv", "-o", "s.csv")
    assert read_table("s.csv", keep=["sample_id"]).extra["sample_id"].tolist() == [7, 7]
    (tmp_path / "two.csv").write_text("width,length,batch\n1,2,5\n2,2,5\n")
    done = mercer("transform", "m.mercer", "two.csv", "-o", "s.csv", "--force")
    assert "two.csv has no column 'sample_id', which held the row names in the fit" in done.err
    assert read_table("s.csv").id is None
    (tmp_path / "two.csv").write_text("width,length,batch,who\n1,2,5,x\n2,2,5,y\n")
    done = mercer("transform", "m.mercer", "two.csv", "--id", "who", "-o", "t.csv")
    assert "row names" not in done.err
    (tmp_path / "two.csv").write_text("width,length,batch\n1,2,5\n2,2,5\n")
    done = mercer("transform", "m.mercer", "two.csv", "--id", "who", "-o", "u.csv", code=1)
    assert "has no column 'who'" in done.err


def test_novelty_names_rows(mercer, survey, ids):
    mercer("novelty", "fit", survey, *FIT[2:4], "--drop", "width", "-o", "m.mercer")
    facts = mercer("novelty", "score", "m.mercer", survey, "--json").json
    assert facts["novel_ids"] == [ids[i] for i in facts["novel_rows"]]
    mercer("novelty", "score", "m.mercer", survey, "-o", "n.csv")
    assert read_table("n.csv").extra["sample_id"].tolist() == ids


def test_arrays_go_by_numbers(mercer, tmp_path):
    """An id column of an array is named again by no command."""
    X = np.column_stack([np.arange(30) + 2**60, np.random.default_rng(0).integers(0, 9, (30, 3))])
    np.save("x.npy", X)
    mercer("fit", "x.npy", "--id", 0, "--drop", 3, "-o", "m.mercer", "--scores", "s.csv")
    mercer("transform", "m.mercer", "x.npy", "-o", "t.csv")
    for name in ("s.csv", "t.csv"):
        assert read_table(name, id="0").extra["0"].tolist() == X[:, 0].tolist()
    np.save("y.npy", X - [2**60 - 10**12, 0, 0, 0])
    done = mercer("fit", "y.npy", "-o", "m.mercer", "--force")
    assert "'0' may be an identifier" in done.err
    assert "--drop '0'" in done.err


def test_every_command_takes_them(mercer, survey):
    options = ("--id", "code", "--drop", "site,day,batch", "--na", "n.d.")
    more = ("--impute", "mean", "--components", 1)
    assert mercer("plan", survey, *options, *more, "--json").json["columns"] == 2
    assert (
        mercer("compare", survey, *options, *more, "--method", "full", "--json").json["rows"] == N
    )
    done = mercer("fit", survey, *options, *more, "-o", "m.mercer", "--json")
    assert done.json["id"] == "code"
    command = read_header("m.mercer")["origin"]["command"]
    assert "--na n.d." in command
    assert "--drop site,day,batch" in command


def test_an_id_that_is_a_feature_by_request_is_kept_exactly(mercer, survey, ids):
    mercer("fit", survey, "--columns", "sample_id,length", "-o", "m.mercer")
    assert list(load("m.mercer").feature_names_in_) == ["sample_id", "length"]
    for suffix in ("csv", "parquet"):
        mercer("transform", "m.mercer", survey, "--keep", "sample_id", "-o", f"s.{suffix}")
        assert read_table(f"s.{suffix}").extra["sample_id"].tolist() == ids


# What is refused, and how.


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (
            ["fit", "https://example.org/x.csv", "-o", "m.mercer"],
            "is a URL. Download it first",
        ),
        (["fit", "folder", "-o", "m.mercer"], "--format parquet"),
        (["fit", "survey.csv", "--columns", "width", "-o", "m.mercer"], "--na 'n.d.'"),
        (["fit", "gaps.csv", "-o", "m.mercer"], "Use --impute mean, or drop those rows"),
        (["fit", "survey.csv", "--drop", "zz*", "-o", "m.mercer"], "no column matches 'zz*'"),
        (["fit", "wide.npy", "--memory", "1KB", "-o", "m.mercer"], "Raise it with --memory"),
    ],
)
def test_refused_in_the_words_of_the_command_line(mercer, survey, tmp_path, arguments, said):
    (tmp_path / "folder").mkdir()
    for name in ("a.csv", "b.parquet"):
        (tmp_path / "folder" / name).write_text("a\n")
    np.save("wide.npy", np.zeros((9, 400)))
    (tmp_path / "gaps.csv").write_text("a,b\n1,2\n,5\n4,4\n")
    done = mercer(*arguments, code=1)
    assert said in done.err
    assert "read_table" not in done.err
    assert "=" not in done.err


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["fit", "none.csv", "-o", "m.mercer"], 1),
        (["fit", "survey.csv", "--components", "many", "-o", "m.mercer"], 2),
        (["fit", "survey.csv"], 2),
        (["inspect", "none.mercer"], 1),
    ],
)
def test_errors_as_json(mercer, survey, arguments, code):
    done = mercer(*arguments, "--json", code=code)
    assert done.json["exit_code"] == code
    assert done.err.strip().endswith(done.json["error"])


@pytest.mark.parametrize("text", ["95%", "95 %", "0.95"])
def test_a_share_in_percent(mercer, iris, text):
    facts = mercer("fit", iris, "--components", text, "-o", "m.mercer", "--json").json
    assert load("m.mercer").n_components == pytest.approx(0.95)
    assert facts["components"] == 2
    for wrong in ("0%", "100%", "195%"):
        done = mercer("fit", iris, "--components", wrong, "-o", "n.mercer", code=2)
        assert f"--components {wrong} must be an integer such as 2, a share" in done.err


def test_a_full_disk_names_the_file(tmp_path):
    np.save(tmp_path / "x.npy", np.random.default_rng(0).normal(size=(4000, 50)))
    suffixes = ("npy", "csv", "parquet")
    code = (
        "from mercer.cli.app import run\n"
        f"for suffix in {suffixes!r}:\n"
        "    fit = ['fit', 'x.npy', '-o', 'm.mercer', '--components', '40']\n"
        "    assert run([*fit, '--scores', f'scores.{suffix}']) == 1, suffix\n"
    )

    def limit():
        resource.setrlimit(resource.RLIMIT_FSIZE, (2**17, 2**17))

    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        preexec_fn=limit,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    for suffix in suffixes:
        assert f"scores.{suffix}: no room to write the file" in done.stderr, done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["x.npy"]


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("mercer fit x.csv --method kry", "krylov"),
        ("mercer fit x.csv --scale z", "zscore"),
        ("mercer compare x.csv --kernel lap", "laplacian"),
        ("mercer novelty fit x.csv --preimage fix", "fixed_point"),
        ("mercer report m x --format par", "parquet"),
    ],
)
def test_values_are_completed(words, expected, monkeypatch, capsys):
    from mercer.cli.app import app

    monkeypatch.setenv("_MERCER_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", words)
    monkeypatch.setenv("COMP_CWORD", str(len(words.split()) - 1))
    with pytest.raises(SystemExit):
        app([], prog_name="mercer")
    assert expected in capsys.readouterr().out.split()


def test_an_identifier_beside_the_one_asked_for_is_left_out(mercer, tmp_path):
    lines = [f"{30 - i},{i % 4},{i * i % 7}.5,{i % 5}.5" for i in range(30)]
    (tmp_path / "x.csv").write_text("\n".join(["sample,batch,a,b", *lines]))
    done = mercer("fit", "x.csv", "--id", "batch", "-o", "m.mercer")
    assert (
        "left out: 'sample' (identifier). To use 'sample' as a feature, pass --columns 'sample,*'."
        in done.err
    )
    assert "named like" not in done.err
    assert list(load("m.mercer").feature_names_in_) == ["a", "b"]
    more = ("--id", "batch", "--columns", "sample,*", "-o", "m.mercer", "--force")
    mercer("fit", "x.csv", *more)
    assert list(load("m.mercer").feature_names_in_) == ["sample", "a", "b"]


def test_a_remedy_names_all_columns_and_works(mercer, tmp_path):
    rng = np.random.default_rng(0)
    lines = [f"{1e11 + i:.0f},{-1e11 - i * i:.0f},{x}" for i, x in enumerate(rng.normal(size=20))]
    (tmp_path / "x.csv").write_text("\n".join(['"a, b",neg,x', *lines]))
    done = mercer("fit", "x.csv", "-o", "m.mercer")
    assert "'a, b', 'neg' may be identifiers or times" in done.err
    assert """--drop '"a, b",neg' excludes them.""" in done.err
    assert "may be identifiers or times" in mercer("plan", "x.csv").err
    mercer("fit", "x.csv", "--drop", '"a, b",neg', "-o", "m.mercer", "--force")
    assert list(load("m.mercer").feature_names_in_) == ["x"]


@pytest.mark.parametrize(
    ("command", "earlier"),
    [
        *((command, False) for command in ("fit", "plan", "compare", "novelty fit")),
        *((command, True) for command in ("transform", "denoise", "report", "novelty score")),
    ],
)
def test_help_speaks_of_what_the_command_has(mercer, command, earlier):
    shown = " ".join(mercer(*command.split(), "--help").out.replace("│", " ").split())
    assert ("as in the fit" in shown.lower()) == earlier
    assert ("the report colors" in shown) == (command in ("fit", "plan"))
    assert ("Also write" in shown) == (command == "fit")
    assert shown.count("plan does not write this file") == (4 if command == "plan" else 0)
    assert (".gz, .bz2, .xz" in shown) == (not earlier)
    assert ("Without it, missing values are an error" in shown) == (not earlier)


def test_a_kept_column_is_a_feature_only_where_it_is_named(mercer, iris):
    kept = ("--keep", "sl", "-o", "m.mercer", "--force")
    for columns, used in (("*", False), ("sl,*", True)):
        mercer("fit", iris, *kept, "--columns", columns)
        assert ("sl" in load("m.mercer").feature_names_in_) == used


@pytest.mark.parametrize("options", [(), ("--id", "a")])
@pytest.mark.parametrize("name", ["x.txt", "x.tsv"])
def test_a_table_under_the_name_of_other_text(mercer, tmp_path, name, options):
    (tmp_path / name).write_text('"a" "b"\n"s1" 1 2\n"s2" 3 5\n"s3" 4 4\n')
    if name == "x.txt" or not options:
        done = mercer("fit", name, *options, "-o", "m.mercer", code=1)
        assert "read it with --format csv." in done.err
    mercer("fit", name, *options, "--format", "csv", "-o", "m.mercer")
    assert list(load("m.mercer").feature_names_in_) == (["b"] if options else ["a", "b"])
