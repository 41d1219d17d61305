"""SymPy's matrix expressions read as tensors, and what is refused."""

from __future__ import annotations

import pytest
import sympy
from sympy.combinatorics import Permutation
from sympy.matrices.expressions.diagonal import DiagonalMatrix, DiagonalOf

import symattn as sa

from ..bordering import SLOPE, A, B, C, Ks, Q, Qs, column, m, n, row, u

READ = {
    "MatMul": (B * C, "B @ C"),
    "scaled": (2 * A * A / sympy.sqrt(n), "2 * (A @ A) / sqrt(n)"),
    "MatAdd": (A + A.T, "A + A.T"),
    "HadamardPower": (sympy.HadamardPower(A, 2), "A**2"),
    "entrywise exponent": (sympy.HadamardPower(A, A), "A**A"),
    "Inverse": (A.inv() * B, "inv(A) @ B"),
    "MatPow": (A**3, "A @ A @ A"),
    "inverse power": (A**-2, "inv(A) @ inv(A)"),
    "zeroth power": (sympy.MatPow(A, 0), "eye(n)"),
    "Trace": (sympy.Trace(A), "trace(A)"),
    "scalars of traces": (3 * sympy.Trace(A) ** 2 + 1, "1 + 3 * trace(A)**2"),
    "a function of a trace": (sympy.exp(sympy.Trace(A)), "exp(trace(A))"),
    "one over a trace": (A / sympy.Trace(A), "1 / trace(A) * A"),
    "a norm": (sympy.sqrt(sympy.Trace(A.T * A)), "sqrt(trace(A.T @ A))"),
    "DiagMatrix": (sympy.DiagMatrix(column), "diag(x[:, 0])"),
    "DiagMatrix of a row": (sympy.DiagMatrix(row), "diag(y[0, :])"),
    "DiagonalMatrix": (DiagonalMatrix(A), "A * eye(n)"),
    "DiagonalOf": (DiagonalOf(A), "diag(A)[:, None]"),
    "Identity": (sympy.Identity(n), "eye(n)"),
    "OneMatrix": (sympy.OneMatrix(n, m), "ones(n, m)"),
    "ZeroMatrix": (sympy.ZeroMatrix(n, m), "zeros(n, m)"),
    "applyfunc": (B.applyfunc(sympy.exp), "exp(B)"),
    "applyfunc of a root": (B.applyfunc(sympy.sqrt), "sqrt(B)"),
    "applyfunc of a Lambda": (B.applyfunc(lambda t: t**2 + 1), "elementwise(lambda x: x**2 + 1, B)"),
    "applyfunc of an unknown function": (B.applyfunc(sympy.Function("phi")), 'unknown("phi", B)'),
    "BlockMatrix": (sympy.BlockMatrix([[A, B]]), "concat([A, B], axis=-1)"),
    "MatrixSlice": (sympy.MatrixSymbol("W", 5, 4)[1:3, ::2], "W[1:3, ::2]"),
    "MatrixElement": (A[0, 1], "A[0, 1]"),
    "a quadratic form": ((column.T * A * column)[0, 0], 'einsum("ab,a,b->", A, x[:, 0], x[:, 0])'),
    "FunctionMatrix": (sympy.FunctionMatrix(n, m, SLOPE), "from_index((n, m), lambda i, j: i - 2*j)"),
    "Adjoint of a real matrix": (sympy.Adjoint(B), "B.T"),
    "a scalar": (sympy.sqrt(u) * 2, "2*sqrt(u)"),
}


@pytest.mark.parametrize("kind", READ)
def test_each_kind_of_sympy_node_is_read(kind):
    expr, written = READ[kind]
    assert str(sa.from_sympy(expr)) == written


NUMERIC = {
    "KroneckerProduct": sympy.KroneckerProduct(A, B),
    "BlockMatrix": sympy.BlockMatrix([[A, B], [C, sympy.Identity(m)]]),
    "BlockDiagMatrix": sympy.BlockDiagMatrix(A, B * C),
    "an explicit matrix": sympy.Matrix([[1, 2], [0, -3]]) * sympy.MatrixSymbol("P", 2, 3),
    "a bare explicit matrix": sympy.Matrix([[1, 2, 0], [0, -3, 4]]),
    "DiagonalOf": DiagonalOf(A),
    "DiagMatrix of a row": sympy.DiagMatrix(row) * A,
    "HadamardPower": sympy.HadamardPower(A, 3),
    "a quadratic form": (column.T * A * column)[0, 0],
    "FunctionMatrix": sympy.FunctionMatrix(n, m, SLOPE),
}


@pytest.mark.parametrize("kind", NUMERIC)
def test_what_is_read_has_the_entries_of_sympys_own_explicit_matrix(kind):
    """At n = 2, m = 3 both written out, as polynomials in the same entries."""
    expr = NUMERIC[kind]
    got = sa.from_sympy(expr).as_explicit({n: 2, m: 3})
    fixed = expr.subs({n: 2, m: 3})
    want = fixed.as_explicit() if hasattr(fixed, "as_explicit") else fixed.doit()

    def indexed(formula):
        return formula.replace(
            lambda part: isinstance(part, sympy.matrices.expressions.matexpr.MatrixElement),
            lambda part: sympy.IndexedBase(sympy.Symbol(str(part.parent), real=True))[part.i, part.j],
        )

    difference = sympy.Matrix([indexed(want)]) - sympy.Matrix([got])
    assert difference.applyfunc(sympy.expand).is_zero_matrix


REFUSED = {
    "text": (lambda: sa.from_sympy("A*B"), sa.OperandError, r"takes a SymPy expression, not .A\*B."),
    "Determinant": (lambda: sa.from_sympy(sympy.Determinant(A)), sa.OperandError, "no Determinant.*no determinant"),
    "symbolic power": (lambda: sa.from_sympy(A**u), sa.OperandError, "exponent u: only fixed integers"),
    "symbolic entry": (lambda: sa.from_sympy(A[u, 0]), sa.OperandError, "symbolic index"),
    "generic size": (
        lambda: sa.from_sympy(sympy.MatrixSymbol("Z", sympy.Symbol("p"), 2)),
        sa.ShapeError,
        r"p is not a positive integer symbol.*sa\.sizes\('p'\)",
    ),
    "sizes that SymPy accepts": (lambda: sa.from_sympy(Qs * Ks), sa.ShapeError, r"did you mean K\.T"),
    "permutation": (
        lambda: sa.from_sympy(sympy.PermutationMatrix(Permutation([1, 0]))),
        sa.OperandError,
        "permutation=True",
    ),
    "array": (lambda: sa.from_sympy(sympy.Array([1, 2])), sa.OperandError, "knows no ImmutableDenseNDimArray"),
    "relation": (lambda: sa.from_sympy(sympy.Eq(u, 1)), sa.OperandError, "knows no Equality"),
    "complex": (lambda: sa.from_sympy(sympy.I * A), sa.OperandError, "not a real scalar"),
    "a matrix of entries": (lambda: sa.from_sympy(sympy.Matrix([[A[0, 0]]])), sa.OperandError, "holds A"),
    "part of a sum": (
        lambda: sa.from_sympy(sympy.Sum(A[sympy.Symbol("i"), 0], (sympy.Symbol("i"), 1, n - 1))),
        sa.OperandError,
        "whole axes",
    ),
    "a function of a matrix": (lambda: sa.from_sympy(sympy.exp(A)), sa.OperandError, r"applyfunc\(sympy.exp\)"),
    "a diagonal of a rectangle": (lambda: sa.from_sympy(DiagonalOf(B)), sa.ShapeError, "square"),
    "name": (lambda: sa.from_sympy(sympy.MatrixSymbol("__import__('os')", 2, 2)), sa.NamingError, "cannot be a name"),
    "product by *": (lambda: Q * (Qs + Qs), sa.OperandError, "matrix product"),
    "product by * from the left": (lambda: (A + A.T) * sa.tensor("W", n, n), sa.OperandError, "matrix product"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_has_no_counterpart_is_refused_by_name(case):
    make, error, said = REFUSED[case]
    with pytest.raises(error, match=said):
        make()
