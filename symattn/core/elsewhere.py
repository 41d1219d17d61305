"""Names that people know from NumPy, PyTorch, SymPy and papers, and how the same thing is written here."""

from __future__ import annotations

WRITTEN = {
    "reshape": "sa.split_axis or sa.merge_axes, which say which axes are meant",
    "view": "sa.split_axis or sa.merge_axes, which say which axes are meant",
    "flatten": "sa.merge_axes", "ravel": "sa.merge_axes",
    "unsqueeze": "x[..., None]", "expand_dims": "x[..., None]", "newaxis": "None", "squeeze": "x[..., 0]",
    "transpose": "x.mT, or sa.moveaxis for other axes", "swapaxes": "sa.moveaxis", "permute": "sa.moveaxis",
    "matmul": "a @ b", "dot": "a @ b", "mm": "a @ b", "bmm": "a @ b", "mv": "a @ b", "inner": "a @ b",
    "tensordot": "sa.einsum", "add": "a + b", "subtract": "a - b", "sub": "a - b", "multiply": "a * b",
    "mul": "a * b", "divide": "a / b", "div": "a / b", "power": "a**b", "pow": "a**b", "square": "x**2",
    "reciprocal": "1 / x", "negative": "-x", "neg": "-x",
    "ge": "sa.le(b, a) for a claim, a >= b for a mask", "gt": "sa.lt(b, a) for a claim, a > b for a mask",
    "greater": "a > b", "greater_equal": "a >= b", "less": "a < b", "less_equal": "a <= b",
    "logical_and": "a & b", "logical_or": "a | b", "logical_not": "~a", "masked_fill": "sa.where(~mask, x, 0)",
    "norm": "sa.sqrt(sa.sum(x**2)), or sa.attention.l2_norm for rows of length 1",
    "normalize": "sa.attention.l2_norm", "rope": "sa.attention.rotary", "mha": "sa.attention.multi_head",
    "attention_weights": "sa.attention.weights", "nll_loss": "sa.attention.cross_entropy",
    "stack": "sa.concat of x[None]", "vstack": "sa.concat(..., axis=0)", "hstack": "sa.concat(..., axis=-1)",
    "cat": "sa.concat", "concatenate": "sa.concat", "roll": "sa.take, or sa.shift without the wrap",
    "arange": "sa.from_index((n,), lambda i: i)", "full": "c * sa.ones(n)", "identity": "sa.eye",
    "zeros_like": "0 * x", "ones_like": "sa.ones(*x.shape)", "array": "sa.tensor", "asarray": "sa.tensor",
    "gather": "sa.take", "index_select": "sa.take", "repeat_interleave": "sa.repeat", "amax": "sa.max",
    "amin": "sa.min", "var": "sa.mean((x - sa.mean(x))**2); sa.variance is of random tensors", "clip":
    "sa.minimum(sa.maximum(x, low), high)", "clamp": "sa.minimum(sa.maximum(x, low), high)",
    "detach": "sa.stop_gradient", "grad": "sa.gradient", "jacrev": "sa.jacobian", "vjp": "sa.gradient",
    "compile": "sa.lambdify", "Symbol": "sa.sizes for sizes, sympy.Symbol for scalars", "symbols": "sa.sizes",
    "Equality": "sa.equal(a, b) for a comparison entry by entry", "Unequality": "~sa.equal(a, b)",
    "Sum": "sa.sum(x)", "Product": "sa.exp(sa.sum(sa.log(x)))", "Abs": "sa.abs(x)", "Mod": "sa.mod(a, b)",
    "Max": "sa.maximum(a, b), or sa.max(x) over an axis", "Min": "sa.minimum(a, b), or sa.min(x) over an axis",
    "Derivative": "sa.gradient(y, [x])", "diff": "sa.gradient(y, [x])", "Trace": "sa.trace(x)", "Transpose": "x.T",
    "Add": "a + b", "MatAdd": "a + b", "Mul": "a * b", "HadamardProduct": "a * b", "MatMul": "a @ b", "Pow": "x**n",
    "simplify": "the tensor itself: symattn tidies what it builds",
    "expand": "the tensor itself: symattn tidies what it builds",
    "invert": "sa.inv", "linalg": "sa.inv, sa.trace, sa.diag",
}  # fmt: skip
