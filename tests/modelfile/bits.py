"""Whether two models are the same, to the bit."""

import re

import numpy as np
import pytest

import mercer

METHODS = (
    "transform",
    "predict",
    "predict_proba",
    "decision_function",
    "score_samples",
    "reconstruction_error",
    "reconstruct",
)


def host(values):
    """Whatever a method returned, as an array on the host."""
    return np.asarray(values.detach().cpu() if hasattr(values, "detach") else values)


def same(a, b, where=""):
    """Assert that two results are equal in type, dtype, shape and every bit."""
    assert type(a) is type(b), where
    a, b = host(a), host(b)
    assert a.dtype == b.dtype, where
    assert a.shape == b.shape, where
    if a.dtype.kind in "OUS":
        assert a.tolist() == b.tolist(), where
    else:
        assert np.ascontiguousarray(a).tobytes() == np.ascontiguousarray(b).tobytes(), where


def saved(model, folder):
    """The model once more, by way of a file."""
    path = folder / "model.mercer"
    mercer.save(model, path)
    return mercer.load(path)


def shown(value):
    """The repr, without addresses in memory."""
    return re.sub(r"at 0x\w+", "", repr(value))


def same_model(model, again, X):
    """Assert that two models are the same, and do the same; return what was compared."""
    assert type(again) is type(model)
    assert shown(again) == shown(model)
    for name, value in model.get_params().items():
        assert shown(again.get_params()[name]) == shown(value), name
    for name in ("certificate_", "plan_", "n_features_in_"):
        assert str(getattr(again, name, None)) == str(getattr(model, name, None)), name
    names = getattr(model, "feature_names_in_", None)
    if names is not None:
        same(names, again.feature_names_in_)
    done = []
    for name in METHODS:
        if not hasattr(model, name):
            assert not hasattr(again, name)
            continue
        try:
            wanted = getattr(model, name)(X)
        except (ValueError, NotImplementedError) as error:  # NotFittedError is one of these
            with pytest.raises(type(error), match=re.escape(str(error))):
                getattr(again, name)(X)
            continue
        same(wanted, getattr(again, name)(X), name)
        done.append(name)
    assert done
    return done
