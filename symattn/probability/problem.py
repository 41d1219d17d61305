"""A question about moments, made ready: laws bound to tensors, and expressions read as polynomials of entries."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any, TypeGuard, TypeVar

import sympy

from ..core.budget import Budget, OutOfBudget
from ..core.exact import exact
from ..core.node import Tensor, topological
from ..core.stated import Sentence
from ..errors import NamingError, NoRuleError, OperandError, ShapeError, described
from ..graph.entries import checked_index
from ..graph.names import displayed_names
from ..normal_form.constructors import CONSTRUCTORS
from ..normal_form.contraction import RULES
from ..normal_form.formulas import Env, Reader
from ..normal_form.indices import Index, divided, plus
from ..normal_form.lowering import Lowering, Partition, Unreached, taken_apart
from ..normal_form.ring import Ring
from ..normal_form.terms import Poly
from ..ops.domain import domain
from ..ops.leaves import as_tensor, computed, indexed, variable
from ..printing.prose import listed
from ..scalars.formulas import without_piecewise, without_ranges
from .answers import Answer, expanded, plainest
from .expectation import Expectation
from .laws import Iid, IidPair, Law, NormalRows, Sphere, iid
from .ranges import index_ranges, least_end
from .rules import EXPECTATIONS
from .sources import Source, Symbols, missing

T = TypeVar("T")
Laws = Mapping[Any, Any]


def bound_laws(law: Laws) -> list[tuple[tuple[Tensor, ...], Law]]:
    """The laws with the tensors that have them; OperandError for what is no tensor or no law."""
    if not isinstance(law, Mapping):
        raise OperandError(f"a law is a mapping such as {{q: sa.iid(), k: sa.iid()}}, not {described(law)}")
    bound: list[tuple[tuple[Tensor, ...], Law]] = []
    for key, value in law.items():
        keys = key if isinstance(key, tuple) else (key,)
        tensors = tuple(as_tensor(k) if not isinstance(k, (str, sympy.Indexed)) else _no_tensor(k) for k in keys)
        for x in tensors:
            if x.op is not variable:
                raise OperandError(f"a law belongs to a named tensor, not to {x.brief()}: give laws to its tensors")
        made = iid(value) if isinstance(value, str) else value
        if not isinstance(made, Law):
            raise OperandError(
                f"the law of {_brief(tensors)} is made by sa.iid, sa.iid_pair, sa.normal, ..., not {described(value)}"
            )
        _check_law(tensors, made)
        bound.append((tensors, made))
    names = [x for tensors, _ in bound for x in tensors]
    for x in names:
        if names.count(x) > 1:
            raise OperandError(f"{x.brief()} has two laws")
    return bound


def _no_tensor(key: Any) -> Tensor:
    what = "the text" if isinstance(key, str) else "the entry"
    raise OperandError(f"the key of a law is a tensor, not {what} {key!r}")


def _brief(tensors: Sequence[Tensor]) -> str:
    return " and ".join(x.brief() for x in tensors)


def _is_fixed(law: Law) -> TypeGuard[Iid]:
    return isinstance(law, Iid) and law.name == "constant"


def _check_law(tensors: Sequence[Tensor], law: Law) -> None:
    if len(tensors) != law.tensors:
        wanted = "one tensor: give each its own" if law.tensors == 1 else "a pair: give it to a tuple of two tensors"
        raise OperandError(f"the law of {_brief(tensors)} is a law of {wanted}")
    if isinstance(law, IidPair) and tensors[0].shape != tensors[1].shape:
        raise ShapeError(f"the entries of {_brief(tensors)} come in pairs: give both tensors one shape")
    fixed = _is_fixed(law)
    for x in tensors:
        declared = set(x.params["hypotheses"]) - {"constant"}
        allowed = {"binary", "integer"} if isinstance(law, Iid) and law.name == "bernoulli" else set()
        if not fixed and declared - allowed:
            listed = ", ".join(sorted(declared))
            raise OperandError(f"{x.brief()} is declared {listed}, which a random tensor with this law is not")
    if isinstance(law, (NormalRows, Sphere)) and not tensors[0].rank:
        raise ShapeError(f"{_brief(tensors)} has no rows: give it a law of entries, such as sa.iid")
    if isinstance(law, NormalRows):
        for parameter in (law.mean, law.covariance):
            if isinstance(parameter, Tensor) and any(size != tensors[0].shape[-1] for size in parameter.shape):
                raise ShapeError(f"the rows of {_brief(tensors)} do not fit the parameter {parameter.brief()}")


class Problem:
    """One calculation over some expressions: tensors without axes, or entries such as ``Z[i, j]``."""

    def __init__(self, expressions: Sequence[Any], law: Laws, partition: Partition, budget: Budget) -> None:
        self.bound = bound_laws(law)
        self.tensors = {str(x.name): x for tensors, _ in self.bound for x in tensors}
        rows = [law_ for _, law_ in self.bound if isinstance(law_, NormalRows)]
        parameters = [p for law_ in rows for p in (law_.mean, law_.covariance) if isinstance(p, Tensor)]
        for p in parameters:
            if any(p in t for t, law_ in self.bound if not _is_fixed(law_)):
                raise OperandError(f"{p.brief()} is a parameter of a law, so it is not random itself")
        quantities = [x for x in expressions if isinstance(x, Tensor)]
        displayed_names([*quantities, *(x for t, _ in self.bound for x in t), *parameters])  # one name has one meaning
        self.tensors.update({str(p.name): p for p in parameters})
        for x in expressions:
            if isinstance(x, Tensor):
                self._check(x)
            elif not isinstance(x, sympy.Expr):
                raise OperandError(
                    f"moments are of a tensor without axes or of an entry such as Z[i, j], not {described(x)}"
                )
        known = self.tensors.values()
        facts = {str(x.name): x.params["hypotheses"] for x in known}
        self.ring = Ring(facts, {}, CONSTRUCTORS, RULES, budget)
        self.ring.rooms = [room for x in computed(quantities) for room in domain(x).inside]
        self.lowering = Lowering(self.ring, partition)
        self.symbols = Symbols()
        self.fixed = {str(t[0].name): law_.known(1) for t, law_ in self.bound if _is_fixed(law_)}
        self.sources = [Source(self.ring, self.symbols, t, law_) for t, law_ in self.bound if not _is_fixed(law_)]
        self.expectation = Expectation(self.ring, self.sources, self.symbols, self, EXPECTATIONS)
        self.env: dict[Any, Index] = {}  # the free indices of the entries, and how their symbols are written
        self.names: dict[int, sympy.Expr] = {}
        self.ends: dict[sympy.Symbol, sympy.Expr] = {}  # of ranges whose end is not known, the least
        self.expressions = tuple(expressions)
        self._check_all_occur(parameters)

    # --- reading ---

    @cached_property
    def polys(self) -> list[Poly]:
        """The expressions as polynomials of entries."""
        found = [self._put_fixed(self._read(x)) for x in self.expressions]
        self._check_divisors()
        return found

    def _check_divisors(self) -> None:
        """Require of what is divided by, if it is a polynomial of normal entries, that it is not 0 at all places.

        Then it is 0 with probability 0. Its square has a positive expectation, which says just that.
        """
        e = self.expectation
        divisors = [d for d in self.ring.divisors.values() if not self.ring.is_positive(d)]
        for divisor in divisors if any(source.law.is_normal for source in self.sources) else ():
            poly = e.value(self._put_fixed(self.ring.rewrite(divisor, self.lowering.unfolded, "definition")))
            offset = any(not e.is_random(Poly([part])) for part in poly.terms)
            if not poly:
                raise NoRuleError("the expression divides by 0, so that it has no expectation")
            if offset or not e.is_random(poly) or not e.is_normal_polynomial(poly) or self.ring.is_positive(poly):
                continue
            square = e.of(self.ring.multiply(poly, poly))
            if self.names.keys() >= square.free:
                e.require(_without_positive(self.formula(square)))

    def _check(self, x: Tensor) -> None:
        if x.rank:
            raise ShapeError(
                f"{x.brief()} has {x.rank} axes: moments are of a tensor without axes, such as a sum, or of one entry, "
                "x[i, j] with index symbols"
            )
        for y in x.tensors:
            if str(y.name) not in self.tensors:
                if "constant" not in y.params["hypotheses"]:
                    raise _no_law(y.brief())
                self.tensors[str(y.name)] = y

    def _read(self, x: Any) -> Poly:
        if isinstance(x, Tensor):
            return self._entry(x)
        formula = without_piecewise(exact(x))
        self._find_indices(formula)
        return _EntryReader(self).read(without_ranges(formula), self.env)

    def _entry(self, x: Tensor) -> Poly:
        """The value of a tensor without axes; shared and deep parts are read first, so that no walk goes deep."""
        lowering = self.lowering
        lowering.define(topological([x]), [x])
        for key, known in lowering.definitions.items():  # inputs before users: what each unfolds into has none
            unfolded = self.ring.rewrite(known.poly, lowering.unfolded, "definition")
            lowering.definitions[key] = replace(known, poly=unfolded)
        return self.ring.rewrite(lowering.entry(x, ()), lowering.unfolded, "definition")

    def _find_indices(self, formula: sympy.Expr) -> None:
        """The index symbols of a formula, each with the range that the formula leaves to it."""
        for part in sorted(formula.atoms(sympy.Indexed), key=str):
            checked_index(self.tensor(str(part.base)), part.indices)
        for symbol, size in index_ranges(formula, self.tensor).items():
            self.check_no_name(symbol)
            if symbol not in self.env:
                self.ends.update(least_end(symbol, size))
                self.env[symbol] = self._place(symbol, size)

    def _place(self, value: sympy.Expr, size: sympy.Expr) -> Index:
        """The index of a value over a range, by its digits if the range is taken apart into two."""
        inner = self.lowering.partition.digit(size)
        outer = None if inner is None else divided(size, inner)
        if inner is None or outer is None:
            symbol = self.ring.fresh(size)
            self.names[symbol] = value
            return symbol
        rest = self._place(sympy.Mod(value, inner), inner)
        return plus(rest, self._place(sympy.floor(value / inner), outer), inner)

    def tensor(self, name: str) -> Tensor:
        """The tensor of a name in an entry; an error if nothing is said of it."""
        if name not in self.tensors:
            raise _no_law(name)
        return self.tensors[name]

    def check_no_name(self, symbol: sympy.Symbol) -> None:
        """NamingError for a symbol that has the name of a tensor."""
        if symbol.name in self.tensors:
            raise NamingError(f"{symbol.name!r} names both a tensor and an index, a size or a scalar: rename one")

    def _put_fixed(self, poly: Poly) -> Poly:
        """Constant tensors with a known value take it; everything else stays."""
        values = {name: value for name, value in self.fixed.items() if value is not None}
        if not values:
            return poly

        def change(atom: Any) -> Poly | None:
            return self.ring.constructors["size"](self.ring, values[atom.name]) if atom.name in values else None

        return self.ring.rewrite(poly, change, "entry", "symmetric")

    def _check_all_occur(self, parameters: Sequence[Tensor]) -> None:
        expressions = self.expressions
        names = {str(y.name) for x in (*expressions, *parameters) if isinstance(x, Tensor) for y in x.tensors}
        names |= {str(part.base) for x in expressions if isinstance(x, sympy.Expr) for part in x.atoms(sympy.Indexed)}
        names |= {s.name for x in expressions if isinstance(x, sympy.Expr) for s in x.free_symbols}
        for tensors, _ in self.bound:
            if not any(str(x.name) in names for x in tensors):
                shown = "; ".join(map(described, expressions))
                raise OperandError(f"there is a law for {_brief(tensors)}, which does not occur in {shown}")

    # --- answering ---

    def answer(self, poly: Poly) -> sympy.Expr:
        """The polynomial with the values of its cumulants, as SymPy; NoRuleError if one of them is not known."""
        met = {symbol: self.symbols.known[symbol] for symbol in self.symbols_in(poly)}
        values = {symbol: known.value for symbol, known in met.items() if known.value is not None}
        found = expanded(self._sympy(poly).xreplace(values))
        for symbol, known in met.items():
            if symbol in found.free_symbols:  # not known, and not multiplied by a zero either
                raise missing(known)
        return plainest(found)

    def shown(self, poly: Poly) -> sympy.Expr:
        """The polynomial with letters for its cumulants, as SymPy."""
        letters = {symbol: self.symbols.known[symbol].shown for symbol in self.symbols_in(poly)}
        return plainest(self._sympy(poly).xreplace(letters))

    def _sympy(self, poly: Poly) -> sympy.Expr:
        values = [self.symbols.known[s].value if s in self.symbols.known else s for s in _scalars(poly)]
        taken = {s.name for value in values if value is not None for s in value.free_symbols}
        found = Answer(self.ring, self.names, {*taken, *self.tensors}).of(self._put_fixed(poly))
        return found.xreplace(self.ends)

    def symbols_in(self, poly: Poly) -> list[sympy.Symbol]:
        """The cumulants that a polynomial holds, in the order in which they were met."""
        found = _scalars(poly)
        return [symbol for symbol in self.symbols.known if symbol in found]

    def assumptions(self, polys: Sequence[Poly]) -> tuple[Sentence, ...]:
        """What was said of the tensors, as far as some polynomials used it."""
        used = self.expectation.used
        held = {s for poly in (*polys, *used.polys) for s in self.symbols_in(poly)} | self.symbols.vanished.keys()
        met = [known for s, known in self.symbols.known.items() if s in held and known.value is not None]
        names = {known.names for known in met}
        laws = [source for source in self.sources if source.names in names]
        lines = [source.law.sentence(source.tensors) for source in laws]
        if len(laws) > 1:
            lines.append(Sentence(*listed((source.together for source in laws), " and "), " are independent"))
        values = filter(None, (known.sentence for known in met))
        where = (Sentence("the answer holds where ", value, " is positive") for value in self.conditions(polys))
        return tuple(dict.fromkeys([*lines, *values, *where]))

    def _needs(self, poly: Poly, symbol: sympy.Symbol) -> bool:
        """Whether a polynomial depends on a closed form, once values are put in for all others."""
        met = self.symbols_in(poly)
        values = {
            s: self.symbols.known[s].value for s in met if s != symbol and self.symbols.known[s].value is not None
        }
        return symbol in met and sympy.cancel(sympy.diff(self._sympy(poly).xreplace(values), symbol)) != 0

    def conditions(self, polys: Sequence[Poly]) -> tuple[sympy.Expr, ...]:
        """Where answers hold, if not everywhere: what must be positive for them, and for the closed forms in them."""
        used = self.expectation.used
        found = [*(self.formula(poly) for poly in used.positive.values()), *used.values]
        found += [
            value for symbol, value in used.conditions.items() if any(self._needs(poly, symbol) for poly in polys)
        ]
        return tuple(value for value in dict.fromkeys(map(_without_positive, found)) if not value.is_positive)

    def formula(self, poly: Poly) -> sympy.Expr:
        """The polynomial with the values of all its symbols, as SymPy."""
        values = {symbol: self.symbols.known[symbol].value for symbol in self.symbols_in(poly)}
        return plainest(self._sympy(poly).xreplace(values))


def _without_positive(value: sympy.Expr) -> sympy.Expr:
    """A value that is positive where another is, without factors that are known to be, and without quotients."""
    above = sympy.fraction(sympy.together(value))[0]
    apart = sympy.factor_terms(above) if above.has(sympy.Sum, sympy.Indexed) else sympy.factor(above)
    return sympy.Mul(*(factor for factor in sympy.Mul.make_args(apart) if not factor.is_positive))


def _scalars(poly: Poly) -> set[Any]:
    found = set()
    for _, term in poly.terms:
        for atom, _e in term.factors:
            if atom.kind == "scalar":
                found.add(atom.name)
            for inner in atom.inner:
                found |= _scalars(inner)
    return found


def _no_law(name: str) -> OperandError:
    return OperandError(
        f"{name} has no law, and nothing is assumed of it: give one, for example sa.iid(mean=0, variance=1), or say "
        'that it is not random by the law "constant"'
    )


class _EntryReader(Reader):
    """Reads entries of tensors, which are SymPy expressions of Indexed."""

    def __init__(self, problem: Problem) -> None:
        if not problem.tensors:
            raise OperandError("the law is empty: give one for the tensors whose entries are read, {q: sa.iid(), ...}")
        first = next(iter(problem.tensors.values()))
        super().__init__(problem.lowering, first, {})
        self.problem = problem

    def read(self, e: Any, env: Env) -> Poly:
        if isinstance(e, sympy.Indexed):
            tensor = self.problem.tensor(str(e.base))
            return self.lowering.entry(tensor, tuple(self.place(i, env) for i in checked_index(tensor, e.indices)))
        if e.is_Symbol and e not in env and e.name in self.problem.tensors:
            if e != indexed(e.name, ()) or self.problem.tensors[e.name].rank:
                self.problem.check_no_name(e)
            return self.lowering.entry(self.problem.tensors[e.name], ())
        return super().read(e, env)

    def index(self, e: Any, env: Env) -> Index:
        if isinstance(e, sympy.Indexed) and (tensor := self.problem.tensor(str(e.base))).kind == "integer":
            return ("entry", str(tensor.name), tuple(self.place(i, env) for i in e.indices))
        return super().index(e, env)

    def _moves(self, e: Any, env: Env) -> bool:
        return super()._moves(e, env) or e.has(sympy.Indexed)


def solved(
    expressions: Sequence[Any],
    law: Laws,
    calculate: Callable[[Problem], T],
    seconds: float = 60.0,
    what: str = "exact moment",
) -> T:
    """What ``calculate`` gives for the expressions; ranges are taken apart as often as it takes."""
    budget = Budget(seconds)
    try:
        return taken_apart(lambda partition: calculate(Problem(expressions, law, partition, budget)))
    except (Unreached, OutOfBudget) as problem:
        raise NoRuleError(f"the {what} is out of reach: {problem}") from None
