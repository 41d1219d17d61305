"""How many parameters GPT-2 has, counted from the shapes of its tensors."""

from __future__ import annotations

import sympy

import symattn as sa

n, C, d, h, N = sa.sizes("n C d h N")
SMALL = {n: 50257, C: 1024, d: 768, N: 12}
MODEL = sa.attention.gpt_parameters(n, C, d, layers=1, heads=h)
BLOCK = MODEL.blocks[0]
ATTENTION = (BLOCK.W_q, BLOCK.b_q, BLOCK.W_k, BLOCK.b_k, BLOCK.W_v, BLOCK.b_v, BLOCK.W_o, BLOCK.b_o)
NETWORK = (BLOCK.W_in, BLOCK.b_in, BLOCK.W_out, BLOCK.b_out)
NORMS = (BLOCK.gamma_a, BLOCK.beta_a, BLOCK.gamma_f, BLOCK.beta_f)
TABLES = (MODEL.W_e, MODEL.W_p)


def count(*tensors: sa.Tensor) -> sympy.Expr:
    """The number of their entries."""
    return sum(sympy.Mul(*x.shape) for x in tensors)


def derivation() -> sa.Derivation:
    """Parts of a block, all blocks, the whole, and two numbers that are told."""
    block, last = count(*BLOCK), count(MODEL.gamma, MODEL.beta)
    everything = count(*TABLES) + N * block + last
    note = sa.Derivation(
        "The parameters of GPT-2",
        summary="Counted from the shapes of its tensors: two tables, $N$ blocks, a last norm. For the small model this "
        "is 124,439,808.",
        result=[
            r"With a vocabulary of $n$ tokens, $C$ positions, the width $d$ and $N$ blocks there are "
            r"$n d + C d + N (12 d^2 + 13 d) + 2 d$ parameters. The number of heads does not enter.",
        ],
        references=["Radford et al., Language models are unsupervised multitask learners, 2019, table 2."],
        letters="n C d h N",
    )
    note = note.section("By part").say(
        "Four projections of attention are square, and the hidden layer is four times as wide as the stream; all have "
        "biases. A norm has a gain and a shift. The scores are read by the table of tokens, which is not counted "
        "twice. GPT-2 small has $n = 50257$, $C = 1024$, $d = 768$ and $N = 12$."
    )
    parts = {
        "table of tokens": count(MODEL.W_e),
        "table of positions": count(MODEL.W_p),
        "attention of a block": count(*ATTENTION),
        "its feed-forward layer": count(*NETWORK),
        "its two norms": count(*NORMS),
        "all blocks": N * block,
        "last norm": last,
        "everything": everything,
    }
    rows = [(part, sympy.expand(number), number.subs(SMALL)) for part, number in parts.items()]
    note = note.cases(rows, head=("Part", "parameters", "GPT-2 small"))
    note = note.section("All together")
    note = note.claim(
        sa.prove(everything, d * (n + C + 2 + N * (12 * d + 13))),
        title="The width is a factor of everything",
        because="Attention has $4 d^2 + 4 d$, the feed-forward layer $8 d^2 + 5 d$, the two norms of a block $4 d$.",
    )
    note = note.claim(
        sa.prove(everything.subs(SMALL), 128 * sympy.Integer(10) ** 6),
        title="GPT-2 small has 128 million parameters",
        holds="it has 124,439,808. The 117 million of the paper were a mistake that its authors have corrected.",
    )
    return note.say(
        "A table of its own for the scores would have $n d$ parameters more, which are 38,597,376 for the small model."
    )


if __name__ == "__main__":
    print(derivation().text())
