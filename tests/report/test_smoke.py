from sklearn.datasets import load_wine

from mercer import PCA
from mercer.report import write_report


def test_a_report_tells_the_certificate(tmp_path):
    wine = load_wine(as_frame=True)
    pca = PCA(3, scale=True).fit(wine.data)
    write_report(tmp_path / "a.html", pca, wine.data, labels=wine.target)
    page = (tmp_path / "a.html").read_text("utf-8")
    assert pca.certificate_.sentence in page
    assert [path.name for path in tmp_path.iterdir()] == ["a.html"]
