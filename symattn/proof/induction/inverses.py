"""Inverses of matrices that grow by rows and columns: [[A, 0], [C, D]], whose inverse is made of those of A and D."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import sympy

from ...core.naming import new_name
from ...core.node import Tensor, rebuild, topological
from ...core.sizes import never_negative, same_shape
from ...ops.inverse import inv_op
from ...ops.layout import concat
from ...ops.leaves import ones, variable, zeros
from ...printing.matrix import names_in
from ...printing.prose import Paragraph, Part
from ...printing.table import SymbolTable
from ..argument import Argument, Given, Resting
from ..claims import Claim, Independence, eq

RULE = "The inverse of a block lower triangular matrix is [[inv(A), 0], [-inv(D) C inv(A), inv(D)]]"
Argued = Callable[[Claim], Argument | None]


@dataclass
class _Blocks:
    """The inverses of a claim by those of smaller matrices, for which free tensors stand, and what makes them so."""

    argued: Argued
    taken: set[str]
    stands_for: dict[Tensor, Tensor] = field(default_factory=dict)  # the inverse of a matrix, by the matrix
    claims: list[tuple[Claim, Argument]] = field(default_factory=list)
    divisors: list[Tensor] = field(default_factory=list)

    def holds(self, left: Tensor, right: Tensor) -> bool:
        """Whether two parts are proved to be equal, which is kept."""
        if left is right:
            return True
        argument = self.argued(eq(left, right))
        if argument is not None:
            self.claims.append((eq(left, right), argument))
        return argument is not None

    def known(self, A: Tensor) -> Tensor | None:
        """What stands for the inverse of a matrix, if that is one that was met."""
        fitting = [B for B in self.stands_for if same_shape(A.shape, B.shape)]
        return next((self.stands_for[B] for B in fitting if self.holds(B, A)), None)

    def inverse(self, A: Tensor) -> Tensor:
        """A free tensor for the inverse of a matrix."""
        found = self.known(A)
        if found is None:
            found = variable(name=new_name("W", self.taken), shape=A.shape, hypotheses=())
            self.stands_for[A] = found
        return found

    def by_blocks(self, A: Tensor, low: sympy.Expr) -> Tensor | None:
        """The inverse of a matrix whose upper right block is seen to be zero."""
        grows, lead = sympy.expand(A.shape[-1] - low), A.shape[:-2]
        if not self.holds(A[..., :low, low:], zeros(*lead, low, grows)):
            return None
        W, corner = self.inverse(A[..., :low, :low]), A[..., low:, low:]
        if grows != 1:
            last = self.inverse(corner)
        elif self.holds(corner, ones(*lead, 1, 1)):
            last = ones(*lead, 1, 1)
        else:
            self.divisors.append(corner)
            last = 1 / corner
        row = -(last @ A[..., low:, :low] @ W)
        return concat([concat([W, zeros(*lead, low, grows)], axis=-1), concat([row, last], axis=-1)], axis=-2)


@dataclass(frozen=True, eq=False)
class ByBlocks(Resting):
    """A proof of a claim in which inverses are written by those of blocks, and why they may be."""

    argument: Argument
    before: sympy.Symbol
    claims: tuple[tuple[Claim, Argument], ...]
    corners: tuple[Tensor, ...]

    @property
    def parts(self) -> tuple[Argument, ...]:
        return (*(argument for _, argument in self.claims), self.argument)

    @property
    def divisors(self) -> tuple[Tensor, ...]:
        return tuple(dict.fromkeys([*self.corners, *super().divisors]))

    def proves(self, claim: Claim | Independence, given: Given) -> bool:
        """Whether the inverses, written by blocks again, give the claim that was proved."""
        known = dict(self.claims)
        found = None if not isinstance(claim, Claim) else _written(claim, self.before, given, known.get)
        return (
            found is not None
            and (tuple(found[1].claims), tuple(found[1].divisors)) == (self.claims, self.corners)
            and all(argument.proves(part, given) for part, argument in self.claims)
            and self.argument.proves(found[0], given)
        )

    def text(self) -> str:
        return f"{RULE}.\n{self.argument.text()}"

    def told(self, within: SymbolTable | None = None) -> tuple[Part, ...]:
        return Paragraph((f"{RULE}.",)), *self.argument.told(within)


def by_blocks(claim: Claim, before: sympy.Symbol, given: Given, argued: Argued) -> ByBlocks | None:
    """A proof of a claim about matrices of n + 1 rows, or blocks of rows, through the inverses of n.

    ``argued`` proves what is asked of the blocks, and the claim by them.
    """
    found = _written(claim, before, given, argued)
    argument = None if found is None else argued(found[0])
    if found is None or argument is None:
        return None
    return ByBlocks(argument, before, tuple(found[1].claims), tuple(found[1].divisors))


def _written(claim: Claim, before: sympy.Symbol, given: Given, argued: Argued) -> tuple[Claim, _Blocks] | None:
    """The claim with inverses by blocks; None where there are none."""
    inverses = [x for x in topological(claim.sides) if x.op is inv_op]
    blocks, new = _Blocks(argued, names_in(claim.sides) | given.names), {}
    for x in inverses:
        low = _of_before(x.shape[-1], before)
        made = None if low is None else blocks.by_blocks(x.inputs[0], low)
        if made is not None:
            new[x] = made
    for x in inverses:
        if x not in new and blocks.stands_for and (W := blocks.known(x.inputs[0])) is not None:
            new[x] = W
    if not new:
        return None
    left, right = rebuild(claim.sides, new)
    return Claim(left, claim.relation, right), blocks


def _of_before(size: sympy.Expr, n: sympy.Symbol) -> sympy.Expr | None:
    """How large a matrix was a step before; None where it did not grow."""
    if n not in size.free_symbols or sympy.expand(size.subs(n, 0)) == 0:
        return None  # without n, or at n itself
    low = sympy.expand(size.subs(n, n - 1))
    return low if never_negative(low - 1) else None
