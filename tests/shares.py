"""A share of many cases runs always; the others are marked ``slow`` and are the second net."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import pytest


def one_in(n: int, cases: Iterable[Any]) -> list[Any]:
    """The cases of ``parametrize``: every n-th as it is, the others marked ``slow``."""
    return [case if k % n == 0 else _slow(case) for k, case in enumerate(cases)]


def first_of_each(kind: Callable[[Any], Any], cases: Iterable[Any]) -> list[Any]:
    """The cases of ``parametrize``: the first of each kind as it is, the others marked ``slow``."""
    made, met = [], set()
    for case in cases:
        made.append(_slow(case) if kind(case) in met else case)
        met.add(kind(case))
    return made


def _slow(case: Any) -> Any:
    if isinstance(case, type(pytest.param())):
        return pytest.param(*case.values, id=case.id, marks=[*case.marks, pytest.mark.slow])
    return pytest.param(*(case if type(case) is tuple else (case,)), marks=pytest.mark.slow)
