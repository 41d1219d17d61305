"""What the tests share."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import settings

settings.register_profile("symattn", deadline=None, derandomize=True)
settings.load_profile("symattn")


@pytest.fixture
def rng() -> np.random.Generator:
    """A seeded generator, so that a failure repeats."""
    return np.random.default_rng(20240607)
