"""Settings: sizes, nesting, what is refused."""

import importlib.util
import re
import warnings

import numpy as np
import pytest

import mercer
from mercer import PCA, config_context, get_config, set_config
from mercer.config import format_bytes, machine_memory, parse_bytes


@pytest.fixture(autouse=True)
def _as_it_was():
    with config_context():
        yield


@pytest.mark.parametrize(
    ("size", "expected"),
    [
        (512, 512),
        ("512", 512),
        ("512B", 512),
        ("1kB", 1000),
        ("1KiB", 1024),
        ("512MiB", 512 * 2**20),
        ("4 GB", 4 * 10**9),
        ("4G", 4 * 10**9),
        ("4Gi", 4 * 2**30),
        ("1.5 gib", 3 * 2**29),
        (" 2TiB ", 2**41),
        ("0.5TB", 5 * 10**11),
    ],
)
def test_sizes(size, expected):
    assert parse_bytes(size) == expected


@pytest.mark.parametrize(
    "size", ["much", "", "GB", "1.2.3GB", "1 PB", "-1GB", "1e9", "4GiBs", "4 G iB"]
)
def test_what_is_not_a_size(size):
    with pytest.raises(ValueError, match=re.escape(f"memory={size!r} is not a size. Write")):
        parse_bytes(size)


@pytest.mark.parametrize("size", [0, -5, "0", "0.0GB", "0.1B"])
def test_sizes_are_positive(size):
    with pytest.raises(ValueError, match="positive"):
        parse_bytes(size)


@pytest.mark.parametrize(
    ("size", "text"),
    [(0, "0 B"), (1023, "1023 B"), (1536, "1.5 KiB"), (2**31, "2.0 GiB"), (2**42, "4.0 TiB")],
)
def test_sizes_for_people(size, text):
    assert format_bytes(size) == text


@pytest.mark.parametrize("change", [config_context, set_config])
@pytest.mark.parametrize(
    "setting", [{"memory": "much"}, {"memory": 0}, {"block_rows": 0}, {"checkpoint": 0}]
)
def test_bad_settings_are_refused_at_once(change, setting):
    before = get_config()
    with pytest.raises(ValueError, match=f"^{next(iter(setting))}="), change(**setting):
        pass
    assert get_config() == before


def test_an_unknown_setting_is_named_and_the_known_are_listed():
    with pytest.raises(TypeError, match=r"Unknown setting 'memroy'.* memory, block_rows, progress"):
        set_config(memroy="4GiB")


def test_the_budget_is_half_of_the_machine():
    assert get_config().memory is None
    assert get_config().budget == machine_memory() // 2


def test_a_context_ends():
    with config_context(memory="1GiB"):
        assert get_config().budget == 2**30
    assert get_config().memory is None


def test_a_context_ends_when_it_fails():
    with pytest.raises(RuntimeError), config_context(memory="1GiB"):
        raise RuntimeError
    assert get_config().memory is None


def test_contexts_nest():
    with config_context(memory="1GiB", block_rows=7):
        with config_context(memory="2GiB", progress=True):
            inner = get_config()
        assert (inner.budget, inner.block_rows, inner.progress) == (2**31, 7, True)
        assert (get_config().budget, get_config().progress) == (2**30, False)


def test_set_config_stays():
    set_config(memory="3GiB")
    set_config(block_rows=5)
    assert (get_config().budget, get_config().block_rows) == (3 * 2**30, 5)
    set_config(memory=None, block_rows=None)
    assert get_config() == mercer.config.Settings()


def test_set_config_inside_a_context_ends_with_it():
    with config_context(block_rows=9):
        set_config(memory="3GiB")
    assert get_config() == mercer.config.Settings()


def test_a_context_as_a_decorator():
    @config_context(memory="1GiB")
    def budget():
        return get_config().budget

    assert [budget(), budget()] == [2**30, 2**30]


def test_settings_cannot_be_written_to():
    with pytest.raises(AttributeError):
        get_config().memory = 5


def test_names_of_devices():
    for name in ("cpu", "gpu", "cuda:x", 0):
        with pytest.raises(ValueError, match="must be 'cuda'"):
            set_config(device=name)
    with pytest.raises(ValueError, match="tf32"):
        set_config(tf32="yes")


def test_a_device_that_is_not_there():
    torch = pytest.importorskip("torch")
    if torch.cuda.is_available():
        pytest.skip("there is one")
    with pytest.raises(RuntimeError, match="Omit device to compute on the CPU"):
        set_config(device="cuda")
    assert get_config().device is None


def test_progress_in_a_notebook_without_widgets_is_a_line_of_text(monkeypatch, capsys):
    monkeypatch.setattr("rich.console._is_jupyter", lambda: True)
    find = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name: None if name == "ipywidgets" else find(name)
    )
    X = np.random.default_rng(0).normal(size=(100, 5))
    with warnings.catch_warnings(), config_context(progress=True, block_rows=20):
        warnings.simplefilter("error")  # rich warns where it lacks ipywidgets
        PCA(2, svd_solver="covariance_eigh").fit(X)
    shown = capsys.readouterr().err
    assert re.search(r"\r\w+.* 0 %", shown)
    assert shown.endswith("100 %\n")
