"""``symattn diagnose``: which known mistake explains the arrays of somebody's own code."""

from __future__ import annotations

import argparse
from typing import Any

from ..checking.diagnosis import Diagnosis, diagnose
from ..core.naming import in_python
from ..core.node import Tensor
from .arrays import load, of_arguments, settings
from .expressions import add_expression, add_formats, differentiated, show


def add_options(command: argparse.ArgumentParser) -> None:
    """The expression, the arrays it was computed at, and what was found there."""
    add_expression(command)
    command.add_argument("--data", required=True, metavar="FILE.npz", help="the arguments and the cotangent, by name")
    command.add_argument("--found", required=True, metavar="FILE.npz", help="what is to be explained: dQ, dZ, O ...")
    command.add_argument("--set", action="append", default=[], metavar="NAME=NUMBER", help="a scalar")
    command.add_argument("--tolerance", type=float, help="relative to the largest entry, by default that of the dtype")
    add_formats(command, "text", "json")


def run(options: argparse.Namespace) -> int:
    """Print what explains the arrays; 0 where all agree, else 1."""
    output, g, arguments = differentiated(options)
    tensors, numbers = [x for x in arguments if isinstance(x, Tensor)], settings(options.set)
    arrays = dict(zip(tensors, of_arguments(options.data, tensors), strict=True))
    scalars = {s: numbers[name] for s in output.free_symbols if (name := in_python(s.name)) in numbers}
    diagnosis = diagnose(load(options.found), g, {**arrays, **scalars}, tolerance=options.tolerance)
    show(options, text=lambda: str(diagnosis), json=lambda: _as_json(diagnosis))
    return 1 if diagnosis.wrong else 0


def _as_json(diagnosis: Diagnosis) -> dict[str, Any]:
    told = [{"mistake": str(one), "places": list(one.places), "explains": list(one.of)} for one in diagnosis.likeliest]
    return {"right": list(diagnosis.right), "wrong": dict(diagnosis.wrong), "mistakes": told}
