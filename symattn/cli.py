"""The command line: ``symattn list``, ``derive``, ``grad`` and ``eval``.

What a user gets wrong ends in one line on stderr and exit code 2; nothing is left half-written.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from .errors import EvaluationError, OperandError, SymattnError

if TYPE_CHECKING:
    from .derivation import Derivation
    from .gradients import Gradient, Step
    from .tensor import Tensor


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code."""
    options = _parser().parse_args(argv)
    try:
        options.run(options)
        sys.stdout.flush()
    except BrokenPipeError:  # the reader of our output has gone, as in ``symattn list | head -1``
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except (SymattnError, OSError) as problem:
        print(f"symattn: error: {problem}", file=sys.stderr)
        return 2
    return 0


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        print(f"symattn: error: {message}\n(see {self.prog} --help)", file=sys.stderr)
        sys.exit(2)


def _parser() -> _Parser:
    parser = _Parser(prog="symattn", description="Attention mathematics: derived, printed and run.")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    command = commands.add_parser("list", help="the derivations that come with symattn")
    command.set_defaults(run=_list)

    command = commands.add_parser("derive", help="print a derivation")
    command.add_argument("name", metavar="NAME", help="one of those that 'symattn list' shows")
    command.add_argument("--to", choices=("text", "latex"), default="text")
    command.set_defaults(run=_derive)

    command = commands.add_parser("grad", help="gradients of an expression, in closed form, with the steps")
    _add_expression(command)
    command.add_argument("--to", choices=("text", "latex", "numpy", "json"), default="text")
    command.set_defaults(run=_grad)

    command = commands.add_parser("eval", help="an expression, and its gradients, on arrays")
    _add_expression(command)
    command.add_argument("--data", required=True, metavar="FILE.npz", help="the arrays, by the names of the tensors")
    command.add_argument("--grad", action="store_true", help="the gradients too; the data then hold the cotangent, dO")
    command.add_argument("--set", action="append", default=[], metavar="NAME=NUMBER", help="a scalar, or a free size")
    command.add_argument("-o", "--output", metavar="FILE.npz", help="write the results here instead of printing them")
    command.set_defaults(run=_eval)
    return parser


def _add_expression(command: argparse.ArgumentParser) -> None:
    command.add_argument("expression", metavar="EXPR", help='for example "Z = Q @ K.T / sqrt(d); softmax(Z) @ V"')
    command.add_argument(
        "--shape", action="append", default=[], metavar='"Q: T d"', help='a tensor; properties follow: "M: T S, binary"'
    )
    command.add_argument("--scalar", action="append", default=[], metavar="NAME", help="a scalar symbol")
    command.add_argument("--wrt", metavar="NAMES", help="differentiate by these, separated by commas")


# --- derivations ---


def derivations() -> dict[str, Path]:
    """The derivations by name: those inside the installed package, else those of the checkout it runs from."""
    here = Path(__file__).resolve().parent
    folder = here / "derivations"
    if not folder.is_dir():
        folder = here.parent / "derivations"
    return {path.stem.replace("_", "-"): path for path in sorted(folder.glob("[!_]*.py"))}


def load(name: str) -> Derivation:
    """The derivation of a name. Raises OperandError, which lists the known ones, for any other name."""
    known = derivations()
    if name not in known:
        raise OperandError(f"there is no derivation {name!r}; known are {', '.join(known) or 'none'}")
    spec = spec_from_file_location(f"symattn_derivation_{known[name].stem}", known[name])
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.derivation()


def _list(options: argparse.Namespace) -> None:
    for name in derivations():
        print(f"{name:<24}{load(name).title}")


def _derive(options: argparse.Namespace) -> None:
    note = load(options.name)
    print(note.latex() if options.to == "latex" else note.text())


# --- expressions ---


def _declarations(options: argparse.Namespace) -> dict[str, Any]:
    """The tensors and scalar symbols that the command line declares."""
    import sympy

    from .naming import check_name
    from .reading import parse_shape

    tensors = [parse_shape(text) for text in options.shape]
    scalars = [sympy.Symbol(check_name(name), real=True) for name in options.scalar]
    names: dict[str, Any] = {}
    for name, meaning in [*((str(x.name), x) for x in tensors), *((s.name, s) for s in scalars)]:
        if name in names:
            raise OperandError(f"{name!r} is declared twice")
        names[name] = meaning
    return names


def _read(options: argparse.Namespace) -> tuple[Tensor, dict[str, Any]]:
    """The expression, under a name, and the declared names."""
    from .naming import fresh_name
    from .ops.leaves import let, let_op
    from .reading import read

    names = _declarations(options)
    output = read(options.expression, names)
    taken = {*names, *(str(x.name) for x in _below(output)), *(s.name for s in output.free_symbols)}
    return (output if output.op is let_op else let(fresh_name("O" if output.rank else "L", taken), output)), names


def _below(output: Tensor) -> list[Tensor]:
    from .tensor import topological

    return topological([output])


def _variables(options: argparse.Namespace, output: Tensor, names: Mapping[str, Any]) -> list[Any]:
    """What ``--wrt`` names: declared tensors and scalars, and intermediates; by default all real tensors in use."""
    if options.wrt is None:
        constant = {"binary", "integer", "constant"}
        found = [x for x in names.values() if x in output.tensors and not constant & set(x.params["hypotheses"])]
        if not found:
            raise OperandError("the expression has no tensor to differentiate by: name variables by --wrt")
        return found
    known = {**{x.name: x for x in _below(output) if x.name}, **names}
    wanted = [name.strip() for name in options.wrt.split(",")]
    for name in wanted:
        if name not in known:
            raise OperandError(f"--wrt {options.wrt}: {name!r} is none of {', '.join(known)}")
    return [known[name] for name in wanted]


def _gradient(options: argparse.Namespace) -> tuple[Tensor, Gradient, list[Any]]:
    from .calculus import gradient

    output, names = _read(options)
    g = gradient(output, _variables(options, output, names))
    return output, g, _arguments([output], names, [g.cotangent] if output.rank else [])


def _arguments(roots: Iterable[Tensor], names: Mapping[str, Any], more: Iterable[Tensor] = ()) -> list[Any]:
    """What a function of the roots takes: the declared tensors in use, in the order of their declaration."""
    used = {x for root in roots for x in root.tensors}
    return [*(x for x in names.values() if x in used), *more]


def _grad(options: argparse.Namespace) -> None:
    from .codegen import lambdify

    output, g, arguments = _gradient(options)
    writers: dict[str, Callable[[], str]] = {
        "text": lambda: str(g),
        "latex": g.latex,
        "numpy": lambda: lambdify(arguments, [g]).source,
        "json": lambda: json.dumps(_as_json(options.expression, output, g), indent=2),
    }
    print(writers[options.to]().rstrip())


def _as_json(expression: str, output: Tensor, g: Gradient) -> dict[str, Any]:
    from .naming import latex_name

    text, latex = g.printer(latex=False), g.printer(latex=True)

    def described(step: Step) -> dict[str, Any]:
        return {
            "name": step.name,
            "expression": text.refer(step.expression),
            "latex": f"{latex_name(step.name)} = {latex.refer(step.expression)}",
            "reason": step.reason,
            "shape": list(map(str, step.expression.shape)),
        }

    return {
        "expression": expression,
        "output": {"name": output.name, "shape": list(map(str, output.shape))},
        "cotangent": g.cotangent.name if output.rank else "1",
        "shapes": {str(x.name): list(map(str, x.shape)) for x in output.tensors},
        "steps": [described(step) for step in g.steps],
        "definitions": [described(step) for step in g.definitions],
        "side_conditions": list(g.side_conditions),
    }


# --- arrays ---


def _eval(options: argparse.Namespace) -> None:
    from .codegen import lambdify

    if options.grad:
        output, g, arguments = _gradient(options)
        names = [str(output.name), *(str(x.name) for x in g.values())]
        f = lambdify(arguments, [output, g])
    else:
        output, declared = _read(options)
        arguments, names = _arguments([output], declared), [str(output.name)]
        f = lambdify(arguments, [output])
    results = f(*_load(options.data, arguments), **_settings(options.set))
    found = dict(zip(names, results, strict=True))
    if options.output:
        _save(options.output, found)
    else:
        for name, array in found.items():
            print(f"{name} =\n{array}" if getattr(array, "ndim", 0) else f"{name} = {array}")


def _settings(pairs: Sequence[str]) -> dict[str, int | float]:
    settings: dict[str, int | float] = {}
    for pair in pairs:
        name, _, value = pair.partition("=")
        try:
            settings[name.strip()] = int(value) if value.strip().lstrip("+-").isdigit() else float(value)
        except ValueError:
            raise EvaluationError(f"--set takes NAME=NUMBER, for example c=2.5, not {pair!r}") from None
    return settings


def _load(path: str, arguments: Sequence[Tensor]) -> list[Any]:
    """The arrays of the arguments out of an npz file; nothing in it is unpickled."""

    import numpy as np

    try:
        with open(path, "rb") as handle:
            file = np.load(handle, allow_pickle=False)
            if not isinstance(file, np.lib.npyio.NpzFile):
                raise EvaluationError(f"{path} holds one array without a name: save by np.savez(file, Q=..., K=...)")
            missing = [x.brief() for x in arguments if x.name not in file]
            if missing:
                holds = ", ".join(file.files) or "no arrays"
                raise EvaluationError(f"{path} lacks the arrays {', '.join(missing)}; it holds {holds}")
            return [_checked(x, file[str(x.name)]) for x in arguments]
    except (SymattnError, OSError):
        raise
    except Exception as problem:  # a damaged or hostile file may fail in any way inside the readers of zip and npy
        raise EvaluationError(f"{path} cannot be read as arrays by name (npz, without pickles): {problem}") from None


def _checked(x: Tensor, array: Any) -> Any:
    if array.dtype.kind not in "biuf":
        raise EvaluationError(f"the array {x.name} has dtype {array.dtype}; {x.brief()} takes real numbers")
    return array


def _save(path: str, arrays: Mapping[str, Any]) -> None:
    """Write all arrays or nothing: into a temporary file beside the target, which then takes its name."""
    import zipfile

    import numpy as np

    target = Path(path)
    if not target.parent.is_dir():
        raise EvaluationError(f"{path} cannot be written: there is no folder {target.parent}")
    handle, temporary = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.", suffix=".part")
    try:
        with os.fdopen(handle, "wb") as file, zipfile.ZipFile(file, "w") as archive:
            for name, array in arrays.items():  # not np.savez, which keeps some names to itself
                with archive.open(f"{name}.npy", "w", force_zip64=True) as entry:
                    np.lib.format.write_array(entry, np.asanyarray(array), allow_pickle=False)
        os.chmod(temporary, 0o666 & ~_umask())
        os.replace(temporary, target)
    except BaseException:
        os.unlink(temporary)
        raise


def _umask() -> int:
    """The mask for new files, which mkstemp does not follow; it can only be read by setting it."""
    mask = os.umask(0)
    os.umask(mask)
    return mask


if __name__ == "__main__":
    sys.exit(main())
