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


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests marked ``torch`` hold symattn against PyTorch, which is an extra."""
    if find_spec("torch") is None:
        for item in items:
            if item.get_closest_marker("torch"):
                item.add_marker(pytest.mark.skip(reason="PyTorch is not installed: pip install 'symattn[torch]'"))
