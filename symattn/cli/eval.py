"""``symattn eval``: an expression, and its gradients, on the arrays of a file."""

from __future__ import annotations

import argparse
import zipfile
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ..codegen import lambdify
from ..core.files import check_writable, reading, replacing
from ..core.naming import in_python
from ..core.node import Tensor
from ..errors import EvaluationError, SymattnError
from .expressions import add_expression, arguments_of, differentiated, read_output


def add_options(command: argparse.ArgumentParser) -> None:
    """The expression, the arrays, and where to write the results."""
    add_expression(command)
    command.add_argument("--data", required=True, metavar="FILE.npz", help="the arrays, by the names of the tensors")
    command.add_argument("--grad", action="store_true", help="the gradients too; the data then hold the cotangent, dO")
    command.add_argument("--set", action="append", default=[], metavar="NAME=NUMBER", help="a scalar, or a free size")
    command.add_argument("-o", "--output", metavar="FILE.npz", help="write the results here instead of printing them")


def run(options: argparse.Namespace) -> int:
    """Print the values, or write them to a file."""
    if options.output:
        check_writable(options.output)
    if options.grad:
        output, g, arguments = differentiated(options)
        names = [str(output.name), *(str(x.name) for x in g.values())]
        f = lambdify(arguments, [output, g])
    else:
        output, declared = read_output(options)
        arguments, names = arguments_of([output], declared), [str(output.name)]
        f = lambdify(arguments, [output])
    settings = _settings(options.set)
    if missing := [name for s in f.takes.keywords if (name := in_python(s.name)) not in settings]:
        raise EvaluationError(f"the arrays do not tell {', '.join(missing)}: add --set {missing[0]}=NUMBER")
    results = _computed(f, _load(options.data, arguments), settings)
    found = dict(zip(names, results, strict=True))
    if options.output:
        _save(options.output, found)
    else:
        for name, array in found.items():
            print(f"{name} =\n{array}" if getattr(array, "ndim", 0) else f"{name} = {array}")
    return 0


def _computed(f: Callable[..., Any], arrays: Sequence[Any], settings: Mapping[str, int | float]) -> Any:
    try:
        return f(*arrays, **settings)
    except np.linalg.LinAlgError as problem:
        raise EvaluationError(f"{problem}: at these data the expression has no value") from None
    except MemoryError as problem:
        raise EvaluationError(f"{problem}: choose smaller arrays and sizes") from None


def _settings(pairs: Sequence[str]) -> dict[str, int | float]:
    settings: dict[str, int | float] = {}
    for pair in pairs:
        name, _, value = pair.partition("=")
        try:
            settings[in_python(name.strip())] = int(value) if value.strip().lstrip("+-").isdigit() else float(value)
        except ValueError:
            raise EvaluationError(f"--set takes NAME=NUMBER, for example c=2.5, not {pair!r}") from None
    return settings


def _load(path: str, arguments: Sequence[Tensor]) -> list[Any]:
    """The arrays of the arguments out of an npz file; nothing in it is unpickled."""
    try:
        with reading(path), open(path, "rb") as handle:
            file = np.load(handle, allow_pickle=False)
            if not isinstance(file, np.lib.npyio.NpzFile):
                raise EvaluationError(f"{path} holds one array without a name: save by np.savez(file, Q=..., K=...)")
            missing = [x.brief() for x in arguments if x.name not in file]
            if missing:
                holds = ", ".join(file.files) or "no arrays"
                raise EvaluationError(f"{path} lacks the arrays {', '.join(missing)}; it holds {holds}")
            return [_checked(x, file[str(x.name)]) for x in arguments]
    except SymattnError:
        raise
    except Exception as problem:  # a damaged or hostile file may fail in any way inside the readers of zip and npy
        raise EvaluationError(f"{path} cannot be read as arrays by name (npz, without pickles): {problem}") from None


def _checked(x: Tensor, array: Any) -> Any:
    if array.dtype.kind not in "biuf":
        raise EvaluationError(f"the array {x.name} has dtype {array.dtype}; {x.brief()} takes real numbers")
    return array


def _save(path: str, arrays: Mapping[str, Any]) -> None:
    """Write all arrays or nothing."""
    with replacing(path) as temporary, zipfile.ZipFile(temporary, "w") as archive:
        for name, array in arrays.items():  # not np.savez, which keeps some names to itself
            with archive.open(f"{name}.npy", "w", force_zip64=True) as entry:
                np.lib.format.write_array(entry, np.asanyarray(array), allow_pickle=False)
