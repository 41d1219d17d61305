"""GPT-2 from end to end: tokens, embeddings and positions, blocks, a last norm, and the scores of the next token."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import sympy

from ..core.arguments import each_of, few, flag
from ..core.node import Tensor
from ..core.sizes import as_size, quotient
from ..errors import OperandError, ShapeError, described
from ..ops.layout import matrix_transpose
from ..ops.leaves import as_tensor, named, tensor
from .blocks import affine, mlp, pre_norm_block
from .dot_product import scaled_dot_product
from .masks import causal_mask
from .norms import layer_norm
from .positions import embed
from .projections import merge_heads, split_heads


class Block(NamedTuple):
    """The parameters of one block: norm, attention, norm, feed-forward layer."""

    gamma_a: Tensor
    beta_a: Tensor
    W_q: Tensor
    b_q: Tensor
    W_k: Tensor
    b_k: Tensor
    W_v: Tensor
    b_v: Tensor
    W_o: Tensor
    b_o: Tensor
    gamma_f: Tensor
    beta_f: Tensor
    W_in: Tensor
    b_in: Tensor
    W_out: Tensor
    b_out: Tensor


class Parameters(NamedTuple):
    """The parameters of a GPT: two tables, the blocks, the last norm, and W_u[d, n] unless it is the transposed W_e."""

    heads: sympy.Expr
    W_e: Tensor
    W_p: Tensor
    blocks: tuple[Block, ...]
    gamma: Tensor
    beta: Tensor
    W_u: Tensor | None

    @property
    def tensors(self) -> tuple[Tensor, ...]:
        """All of them in the order of use, as ``gradient`` and ``lambdify`` take them."""
        inside = [x for block in self.blocks for x in block]
        last = [] if self.W_u is None else [self.W_u]
        return (self.W_e, self.W_p, *inside, self.gamma, self.beta, *last)


def gpt_parameters(
    vocabulary: Any, context: Any, width: Any, layers: int, heads: Any, hidden: Any = None, *, tied: bool = True
) -> Parameters:
    """Named tensors for all parameters of a GPT-2, of numbers or of symbolic sizes.

    W_e[n, d] and W_p[C, d] for a ``vocabulary`` of n tokens, a ``context`` of C places and the ``width`` d; in block 1
    gamma_a_1[d], W_q_1[d, d], b_q_1[d], .. and W_in_1[d, f], W_out_1[f, d] with ``hidden`` f (default 4 d); and so on
    for ``layers`` blocks; a last gamma[d] and beta[d]. ``tied`` (the default, as in GPT-2): the scores of the tokens
    are read by W_e; else there is W_u[d, n]. ``.tensors`` lists all of them, for ``sa.gradient`` and ``sa.lambdify``.
    Raises ShapeError if the heads do not divide the width.
    Source: Radford et al. 2019, Language Models are Unsupervised Multitask Learners, section 2.3.

    >>> import symattn as sa
    >>> small = sa.attention.gpt_parameters(50257, 1024, 768, layers=12, heads=12)
    >>> sa.attention.parameter_count(small)
    124439808
    """
    n, places, d, h = map(as_size, (vocabulary, context, width, heads))
    f = 4 * d if hidden is None else as_size(hidden)
    if isinstance(layers, bool) or not isinstance(layers, int) or layers < 1:
        raise OperandError(f"gpt_parameters: layers is a number of blocks, 1 or more, not {described(layers)}")
    few("gpt_parameters", layers, "layers", 10_000)
    if (d / h).is_integer is False:
        raise ShapeError(f"gpt_parameters: {h} heads do not divide the width {d}")
    quotient(d, h)
    shapes: dict[str, tuple[sympy.Expr, ...]] = {name: (d,) for name in Block._fields}
    shapes |= {name: (d, d) for name in ("W_q", "W_k", "W_v", "W_o")}
    shapes |= {"W_in": (d, f), "b_in": (f,), "W_out": (f, d)}
    blocks = tuple(
        Block(**{name: tensor(f"{name}_{k}", *shape) for name, shape in shapes.items()}) for k in range(1, layers + 1)
    )
    return Parameters(
        heads=h,
        W_e=tensor("W_e", n, d),
        W_p=tensor("W_p", places, d),
        blocks=blocks,
        gamma=tensor("gamma", d),
        beta=tensor("beta", d),
        W_u=None if flag("gpt_parameters", "tied", tied) else tensor("W_u", d, n),
    )


def gpt(tokens: Any, parameters: Parameters, *, activation: Any = "gelu_tanh", eps: Any = 1e-5) -> Tensor:
    """GPT-2: the scores of the next token after each token, ``layer_norm(X_N) @ W_e.T``.

    tokens[.., T], declared ``integer=True``, with T up to the context; the scores are [.., T, n]. ``X_0 = W_e[tokens] +
    W_p[:T]``, then pre-norm blocks of causal attention and a feed-forward layer, all with biases. ``activation`` is
    that of ``mlp`` ("gelu_tanh", as in GPT-2) and ``eps`` that of ``layer_norm``. Raises ShapeError for more tokens
    than places, and OperandError for tokens not declared integers; the compiled function raises EvaluationError
    for an unknown token.
    Source: Radford et al. 2019, Language Models are Unsupervised Multitask Learners, section 2.3.

    >>> import symattn as sa
    >>> parameters = sa.attention.gpt_parameters("n", "C", "d", layers=2, heads="h")
    >>> scores = sa.attention.gpt(sa.tensor("t", "T", integer=True), parameters)
    >>> print(scores.inputs[0], scores.shape)
    N_5 @ W_e.T (T, n)
    """
    if not isinstance(parameters, Parameters):
        raise OperandError(f"gpt: the parameters are those that gpt_parameters makes, not {described(parameters)}")
    x = embed(tokens, parameters.W_e, parameters.W_p)
    for block in parameters.blocks:
        x = _applied(block, x, parameters.heads, activation, eps)
    read = parameters.W_u if parameters.W_u is not None else matrix_transpose(parameters.W_e)
    return named("logits", layer_norm(x, parameters.gamma, parameters.beta, eps=eps) @ read)


def _applied(block: Block, x: Tensor, heads: sympy.Expr, activation: Any, eps: Any) -> Tensor:
    def attention(x: Tensor) -> Tensor:
        weights = {"Q": (block.W_q, block.b_q), "K": (block.W_k, block.b_k), "V": (block.W_v, block.b_v)}
        q, k, v = (named(name, split_heads(affine("gpt", x, *given), heads)) for name, given in weights.items())
        attended = scaled_dot_product(q, k, v, mask=causal_mask(x.shape[-2]))
        return named("Y", affine("gpt", named("H", merge_heads(attended)), block.W_o, block.b_o))

    return pre_norm_block(
        x,
        attention,
        lambda x: mlp(x, block.W_in, block.W_out, block.b_in, block.b_out, activation=activation),
        norm=(
            lambda x: layer_norm(x, block.gamma_a, block.beta_a, eps=eps),
            lambda x: layer_norm(x, block.gamma_f, block.beta_f, eps=eps),
        ),
    )


def parameter_count(parameters: Parameters | Iterable[Any]) -> sympy.Expr:
    """How many numbers the parameters hold, exactly: the sum of the products of their sizes.

    Of ``gpt_parameters``, or of any tensors; one that occurs twice is counted once.

    >>> import symattn as sa
    >>> print(sa.attention.parameter_count(sa.attention.gpt_parameters("n", "C", "d", layers=1, heads="h")))
    C*d + 12*d**2 + d*n + 15*d
    """
    given = parameters.tensors if isinstance(parameters, Parameters) else map(as_tensor, each_of(parameters))
    return sympy.expand(sympy.Add(*(sympy.Mul(*x.shape) for x in dict.fromkeys(given))))
