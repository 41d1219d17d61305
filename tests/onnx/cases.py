"""The node tests that the ONNX package carries, as arrays by the names of the operator's schema; nothing runs ONNX."""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np


class Case(NamedTuple):
    """One node: its attributes, with the defaults of the schema filled in, its inputs, and the outputs it must have.

    An optional attribute or input that is absent and has no default is not in its mapping.
    """

    name: str
    attributes: Mapping[str, Any]
    inputs: Mapping[str, np.ndarray]
    outputs: Mapping[str, np.ndarray]


class Graph(NamedTuple):
    """An attribute that is a graph: its name, and the numbers in it that are one number each."""

    name: str
    numbers: list[float]


@cache
def cases(operator: str, module: str) -> list[Case]:
    """Every node test of an operator; the copies with the operator written out as others (``_expanded``) are left out.

    The package has them as Python code in ``onnx/backend/test/case/node/<module>.py``, which makes them when imported.
    """
    with warnings.catch_warnings():  # of the package about itself
        warnings.simplefilter("ignore")
        from onnx.backend.test.case import node as generators  # optional: without it these tests are skipped

        importlib.import_module(f"{generators.__name__}.{module}")
    made = (test for test in generators._NodeTestCases if "_expanded" not in test.name)
    return [_case(test) for test in made if [node.op_type for node in test.model.graph.node] == [operator]]


def _case(test: Any) -> Case:
    import onnx

    (node,), ((given, expected),) = test.model.graph.node, test.data_sets
    versions = {imported.domain: imported.version for imported in test.model.opset_import}
    schema = onnx.defs.get_schema(node.op_type, versions[node.domain], node.domain)
    defaults = [a.default_value for a in schema.attributes.values() if a.default_value.name]
    attributes = {a.name: _attribute(a) for a in (*defaults, *node.attribute)}
    inputs, outputs = _by_name(node.input, schema.inputs, given), _by_name(node.output, schema.outputs, expected)
    return Case(test.name, attributes, inputs, outputs)


def _attribute(attribute: Any) -> Any:
    import onnx

    value = onnx.helper.get_attribute_value(attribute)
    if isinstance(value, onnx.GraphProto):
        return Graph(value.name, [onnx.numpy_helper.to_array(x).item() for x in value.initializer if not x.dims])
    return value.decode() if isinstance(value, bytes) else value


def _by_name(given: Sequence[str], declared: Sequence[Any], arrays: Sequence[Any]) -> dict[str, np.ndarray]:
    """The arrays by the declared names; an empty name is an absent input, and the last name may take several arrays."""
    remaining, found = iter(arrays), {}
    for place, name in enumerate(given):
        if name:
            formal = declared[min(place, len(declared) - 1)]
            found[f"{formal.name}{place}" if formal.option.name == "Variadic" else formal.name] = np.asarray(
                next(remaining)
            )
    return found
