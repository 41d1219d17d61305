"""What the tests share."""

from __future__ import annotations

from importlib.util import find_spec

import numpy as np
import pytest
from hypothesis import settings

settings.register_profile("symattn", deadline=None, derandomize=True)
settings.load_profile("symattn")


@pytest.fixture
def rng() -> np.random.Generator:
    """A seeded generator, so that a failure repeats."""
    return np.random.default_rng(20240607)


_EXTRAS = {"torch": "PyTorch", "jax": "JAX"}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests marked ``torch`` or ``jax`` hold symattn against these, which are extras."""
    for extra, called in _EXTRAS.items():
        if find_spec(extra) is None:
            reason = f"{called} is not installed: pip install 'symattn[{extra}]'"
            for item in items:
                if item.get_closest_marker(extra):
                    item.add_marker(pytest.mark.skip(reason=reason))
