"""The proof of a claim about recurrences by what these come to, which is proved by induction."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from ...core.node import Tensor, rebuild
from ...errors import SymattnError
from ...printing.prose import Fold, Paragraph, Part, led
from ...printing.table import SymbolTable
from ...recurrence.body import loop_of
from ..argument import Argument, Given, Resting
from ..claims import Claim, Independence
from .closed_forms import ClosedForm
from .conditions import claim_conditions, step_conditions
from .images import Image
from .prefixes import NoInductionError
from .telling import closed_form_told, image_told


@dataclass(frozen=True, eq=False)
class ByInduction(Resting):
    """What a recurrence comes to, the proofs of the claims of which that follows, and that of the claim with it put in.

    There is no ``rest`` where both sides are then one.
    """

    form: ClosedForm | Image
    proofs: tuple[Argument, ...]
    rest: Argument | None
    claim: Claim

    @property
    def for_people(self) -> bool:
        return True

    @property
    def parts(self) -> Iterator[Argument]:
        yield from self.proofs
        if self.rest is not None:
            yield self.rest

    @property
    def divisors(self) -> tuple[Tensor, ...]:
        """Those of the claim itself; those of single steps are among the conditions."""
        return () if self.rest is None else tuple(rebuild(self.rest.divisors, self._last))

    @property
    def _last(self) -> dict[Tensor, Tensor]:
        return self.form.last if isinstance(self.form, ClosedForm) else {}

    def restated(self, sides: Sequence[Tensor]) -> list[Tensor]:
        then = rebuild(sides, self.form.put(sides))
        return rebuild(then if self.rest is None else self.rest.restated(then), self._last)

    @cached_property
    def side_conditions(self) -> tuple[str, ...]:
        behind = () if self.rest is None else self.rest.side_conditions
        return (*step_conditions(self.form, self.proofs), *claim_conditions(self.form, self.claim), *behind)

    def proves(self, claim: Claim | Independence, given: Given) -> bool:
        if not isinstance(claim, Claim) or claim != self.claim:
            return False
        try:
            if not self.form.holds_for_any(given):
                return False
            obligations, then = self.form.obligations(), put_in(self.form, claim)
            kept = inherited(given, self.form)
        except (NoInductionError, SymattnError):
            return False
        return (
            len(obligations) == len(self.proofs)
            and all(proof.proves(part.claim, kept) for part, proof in zip(obligations, self.proofs, strict=True))
            and (is_plain(then) if self.rest is None else self.rest.proves(then, given))
        )

    def text(self) -> str:
        """The claims of the induction with their proofs, and the claim with what they give."""
        lines = [self.form.heading()]
        for part, proof in zip(self.form.obligations(), self.proofs, strict=True):
            lines += [f"{part.said}:", *(f"  {line}" for line in proof.text().split("\n"))]
        return "\n".join([*lines, *([] if self.rest is None else ["So the claim becomes:", self.rest.text()])])

    def told(self, within: SymbolTable | None = None) -> tuple[Part, ...]:
        form, rest = self.form, self.rest
        if isinstance(form, ClosedForm):
            shown = closed_form_told(form, self.claim, within)
        else:
            shown = image_told(form, self.claim, within)
        proofs = zip(form.obligations(), self.proofs, strict=True)
        details = [x for part, proof in proofs for x in (Paragraph((f"{part.said}.",)), *proof.told(within))]
        if rest is not None and not rest.for_people:
            details += led(("With this in the claim: ",), rest.told(within))
        behind = rest.told(within) if rest is not None and rest.for_people else ()
        return *shown, *behind, Fold(("Why each line holds",), tuple(details), for_machines=True)


def put_in(form: ClosedForm | Image, claim: Claim) -> Claim:
    """The claim with what a recurrence comes to in its place."""
    left, right = rebuild(claim.sides, form.put(claim.sides))
    return Claim(left, claim.relation, right)


def is_plain(claim: Claim) -> bool:
    """Whether both sides are one."""
    return claim.left is claim.right and claim.relation != "<"


def inherited(given: Given, form: ClosedForm | Image) -> Given:
    """What is given that holds for every number of steps: all that does not speak of it."""
    T = loop_of(form.source).length if isinstance(form, Image) else form.steps
    claims = tuple(fact for fact in given.claims if all(T not in x.free_symbols for x in fact.sides))
    return replace(given, claims=claims, relations=tuple(r for r in given.relations if T not in r.free_symbols))
