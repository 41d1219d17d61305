"""Arrays by name in files, and numbers that come with them."""

from __future__ import annotations

import zipfile
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..core.files import reading, replacing
from ..core.naming import in_python
from ..core.node import Tensor
from ..errors import EvaluationError, SymattnError


def settings(pairs: Sequence[str]) -> dict[str, int | float]:
    """The numbers of ``--set NAME=NUMBER``, by what code calls them."""
    found: dict[str, int | float] = {}
    for pair in pairs:
        name, _, value = pair.partition("=")
        try:
            found[in_python(name.strip())] = int(value) if value.strip().lstrip("+-").isdigit() else float(value)
        except ValueError:
            raise EvaluationError(f"--set takes NAME=NUMBER, for example c=2.5, not {pair!r}") from None
    return found


def load(path: str) -> dict[str, Any]:
    """All arrays of real numbers of an npz file, by name; nothing in it is unpickled."""
    try:
        with reading(path), open(path, "rb") as handle:
            file = np.load(handle, allow_pickle=False)
            if not isinstance(file, np.lib.npyio.NpzFile):
                raise EvaluationError(f"{path} holds one array without a name: save by np.savez(file, Q=..., K=...)")
            return {name: file[name] for name in file.files}
    except SymattnError:
        raise
    except Exception as problem:  # a damaged or hostile file may fail in any way inside the readers of zip and npy
        raise EvaluationError(f"{path} cannot be read as arrays by name (npz, without pickles): {problem}") from None


def of_arguments(path: str, arguments: Sequence[Tensor]) -> list[Any]:
    """The arrays of the arguments out of a file."""
    file = load(path)
    if missing := [x.brief() for x in arguments if x.name not in file]:
        holds = ", ".join(file) or "no arrays"
        raise EvaluationError(f"{path} lacks the arrays {', '.join(missing)}; it holds {holds}")
    for x in arguments:
        if (dtype := file[str(x.name)].dtype).kind not in "biuf":
            raise EvaluationError(f"the array {x.name} has dtype {dtype}; {x.brief()} takes real numbers")
    return [file[str(x.name)] for x in arguments]


def save(path: str, arrays: Mapping[str, Any]) -> None:
    """Write all arrays or nothing."""
    with replacing(path) as temporary, zipfile.ZipFile(temporary, "w") as archive:
        for name, array in arrays.items():  # not np.savez, which keeps some names to itself
            with archive.open(f"{name}.npy", "w", force_zip64=True) as entry:
                np.lib.format.write_array(entry, np.asanyarray(array), allow_pickle=False)
