"""What a sketch is: a map of rows that keeps their dot products, and a transformer."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np

from mercer import session
from mercer.checks import check_whole, require
from mercer.data import Source
from mercer.sketches.drawn import Drawn, Same
from mercer.sketches.transformer import Transformer


class SketchMap(Transformer):
    r"""A linear map :math:`f: R^d \to R^q` with :math:`f(x)^T f(y) \approx x^T y`.

    Marukatat (2022), §4.3. It is a plain parameter object, and a scikit-learn transformer.
    """

    @abstractmethod
    def check(self) -> None:
        """Refuse parameters that make no sense."""

    @abstractmethod
    def drawn(self, d: int, rng: np.random.Generator | None = None) -> Drawn:
        """Return the map for rows of d columns: the same bits for the same `random_state`.

        Parameters
        ----------
        d : int
            Number of columns.
        rng : numpy.random.Generator, optional
            Draws the map instead of `random_state`.
        """

    def drawn_from(self, source: Source, rng: np.random.Generator | None = None) -> Drawn:
        """Return the map for the rows of a source, learnt from them by a map that learns."""
        return self.drawn(source.shape[1], rng)

    def apply_source(self, source: Source) -> Source:
        """Return the rows of a source through the map, computed when they are read.

        By the fitted map where it is fitted.

        Examples
        --------
        >>> import numpy as np
        >>> from mercer import as_source
        >>> from mercer.sketches import Hashing
        >>> Hashing(10).apply_source(as_source(np.ones((4, 300)))).shape
        (4, 10)
        """
        return self.drawn_for(source).on(source)

    def drawn_for(self, source: Source) -> Drawn:
        """Return the fitted map where it is fitted, else the one for these rows."""
        return self.drawn_ if self.__sklearn_is_fitted__() else self.drawn_from(source)


class RandomMap(SketchMap):
    """A map drawn at random: any d, and q as the user says."""

    def __init__(self, q: int, *, random_state: Any = 0, identity: bool = False) -> None:
        self.q = q
        self.random_state = random_state
        self.identity = identity

    @abstractmethod
    def draw(self, d: int, seed: int) -> Drawn:
        """Return the map for d columns that a seed gives."""

    def check(self) -> None:
        check_whole(self, "q")
        require(self, "identity", isinstance(self.identity, bool), "True or False")
        seed = self.random_state
        known = isinstance(seed, (np.random.Generator, np.random.RandomState)) or seed is None
        whole_number = isinstance(seed, (int, np.integer)) and not isinstance(seed, bool)
        require(
            self,
            "random_state",
            known or (whole_number and seed >= 0),
            "a whole number, 0 or more, a NumPy generator, or None",
        )

    def drawn(self, d: int, rng: np.random.Generator | None = None) -> Drawn:
        self.check()
        if self.identity and self.q >= d:
            return Same(d)
        if self.q > d:
            raise ValueError(
                f"{self!r}: q={self.q} is more than n_features={d}, so the map would make the rows "
                f"wider. Take a q of at most {d}, or pass identity=True to have such rows stay as "
                f"they are."
            )
        return self.draw(d, _seed(self.random_state if rng is None else rng))


def _seed(source: Any) -> int:
    """Return a whole number from a seed, a generator, or nothing."""
    if source is None:
        return session.seed(int(np.random.default_rng().integers(2**63)))
    if isinstance(source, np.random.Generator):
        return int(source.integers(2**63))
    if isinstance(source, np.random.RandomState):
        return session.seed(int(source.randint(2**31)))
    return int(source)
