"""The pytest plugin: the assertions of ``symattn.testing`` as fixtures.

pytest imports this file in every run, so it loads neither SymPy nor NumPy: a fixture does, when a test asks for it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest


def _offered(name: str) -> Callable[..., Any]:
    def fixture() -> Callable[..., None]:
        from . import testing  # which loads SymPy and NumPy

        assertion: Callable[..., None] = getattr(testing, name)
        return assertion

    fixture.__doc__ = f"``symattn.testing.{name}``."
    return pytest.fixture(name=name, scope="session")(fixture)


assert_identity = _offered("assert_identity")
assert_gradient = _offered("assert_gradient")
assert_equivariant = _offered("assert_equivariant")
assert_matches = _offered("assert_matches")
