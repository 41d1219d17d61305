"""What the tests share."""

from __future__ import annotations

import gc
from importlib.util import find_spec

import numpy as np
import pytest
from hypothesis import settings

settings.register_profile("symattn", deadline=None, derandomize=True)
settings.load_profile("symattn")

gc.disable()  # while tests are collected: all of it stays


def pytest_collection_finish() -> None:
    """What was collected is never garbage, so no search for garbage walks through it."""
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)  # tests make many tensors that live long
    gc.enable()


@pytest.fixture
def rng() -> np.random.Generator:
    """A seeded generator, so that a failure repeats."""
    return np.random.default_rng(20240607)


_EXTRAS = {  # what a marker needs: a module, what people call it, and the extra that installs it
    "torch": ("torch", "PyTorch", "torch"),
    "jax": ("jax", "JAX", "jax"),
    "latex2sympy": ("latex2sympy2", "latex2sympy2", "latex"),
}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests marked ``torch``, ``jax`` or ``latex2sympy`` hold symattn against these, which are extras."""
    for marker, (module, called, extra) in _EXTRAS.items():
        if find_spec(module) is None:
            reason = f"{called} is not installed: pip install 'symattn[{extra}]'"
            for item in items:
                if item.get_closest_marker(marker):
                    item.add_marker(pytest.mark.skip(reason=reason))
