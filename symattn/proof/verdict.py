"""The three answers to a claim, and what each carries: a proof, a counterexample, or what is missing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import sympy

from ..errors import OperandError
from ..latex import tex_text
from ..tensor import Tensor, topological
from .claims import Claim, Independence
from .counterexample import Agreement, Counterexample
from .definedness import conditions


class Argument(Protocol):
    """One kind of proof: by rewriting, by entries, by bounds, or by what entries depend on."""

    def check(self) -> bool: ...
    def text(self) -> str: ...
    def latex(self) -> str: ...
    @property
    def conditions(self) -> tuple[str, ...]: ...


_TITLES = ("Hypotheses", "Side conditions", "Divided by")


@dataclass(frozen=True, eq=False)
class Proof:
    """Why a claim holds for all sizes and all values, under the hypotheses and side conditions that are listed."""

    claim: Claim | Independence
    given: tuple[Any, ...]
    argument: Argument

    @property
    def hypotheses(self) -> tuple[str, ...]:
        """What was declared of the tensors, and what was given."""
        named = [x for x in topological(self.claim.sides) if x.op.name == "tensor" and x.params["hypotheses"]]
        declared = (
            f"{x.brief()} is {_listed(x.params['hypotheses'])}" for x in sorted(named, key=lambda x: str(x.name))
        )
        return (*declared, *map(_given_text, self.given), *self.assumptions)

    @property
    def assumptions(self) -> tuple[str, ...]:
        """What declared operations are stated to be, and was not proved by ``sa.verify``."""
        return getattr(self.argument, "assumptions", ())

    @property
    def side_conditions(self) -> tuple[str, ...]:
        """What must hold besides: for the two sides to have values, and what the argument assumes of masks."""
        return tuple(dict.fromkeys([*conditions(self._parts), *self.argument.conditions]))

    @property
    def _parts(self) -> tuple[Tensor, ...]:
        return self.claim.sides if isinstance(self.claim, Claim) else self.claim.sides[:1]

    @property
    def reasons(self) -> tuple[str, ...]:
        """Why what is divided by is not zero, where that is known."""
        return getattr(self.argument, "reasons", ())

    def check(self) -> bool:
        """Go through the proof again, without search: whether every step of it holds."""
        return self.argument.check()

    def text(self) -> str:
        """The claim, what it rests on, and the argument."""
        lines = [f"Claim: {self.claim}"]
        for title, listed in self._lists():
            lines.append(f"{title}: " + "; ".join(listed))
        return "\n".join([*lines, self.argument.text()])

    def latex(self) -> str:
        """The same as a LaTeX fragment (amsmath, amssymb)."""
        lines = [r"\textbf{Claim.} " + _claim_latex(self.claim)]
        also = getattr(self.argument, "conditions_latex", None) or tuple(map(tex_text, self.argument.conditions))
        in_latex = (
            tuple(map(tex_text, self.hypotheses)),
            tuple(dict.fromkeys([*map(tex_text, conditions(self._parts)), *also])),
            getattr(self.argument, "reasons_latex", None) or tuple(map(tex_text, self.reasons)),
        )
        for title, listed in zip(_TITLES, in_latex, strict=True):
            if listed:
                lines.append(rf"\textbf{{{title}.}} " + "; ".join(listed) + ".")
        return "\n\n".join([*lines, r"\textbf{Proof.} " + self.argument.latex()])

    def _lists(self) -> list[tuple[str, tuple[str, ...]]]:
        parts = zip(_TITLES, (self.hypotheses, self.side_conditions, self.reasons), strict=True)
        return [(title, listed) for title, listed in parts if listed]

    def __str__(self) -> str:
        return self.text()


def _given_text(fact: Any) -> str:
    """A hypothesis as it is written: sizes that are equal by an equality sign."""
    return f"{fact.lhs} = {fact.rhs}" if isinstance(fact, sympy.Eq) else str(fact)


def _listed(words: Sequence[str]) -> str:
    return " and ".join(f"a {word}" if word == "permutation" else word for word in words)


def _claim_latex(claim: Claim | Independence) -> str:
    if isinstance(claim, Claim):
        try:
            return f"${claim.latex()}$"
        except OperandError:  # a tree too large to read, of which the text says so
            pass
    return tex_text(str(claim))


@dataclass(frozen=True, eq=False)
class Verdict:
    """An answer to a claim. Only Proved is true."""

    claim: Claim | Independence
    status: ClassVar[str]

    def __bool__(self) -> bool:
        return self.status == "proved"

    @property
    def proof(self) -> Proof | None:
        """The proof of a claim that is proved."""
        return None

    @property
    def counterexample(self) -> Counterexample | None:
        """The point at which a refuted claim is false."""
        return None

    @property
    def residual(self) -> str:
        """What is left of the difference of the two sides, where nothing is proved."""
        return ""

    def latex(self) -> str:
        """The verdict as a LaTeX fragment."""
        return tex_text(str(self))

    def __repr__(self) -> str:
        return f"<{self.status}: {self.claim}>"


@dataclass(frozen=True, eq=False, repr=False)
class Proved(Verdict):
    """The claim holds, for all sizes and values; ``proof`` says why."""

    found: Proof
    status: ClassVar[str] = "proved"

    @property
    def proof(self) -> Proof:
        return self.found

    def latex(self) -> str:
        return self.found.latex()

    def __str__(self) -> str:
        lists = (("where", self.found.side_conditions), ("assumed:", self.found.assumptions))
        return "\n".join([f"proved: {self.claim}", *(f"{word} {'; '.join(said)}" for word, said in lists if said)])


@dataclass(frozen=True, eq=False, repr=False)
class Refuted(Verdict):
    """The claim is false; ``counterexample`` shows it at a point."""

    found: Counterexample
    status: ClassVar[str] = "refuted"

    @property
    def counterexample(self) -> Counterexample:
        return self.found

    def latex(self) -> str:
        return rf"\textbf{{Refuted.}} {_claim_latex(self.claim)} fails:" + f"\n\\[\n{self.found.latex()}\n\\]"

    def __str__(self) -> str:
        return f"refuted: {self.claim}\n{self.found}"


@dataclass(frozen=True, eq=False, repr=False)
class Unknown(Verdict):
    """Neither proved nor refuted: why, the normal forms of both sides, their difference, and what was tried."""

    reason: str
    forms: tuple[str, str] = ("", "")
    difference: str = ""
    agreement: Agreement | None = None
    status: ClassVar[str] = "unknown"

    @property
    def residual(self) -> str:
        return self.difference

    def __str__(self) -> str:
        lines = [f"unknown: {self.claim}", self.reason]
        if self.difference:
            lines += [f"left: {self.forms[0]}", f"right: {self.forms[1]}", f"left - right: {self.difference}"]
        if self.agreement is not None:
            lines.append(f"tried: {self.agreement}")
        return "\n".join(lines)


__all__ = ["Proof", "Proved", "Refuted", "Unknown", "Verdict"]
