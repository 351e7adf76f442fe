"""Latent semantic analysis: what it measures, what it prints, what it refuses."""

import itertools

import numpy as np
import pytest
from scipy.sparse import csr_matrix
from sklearn.utils import Bunch

pytest.importorskip("matplotlib", reason="the picture needs matplotlib: mercer[plot]")

import lsa
from lsa_quality import Documents, cosines, judged, searched
from sklearn.preprocessing import normalize

NAMES = ["comp.a", "rec.sport.b", "talk.religion.c"]
PER_GROUP, WORDS = 120, 60


@pytest.fixture(name="documents")
def few_words_in_common(rng):
    """Documents of three groups: each has seven of the sixty words of its group, and one other."""
    words = ["".join(letters) for letters in itertools.product("bcdfg", "kmnpr", "stvwxzqh")][:180]
    terms = np.array(["the", "007", "ab", *words])
    groups = np.repeat(np.arange(3), PER_GROUP)
    counts = np.zeros((len(groups), len(terms)))
    counts[:, :3] = 5
    for row, group in zip(counts, groups, strict=True):
        own = 3 + WORDS * group + rng.choice(WORDS, 7, replace=False)
        row[own] = rng.integers(1, 4, 7)
        row[3 + rng.integers(3 * WORDS)] += 1
    return Documents(csr_matrix(counts), groups, NAMES, terms)


@pytest.fixture(name="folder")
def kept(documents, tmp_path, monkeypatch):
    counts = documents.counts
    np.savez(
        tmp_path / lsa.FILE,
        data=counts.data.astype(np.uint16),
        indices=counts.indices.astype(np.uint16),
        indptr=counts.indptr,
        shape=counts.shape,
        y=documents.groups.astype(np.uint8),
        classes=np.array(NAMES),
        vocab=np.frombuffer("\n".join(documents.terms).encode(), np.uint8),
    )
    monkeypatch.setenv("MERCER_DATA", str(tmp_path))
    return tmp_path


@pytest.mark.slow
def test_the_axes_find_what_the_words_do_not(folder, capsys):
    picture = folder / "out.png"
    lsa.main(["--axes", "2", "--queries", "60", "-o", str(picture)])
    out = capsys.readouterr().out
    assert "360 documents, 180 key words" in out
    assert "2 components explain" in out
    rows = [line.split() for line in out.splitlines() if line.startswith(("tf-idf", "2 axes, m"))]
    average = [float(row[-7]) for row in rows]
    assert average[1] > average[0] + 0.2
    assert picture.read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize("weights", lsa.WEIGHTS)
def test_rows_are_weights_of_key_words(documents, weights):
    found = lsa.key_words(documents, None)
    assert set(found.terms) == set(documents.terms[3:])
    rows = lsa.weighted(found, weights)
    sizes = np.abs(rows.toarray()).sum(1) if weights == "frequencies" else rows.power(2).sum(1)
    np.testing.assert_allclose(sizes, 1.0)
    # The shuffled rows are still those of their groups.
    own = np.array(
        [np.isin(found.terms, documents.terms[3 + 60 * g : 63 + 60 * g]) for g in range(3)]
    )
    share = (found.counts @ own.T.astype(float))[np.arange(360), found.groups]
    assert np.all(share >= 0.5 * found.counts.sum(axis=1).A1)


def test_precision_is_that_of_sorted_cosines(documents, rng):
    rows = normalize(rng.normal(size=(360, 5)))
    precision, average = searched(rows, documents.groups, 300)
    expected, means = [], []
    for i in range(300):
        others = np.delete(np.arange(360), i)
        order = others[np.argsort(-(rows[others] @ rows[i]))]
        hits = documents.groups[order] == documents.groups[i]
        shares = np.cumsum(hits) / np.arange(1, 360)
        expected.append(shares)
        means.append(shares[hits].mean())
    np.testing.assert_allclose(precision, np.mean(expected, axis=0))
    assert average == pytest.approx(np.mean(means))


@pytest.mark.parametrize("kind", [np.asarray, csr_matrix])
def test_mean_cosines_leave_out_a_document_with_itself(documents, rng, kind):
    rows = normalize(rng.normal(size=(360, 4)))
    rows[7] = 0.0  # a document without a key word is like none
    found = cosines(kind(rows), documents)
    dots, groups = rows @ rows.T, documents.groups
    for a, b in itertools.product(range(3), repeat=2):
        pair = np.outer(groups == a, groups == b) & ~np.eye(360, dtype=bool)
        assert found[a, b] == pytest.approx(dots[pair].mean())
    one = judged("rows", 1.0, kind(rows), documents, 10, 1)
    assert one.cosines[0] == pytest.approx(np.diag(found).mean())
    assert one.cosines[1] == pytest.approx(found[~np.eye(3, dtype=bool)].mean())


def test_documents_that_scikit_learn_downloads(monkeypatch):
    texts = 5 * ["the engine and the wheel", "a church of God"]
    news = Bunch(data=texts, target=np.tile([1, 0], 5), target_names=["alt.atheism", "rec.autos"])
    monkeypatch.setattr(lsa, "fetch_20newsgroups", lambda subset: news)
    found = lsa.fetched()
    assert found.counts.shape == (10, 7)
    assert found.counts[0].sum() == 5
    assert "church" in found.terms
    assert found.names == news.target_names


@pytest.mark.parametrize(
    ("arguments", "match"),
    [
        (["--axes", "1"], "--axes 1: at least 2"),
        (["--documents", "5"], "--documents 5: at least 100"),
        (["--queries", "0"], "--queries 0: at least 1"),
        (["-o", "nowhere/out.png"], "there is no folder nowhere"),
        (["--axes", "400"], "400"),
    ],
)
def test_what_cannot_be_is_refused(folder, arguments, match):
    with pytest.raises(SystemExit, match=match):
        lsa.main(["-o", str(folder / "out.png"), *arguments])


def test_data_that_are_absent(tmp_path, monkeypatch):
    monkeypatch.setenv("MERCER_DATA", str(tmp_path))
    with pytest.raises(SystemExit, match=r"there is no 20news_counts_csr\.npz.*--fetch"):
        lsa.main(["-o", str(tmp_path / "out.png")])
