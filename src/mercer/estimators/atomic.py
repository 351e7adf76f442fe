"""All of a fit, or nothing of it."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from sklearn.base import is_classifier

from mercer.data.errors import MissingValues

_CALLBACKS = ("_callback_", "_skl_callbacks")


class Atomic:
    """An estimator that is as it was where its fit fails."""

    @contextlib.contextmanager
    def _all_or_nothing(self, *, always: bool = False) -> Iterator[None]:
        """Leave the estimator as it was when something fails inside, or always."""
        before = self.__dict__.copy()
        try:
            yield
        except BaseException as error:
            always = True
            if isinstance(error, MissingValues):  # the outermost estimator is the user's
                home = type(self).__module__
                home = "mercer" if home.startswith("mercer.") else home
                error.estimator = home, type(self).__name__, "X, y" if is_classifier(self) else "X"
            raise
        finally:
            if always:  # what scikit-learn's callbacks still need to be torn down stays
                before |= {k: v for k, v in vars(self).items() if k.startswith(_CALLBACKS)}
                self.__dict__.clear()
                self.__dict__.update(before)
