import copy
import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import ParameterGrid

from mercer.params import Params


class Leaf(Params):
    def __init__(self, gamma=1.0, points=None):
        self.gamma = gamma
        self.points = points


class Node(Params):
    def __init__(self, size, leaf=None, *, tol=0.0):
        self.size = size
        self.leaf = leaf
        self.tol = tol


class Empty(Params):
    pass


class OtherLeaf(Leaf):
    pass


def same_object(*, only=1):
    return only


def test_get_params_is_the_constructor_call():
    leaf = Leaf(2.0)
    assert Node(3, leaf).get_params(deep=False) == {"size": 3, "leaf": leaf, "tol": 0.0}
    assert Node(3, Node(4, leaf)).get_params()["leaf__leaf__gamma"] == 2.0
    assert Node(3, Leaf).get_params() == {"size": 3, "leaf": Leaf, "tol": 0.0}
    assert Empty().get_params() == {}


@pytest.mark.parametrize(
    "thing",
    [
        Empty(),
        Leaf(np.float64(0.1)),
        Leaf(points=np.arange(6.0).reshape(2, 3)),
        Leaf(points=[np.zeros(2), np.ones(3)]),
        Leaf(points={"a": np.zeros(2)}),
        Node(5, Node(2, Leaf(3.0)), tol=1e-3),
        Node(5, same_object),
    ],
    ids=lambda p: type(p).__name__,
)
def test_copies_are_equal_and_distinct(thing):
    for other in (clone(thing), copy.deepcopy(thing), clone(clone(thing))):
        assert other is not thing
        assert other == thing
        assert hash(other) == hash(thing)
        assert repr(other) == repr(thing)


def test_pickle():
    node = Node(5, Leaf(points=np.ones(3)))
    assert pickle.loads(pickle.dumps(node)) == node


def test_clone_is_deep():
    node = Node(5, Leaf(points=np.ones(3)))
    other = clone(node)
    other.set_params(leaf__gamma=7.0)
    other.leaf.points[0] = 9
    assert node == Node(5, Leaf(points=np.ones(3)))


@pytest.mark.parametrize(
    ("a", "b"),
    [
        (Leaf(1.0), Leaf(2.0)),
        (Leaf(1.0), OtherLeaf(1.0)),
        (Leaf(1.0), "Leaf()"),
        (Leaf(points=np.zeros(3)), Leaf(points=np.zeros(2))),
        (Leaf(points=np.zeros(1)), Leaf(points=0.0)),
        (Leaf(points=np.zeros(2)), Leaf(points=[0.0, 0.0])),
        (Leaf(points=[np.zeros(2)]), Leaf(points=[np.ones(2)])),
        (Leaf(points=[1]), Leaf(points=[1, 2])),
        (Leaf(points={"a": 1}), Leaf(points={"b": 1})),
        (Node(1, Leaf(1.0)), Node(1, Leaf(2.0))),
    ],
)
def test_unequal(a, b):
    assert a != b
    assert b != a


def test_equal_numbers_of_other_types_hash_alike():
    assert Leaf(1) == Leaf(1.0) == Leaf(np.float32(1))
    assert len({Leaf(1), Leaf(1.0), Leaf(np.float32(1)), Leaf(2)}) == 2


def test_values_without_one_truth_value_compare_by_identity():
    from scipy.sparse import eye_array

    matrix = eye_array(3, format="csr")
    assert Leaf(points=matrix) == Leaf(points=matrix)
    assert Leaf(points=matrix) != Leaf(points=matrix.copy())


def test_hash_tells_parameters_apart():
    assert len({hash(Leaf(float(g))) for g in range(20)}) == 20


@pytest.mark.parametrize(
    ("thing", "text"),
    [
        (Empty(), "Empty()"),
        (Leaf(), "Leaf()"),
        (Leaf(0.5), "Leaf(0.5)"),
        (Leaf(np.float64(0.5)), "Leaf(0.5)"),
        (Leaf(points=3), "Leaf(points=3)"),
        (Node(2), "Node(2)"),
        (Node(2, Leaf(3.0), tol=0.1), "Node(2, leaf=Leaf(3.0), tol=0.1)"),
        (Node("a"), "Node('a')"),
    ],
)
def test_repr_reads_back(thing, text):
    assert repr(thing) == text
    assert eval(text) == thing


def test_set_params():
    node = Node(1, Leaf(1.0))
    assert node.set_params(size=2, leaf__gamma=5.0, tol=1.0) is node
    assert node == Node(2, Leaf(5.0), tol=1.0)
    # The new leaf is the one that is set, in whatever order the two were written.
    assert node.set_params(leaf__gamma=7.0, leaf=Leaf(0.0, points=1)).leaf == Leaf(7.0, 1)
    assert Empty().set_params() == Empty()


def test_set_params_in_a_grid():
    grid = ParameterGrid({"leaf__gamma": [1.0, 2.0], "size": [3, 4]})
    nodes = {clone(Node(1, Leaf())).set_params(**choice) for choice in grid}
    assert nodes == {Node(s, Leaf(g)) for s in (3, 4) for g in (1.0, 2.0)}


def test_invalid_names_are_told_with_the_valid_ones():
    with pytest.raises(ValueError, match=r"'width' for Node\(1\).*'size', 'leaf', 'tol'"):
        Node(1).set_params(width=2)
    with pytest.raises(ValueError, match=r"'sigma' for Leaf\(\).*'gamma', 'points'"):
        Node(1, Leaf()).set_params(leaf__sigma=2)
    with pytest.raises(ValueError, match=r"'leaf__gamma'.*leaf='rbf' has no parameters"):
        Node(1, "rbf").set_params(leaf__gamma=2)
    with pytest.raises(ValueError, match=r"'gamma' for Empty\(\)"):
        Empty().set_params(gamma=2)


def test_an_invalid_name_changes_nothing():
    node = Node(1)
    with pytest.raises(ValueError, match="width"):
        node.set_params(size=2, width=2)
    assert node == Node(1)


def test_constructor_must_name_its_arguments():
    class Star(Params):
        def __init__(self, *parts):
            self.parts = parts

    with pytest.raises(TypeError, match="Star"):
        Star(1, 2).get_params()
