"""Normalisers with zeros: sparsemax and 1.5-entmax, by formulas that do not sort.

Both are ``p = relu((alpha - 1) z - tau)^(1 / (alpha - 1))`` with the threshold tau that makes the row sum to 1, for
alpha = 2 and alpha = 1.5 (softmax is alpha = 1). An entry is in the support if the entries above it, lowered by it,
do not use up the 1 already; tau follows from sums over the support. Formulas: Martins & Astudillo 2016 (arXiv
1602.02068), Peters, Niculae & Martins 2019 (arXiv 1905.05702).
"""

from __future__ import annotations

from typing import Any

import sympy

from ..core.boxes import Box, Number, Script, function
from ..core.node import Tensor
from ..core.operation import Entry, Operation
from ..scalars.formulas import Choice, bound, compared
from .arithmetic import divide, multiply, subtract
from .broadcasting import summed
from .index import replaced
from .logic import greater, where
from .notation import call, root, told_axis
from .pointwise import maximum
from .rows import along


class _Row:
    """The row of logits through one entry, and sums over its support, from the entry formula of the logits."""

    def __init__(self, read: Any, index: Any, node: Tensor, scale: Any, power: int) -> None:
        self.read, self.index, self.axis = read, index, node.params["axis"]
        self.outer, self.inner = (bound(node, slot, node.shape[self.axis]) for slot in (0, 1))
        self.scale, self.power = scale, power
        self.masked = node.inputs[0].holds_minus_infinity

    def at(self, k: Any) -> Any:
        return self.read(0, replaced(self.index, self.axis, k))

    def where_supported(self, z: Any, term: Any) -> Any:
        """The term if the entries above z, lowered by z, do not use up the 1; else 0."""
        other = self.at(self.inner[0])
        above = Choice(compared(sympy.Gt, other, z), (self.scale * (other - z)) ** self.power, sympy.S.Zero)
        chosen = Choice(sympy.Sum(above, self.inner) < 1, term, sympy.S.Zero)
        return Choice(z > -sympy.oo, chosen, sympy.S.Zero) if self.masked else chosen

    def over_support(self, term: Any) -> Any:
        """The sum of ``term(scale * z_k)`` over the support."""
        z = self.at(self.outer[0])
        return sympy.Sum(self.where_supported(z, term(self.scale * z)), self.outer)

    def entry(self, threshold: Any) -> Any:
        z = self.at(self.index[len(self.index) + self.axis])
        return self.where_supported(z, (self.scale * z - threshold) ** self.power)


def _sparsemax_entry(read: Any, index: Any, node: Tensor) -> Any:
    row = _Row(read, index, node, 1, 1)
    count = row.over_support(lambda x: sympy.S.One)
    return row.entry((row.over_support(lambda x: x) - 1) / count)


def _entmax_entry(read: Any, index: Any, node: Tensor) -> Any:
    row = _Row(read, index, node, sympy.Rational(1, 2), 2)
    count = row.over_support(lambda x: sympy.S.One)
    mean = row.over_support(lambda x: x) / count
    spread = row.over_support(lambda x: x**2) / count - mean**2
    return row.entry(mean - sympy.sqrt(1 / count - spread))


def _family_rule(support: Any) -> Any:
    """``dz = s * (g - rowsum(s * g) / rowsum(s))`` with ``s = p^(2 - alpha)`` on the support."""

    def rule(g: Tensor, p: Tensor, z: Tensor, axis: int) -> Tensor:
        s = support(p)
        total = summed(s, (axis,), True)
        if z.holds_minus_infinity:  # a row without support; any other has a total of at least 1
            total = maximum(total, 1)
        return multiply(s, subtract(g, divide(summed(multiply(s, g), (axis,), True), total)))

    return rule


def _normaliser(name: str, entry: Entry, rule: Any, head: Box | None = None) -> Operation:
    def axis(node: Tensor) -> Any:
        return node.params["axis"] if node.params["axis"] != -1 else None

    return Operation(
        name,
        shape=lambda z, axis: z.shape,
        entry=entry,
        vjp=lambda g, p, z, axis: (rule(g, p, z, axis),),
        jvp=lambda tangents, p, z, axis: rule(tangents[0], p, z, axis),
        numpy=lambda code, node, z: code.helper(name, z, "" if axis(node) is None else f"axis={axis(node)}"),
        notation=lambda p, node: call(p, name, node, head, axis=told_axis(p, node, node.params["axis"])),
        reason=f"{name}: within the support, each row has the Jacobian diag(s) - outer(s, s) / sum(s)",
        letters=("P", "Z"),
        minus_infinity="absorbed",
        rows="probabilities",
        nonsmooth=f"{name} is not differentiable where an entry is just at its threshold; 0 is taken there",
    )


# The square root of probabilities, some of them 0, where it is taken to be flat: entmax only needs it on the support.
support_sqrt_op: Operation = Operation(
    "support_sqrt",
    shape=lambda p: p.shape,
    entry=lambda read, index, node: Choice(read(0, index) > 0, sympy.sqrt(read(0, index)), sympy.S.Zero),
    vjp=lambda g, s, p: (_support_slope(g, s),),
    jvp=lambda tangents, s, p: _support_slope(tangents[0], s),
    numpy=lambda code, node, p: f"np.sqrt({p})",
    notation=root,
    reason="chain rule, entry by entry, through the square root on the support",
    nonsmooth="the square root is not differentiable at 0; 0 is taken there",
)


def _support_slope(g: Tensor, s: Tensor) -> Tensor:
    inside = greater(s, 0)
    return divide(where(inside, g, 0), multiply(2, where(inside, s, 1)))


sparsemax_op = _normaliser("sparsemax", _sparsemax_entry, _family_rule(lambda p: greater(p, 0)))
entmax15_op = _normaliser(
    "entmax15", _entmax_entry, _family_rule(lambda p: support_sqrt_op(p)), Script(function("entmax"), Number("1.5"))
)


def sparsemax(z: Any, axis: int = -1) -> Tensor:
    """The nearest point of the simplex along an axis: ``p[i, j] = max(z[i, j] - tau[i], 0)``, each row summing to 1.

    Adding -oo to z masks an entry; a row with nothing left gives zeros. Raises ShapeError for an axis that is not
    there. Source: Martins & Astudillo 2016, arXiv 1602.02068.

    >>> import symattn as sa
    >>> print(sa.sparsemax(sa.tensor("Z", "T S")))
    sparsemax(Z)
    """
    return along(sparsemax_op, z, axis)


def entmax15(z: Any, axis: int = -1) -> Tensor:
    """1.5-entmax along an axis: ``p[i, j] = max(z[i, j] / 2 - tau[i], 0)**2``, each row summing to 1.

    Adding -oo to z masks an entry; a row with nothing left gives zeros. Raises ShapeError for an axis that is not
    there. Source: Peters, Niculae & Martins 2019, arXiv 1905.05702.

    >>> import symattn as sa
    >>> print(sa.latex(sa.entmax15(sa.tensor("Z", "T S"))))
    \\operatorname{entmax}_{1.5}(Z)
    """
    return along(entmax15_op, z, axis)
