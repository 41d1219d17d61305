r"""Functions of terms: of entries, along rows, of whole matrices, and those that are declared."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any, TypeAlias

import sympy

import symattn

from ...core.node import Tensor
from ...core.sizes import ONE, never_negative
from ...ops.broadcasting import broadcast_to
from ...ops.classes import one_hot
from ...ops.contraction import diag_op
from ...ops.layout import merge_axes, moveaxis
from ...ops.leaves import as_tensor
from ..formulas import POWER_OF_E
from .moments import Moments
from .names import Entry, items_of, key_of
from .runs import LETTER, is_dots, run_of
from .shapes import Form, Slot, Unknown, form_of
from .terms import Term
from .text import Span
from .tree import Apply, Infix, Large, Number, Product, Relation, Scripted, Symbol, Tree, moment_of, parts_of
from .values import Value, as_number, axis_of, is_condition, spread

Options: TypeAlias = dict[str, Any]

_ENTRIES: dict[str, tuple[str, Callable[[Any], Any]]] = {
    "exp": ("exp", sympy.exp),
    "log": ("log", sympy.log),
    "ln": ("log", sympy.log),
    "log1p": ("log1p", lambda x: sympy.log(1 + x)),
    "tanh": ("tanh", sympy.tanh),
    "sin": ("sin", sympy.sin),
    "cos": ("cos", sympy.cos),
    "erf": ("erf", sympy.erf),
    "sign": ("sign", sympy.sign),
    "sgn": ("sign", sympy.sign),
    "abs": ("abs", sympy.Abs),
    "floor": ("floor", sympy.floor),
    "sqrt": ("sqrt", sympy.sqrt),
    "rsqrt": ("rsqrt", lambda x: 1 / sympy.sqrt(x)),
    "sigmoid": ("sigmoid", lambda x: 1 / (1 + sympy.exp(-x))),
    "σ": ("sigmoid", lambda x: 1 / (1 + sympy.exp(-x))),
    "relu": ("relu", lambda x: sympy.Max(x, 0)),
    "ReLU": ("relu", lambda x: sympy.Max(x, 0)),
    "softplus": ("softplus", lambda x: sympy.log(1 + sympy.exp(x))),
    "silu": ("silu", lambda x: x / (1 + sympy.exp(-x))),
    "SiLU": ("silu", lambda x: x / (1 + sympy.exp(-x))),
    "gelu": ("gelu", lambda x: x * (1 + sympy.erf(x / sympy.sqrt(2))) / 2),
    "GELU": ("gelu", lambda x: x * (1 + sympy.erf(x / sympy.sqrt(2))) / 2),
    "sg": ("stop_gradient", lambda x: symattn.stop_gradient(x)),
}
_SOFT = {"softmax": "softmax", "Softmax": "softmax", "SoftMax": "softmax", "sparsemax": "sparsemax"}
_REDUCED = {"sum", "mean", "max", "min", "logsumexp"}
_BY_LINE = {f"{line}{name}": axis for line, axis in (("row", -1), ("col", -2)) for name in _REDUCED}
_OF_TWO: dict[str, Callable[[Any, Any], Any]] = {
    "maximum": sympy.Max,
    "minimum": sympy.Min,
    "max": sympy.Max,
    "min": sympy.Min,
    "mod": sympy.Mod,
}
_TAKES_BELOW = {*_SOFT, "entmax", "onehot", "broadcast"}  # an index, a mask, a number, a shape
_TRIANGLES = {"tril", "triu"}
_LINES = {"row": -1, "rows": -1, "col": -2, "cols": -2, "columns": -2}
KNOWN = frozenset(
    {*_ENTRIES, *_SOFT, *_REDUCED, *_BY_LINE, *_OF_TWO, *_TRIANGLES, "diag", "tr", "trace",
     "Tr", "cumsum", "where", "broadcast", "Concat", "concat", "onehot", "entmax"}
)  # fmt: skip


class Calls(Moments):
    """Reads applications of functions."""

    def call(self, tree: Apply) -> Term:
        """The value of a function, by its declaration or by its name."""
        head = tree.head
        found = self.names.called(tree)
        if found is not None and all(map(self.is_place, found[1])):
            return self.indexed_by(tree, found[0].value, list(found[1]), tree)
        declared = self._declared(head)
        if declared is not None:
            return self._call_declared(tree, declared)
        base, below, above = head, None, None
        if isinstance(head, Scripted):
            base, below, above = head.base, head.below, head.above
        assert isinstance(base, Symbol)
        self._check_reach_of(tree)
        if moment_of(head):
            return self.moment(tree, moment_of(head))
        if base.letters not in KNOWN or (isinstance(head, Scripted) and head.primes):
            raise self.error(
                f"the function {self.shown(head)} is not declared: declare it by names={{{base.letters!r}: f}}, "
                f"or its shape where it is no function; {self.names.known()}",
                tree,
            )
        term = self._known(tree, base.letters, self._options(below, base.letters))
        return term if above is None else self._raised_function(tree, base.letters, term, above)

    def _check_reach_of(self, tree: Apply) -> None:
        r"""That a quotient behind ``\log \sum_j`` is not one of the logarithm."""
        last = tree.arguments[-1] if tree.arguments else tree
        bare = isinstance(last, Large) and last.span.end == tree.span.end
        if bare and isinstance(last, Large) and isinstance(last.body, Infix) and last.body.sign == "/":
            raise self.error(
                f"whether {self.shown(last.body.right)} divides the sum or the function of it is not decided: write "
                "parentheses around the argument",
                tree,
            )

    def _declared(self, head: Tree) -> Entry | None:
        """The declared function of that name; a script that was not declared with it is not passed over."""
        entry = self.names.find(head)
        if entry is not None and entry.is_function:
            return entry
        base = self.names.find(head.base) if isinstance(head, Scripted) else None
        if base is not None and base.is_function:
            raise self.error(f"{self.shown(head)} is not declared, but {base.name} is", head)
        return None

    def _raised_function(self, tree: Apply, name: str, term: Term, above: Tree) -> Term:
        if name not in _ENTRIES or not isinstance(above, Number):
            raise self.error(f"a superscript of {name} is not read: write it behind the argument", above)
        return self._power(tree.span, term, self.term(above), entrywise=True)

    # --- declared functions ---

    def _call_declared(self, tree: Apply, entry: Entry) -> Term:
        terms = [self.term(argument) for argument in tree.arguments]
        forms = [self.form(term) for term in terms]
        labels = forms[0].labels if forms else ()
        for form in forms[1:]:
            labels = self.shapes.joined_labels(labels, form.labels, None)
        values = []
        for term, form in zip(terms, forms, strict=True):
            x = self.tensor(term)
            values.append(spread(x, form, Form(labels=labels), core=False) if form.labels else x)
        try:
            result = as_tensor(entry.value(*values))
        except (TypeError, ValueError) as problem:
            raise self.error(f"{entry.name} does not take these arguments: {problem}", tree) from None
        outside = len(labels) + max((len(form.lead) for form in forms), default=0)
        rest = result.shape[outside:]
        like = next((f for f in forms if len(f.core) == len(rest) == 1), None)
        core = form_of(rest, row=like is not None and like.cols is not None)
        return Term(
            tree.span, Slot(replace(core, labels=labels, lead=result.shape[len(labels) : outside])), lambda: result
        )

    # --- functions by name ---

    def _options(self, below: Tree | None, name: str) -> Options:
        """What stands below a function: an axis, an index, a mask."""
        options: Options = {}
        for item in () if below is None else (items_of(below) if name not in ("broadcast",) else (below,)):
            if isinstance(item, Relation) and item.signs == ("=",) and isinstance(item.sides[0], Symbol):
                key = item.sides[0].letters
                if key in ("axis", "keepdims", "k") and self.names.find(item.sides[0]) is None:
                    options[key] = self._option(item.sides[1])
                    continue
            letter = self.index_letter(item)
            if letter in _LINES and self.names.find(item) is None:
                options["axis"] = _LINES[letter]
                continue
            options["at"] = item
        return options

    def _option(self, tree: Tree) -> Any:
        if isinstance(tree, Symbol) and tree.letters in ("True", "False"):
            return tree.letters == "True"
        if hasattr(tree, "items"):
            return tuple(int(self.size_of(item)) for item in tree.items)
        return int(self.size_of(tree))

    def _known(self, tree: Apply, name: str, options: Options) -> Term:
        count = 3 if name == "where" else 2 if len(tree.arguments) == 2 and name in _OF_TWO else 1
        takes_none = count > 1 or name in _BY_LINE
        if ("at" in options and name not in _TAKES_BELOW) or (options and takes_none):
            raise self.error(f"what stands below {name} is not read", tree)
        if name in ("Concat", "concat") and any(map(is_dots, tree.arguments)):
            return self.run(tree.span, tree.arguments, across=True)
        if name in ("Concat", "concat"):
            parts = [self.term(argument) for argument in tree.arguments]
            vectors = all(self.form(part).cols is None for part in parts)  # which make a longer one
            return self.joined(tree.span, parts, across=options.get("axis", -1) == -1 and not vectors)
        option = next((x for x in tree.arguments if isinstance(x, Relation)), None)
        if option is not None and len(tree.arguments) > count:
            written = rf"\operatorname{{{name}}}_{{\text{{axis}} = 0}}"
            raise self.error(f"{name} takes no {self.shown(option)}: write the axis as {written}", option)
        if len(tree.arguments) != count:
            raise self.error(f"{name} takes {count} argument{'s' * (count > 1)}, not {len(tree.arguments)}", tree)
        if name == "where":
            return self.chosen(tree.span, *(self.term(argument) for argument in tree.arguments))
        if count == 2:
            return self._of_two(tree, name)
        x = self.term(tree.arguments[0])
        if name in _ENTRIES and not options:
            return self.of_entries(tree.span, x, name)
        if name in _SOFT:
            return self._softmax(tree, x, _SOFT[name], options)
        if name == "entmax":
            return self._entmax(tree, x, options)
        if name == "onehot":
            return self._one_hot(tree, x, options)
        if name in _BY_LINE:
            return self._by_line(tree, x, name)
        if name in _REDUCED:
            return self._reduced(tree, x, name, options)
        return self._of_matrix(tree, x, name, options)

    def of_entries(self, span: Span, x: Term, name: str) -> Term:
        """A function of every entry."""
        public, of_scalar = _ENTRIES[name]

        def make() -> Value:
            value = as_number(self.value(x))
            if isinstance(value, Tensor):
                return getattr(symattn, public)(value)
            if public == "exp" and value.is_number and value.is_finite and abs(value.evalf(15)) > POWER_OF_E:
                raise self.error(f"exp of a number beyond {POWER_OF_E} in size", span)
            return self.checked(of_scalar(value), span)

        return self.kept(span, x, make)

    def _of_two(self, tree: Apply, name: str) -> Term:
        a, b = (self.term(argument) for argument in tree.arguments)
        public = {"max": symattn.maximum, "min": symattn.minimum}.get(name) or getattr(symattn, name)
        return self.entrywise(tree.span, a, b, public, _OF_TWO[name], name, scalars=True)

    def _softmax(self, tree: Apply, x: Term, name: str, options: Options) -> Term:
        form = self.form(x)
        function = getattr(symattn, name)
        at = options.get("at")
        if not options.keys() <= {"axis", "at"} or len(options) > 1:
            raise self.error(f"what stands below {name} is not read", tree)
        if "axis" in options:
            axis = options["axis"]
            return self.kept(tree.span, x, lambda: function(self.tensor(x), axis=axis))
        letter = "" if at is None else self.index_letter(at)
        if letter and letter in dict(form.labels):
            return self._softmax_over(tree, x, function, letter)
        if at is not None:
            if letter and self._axis_letter(tree.arguments[0], letter) == len(form.core) - 1 >= 0:
                return self.kept(tree.span, x, lambda: function(self.tensor(x)))
            return self._masked(tree, x, function, at)
        if form.core:
            return self.kept(
                tree.span, x, lambda: function(self.tensor(x), axis=-1 if not self._is_column(form) else -2)
            )
        if len(form.labels) == 1:
            return self._softmax_over(tree, x, function, form.labels[0][0])
        if not form.labels:
            raise self.error(f"{name} of a scalar: a scalar has no entries", tree)
        raise self.undecided(f"over which index {name} runs is not decided: write it below, as {name}_{{j}}", tree)

    def _entmax(self, tree: Apply, x: Term, options: Options) -> Term:
        power = options.get("at")
        if not isinstance(power, Number) or power.digits != "1.5":
            raise self.error(r"entmax is read with its power 1.5 below it, as \operatorname{entmax}_{1.5}", tree)
        return self._softmax(tree, x, "entmax15", {})

    def _one_hot(self, tree: Apply, x: Term, options: Options) -> Term:
        """Classes as rows of zeros and a one; how many there are stands below."""
        if "at" not in options:
            raise self.error("how many classes there are stands below onehot", tree)
        form, size = self.form(x), self.size_of(options["at"])
        out = replace(form_of((*form.lead, *form.core, size)), labels=form.labels)
        return Term(tree.span, Slot(out), lambda: one_hot(self.tensor(x), size))

    def _is_column(self, form: Form) -> bool:
        return (
            form.cols is not None
            and self.shapes.is_one(form.cols)
            and form.rows is not None
            and not self.shapes.is_one(form.rows)
        )

    def _softmax_over(self, tree: Apply, x: Term, function: Any, letter: str) -> Term:
        return self.kept(
            tree.span,
            x,
            lambda: function(self.tensor(x), axis=axis_of(self.form(x), letter) - len(self.form(x).axes)),
        )

    def _axis_letter(self, argument: Tree, letter: str) -> int:
        """Which axis of a name that was defined by its entries has a letter."""
        letters = self.defined_letters.get(key_of(argument), ())
        return letters.index(letter) if letter in letters else -1

    def _masked(self, tree: Apply, x: Term, function: Any, at: Tree) -> Term:
        mask = self.term(at)
        slot = self.shapes.entrywise(x.slot, mask.slot, None, "the mask", scalars=False)
        out = Term(tree.span, slot, lambda: None)

        def make() -> Tensor:
            form = self.form(out)
            y, seen = (spread(self.tensor(t), self.form(t), form, core=True) for t in (x, mask))
            if seen.kind != "binary":
                raise self.error(f"{self.shown(at)} below softmax is neither an index nor a mask", at)
            result: Tensor = function(y, where=seen)
            return result

        out.make = make
        return out

    def _reduced(self, tree: Apply, x: Term, name: str, options: Options) -> Term:
        """Sums, means and extremes of all entries, or along an axis."""
        function = getattr(symattn, name)
        keeps = options.get("keepdims", False)
        axis = options.get("axis", -1 if name == "logsumexp" else None)
        form = self.form(x)
        if form.labels and axis is None:
            axis = tuple(range(-len(form.axes) + len(form.labels), 0))
        if not form.axes or axis == ():
            raise self.error(f"{name} of a scalar", tree)
        if axis is None:
            axis = tuple(range(-len(form.axes), 0))
        taken = {a % len(form.axes) for a in (axis if isinstance(axis, tuple) else (axis,))}
        rest = [(n, ONE if n in taken else size) for n, size in enumerate(form.axes) if keeps or n not in taken]
        shape = [size for n, size in rest if n >= len(form.labels)]
        row = len(shape) == 1 and len(form.core) == 2 and len(form.axes) - 2 in taken
        out = replace(form_of(shape, row), labels=form.labels)
        return Term(tree.span, Slot(out), lambda: function(self.tensor(x), axis=axis, keepdims=bool(keeps)))

    def _by_line(self, tree: Apply, x: Term, name: str) -> Term:
        """What is made of each row, or of each column, as a column."""
        form = self.form(x)
        self._need(tree, len(form.core) == 2, "a matrix", form)
        axis = _BY_LINE[name]
        out = replace(form, rows=form.core[0] if axis == -1 else form.core[1], cols=None, of_rows=axis == -1)
        function = getattr(symattn, name[3:])
        return Term(tree.span, Slot(out), lambda: function(self.tensor(x), axis=axis))

    def _of_matrix(self, tree: Apply, x: Term, name: str, options: Options) -> Term:
        form = self.form(x)
        matrix = form.rows is not None and form.cols is not None
        if name == "diag":
            return self._diagonal(tree, x, form)
        if name in ("tr", "Tr", "trace"):
            self._need(tree, matrix and self.shapes.unify(form.rows, form.cols), "a square matrix", form)
            return Term(tree.span, Slot(replace(form, rows=None, cols=None)), lambda: symattn.trace(self.tensor(x)))
        if name in _TRIANGLES:
            self._need(tree, matrix, "a matrix", form)
            return self.kept(tree.span, x, lambda: getattr(symattn, name)(self.tensor(x), k=options.get("k", 0)))
        if name == "cumsum":
            return self.kept(tree.span, x, lambda: symattn.cumsum(self.tensor(x), axis=options.get("axis", -1)))
        if name == "broadcast":
            return self._broadcast(tree, x, options)
        raise self.error(f"{name} is not read here", tree)

    def _need(self, tree: Apply, holds: bool, wanted: str, form: Form) -> None:
        if not holds:
            raise self.shape_error(f"{self.shown(tree.head)} takes {wanted}, not {self.shapes.shown(form)}", tree)

    def _diagonal(self, tree: Apply, x: Term, form: Form) -> Term:
        """The diagonal matrix of a vector; of a matrix, people mean its diagonal, or that as a matrix."""
        one_column = len(form.core) == 2 and self.shapes.is_one(form.cols)
        self._need(tree, len(form.core) == 1 or one_column, "a vector", form)
        size = form.core[0]
        out = Form(form.labels, form.lead, size, size)
        return Term(tree.span, Slot(out), lambda: diag_op(self.tensor(x)[..., 0] if one_column else self.tensor(x)))

    def _broadcast(self, tree: Apply, x: Term, options: Options) -> Term:
        at = options.get("at")
        if at is None:
            raise self.error("broadcast has the shape below it", tree)
        factors = at.factors if isinstance(at, Product) else (at,)
        shape = tuple(map(self.size_of, factors))
        if len(self.form(x).axes) not in (0, len(shape)):
            raise self.error("along which axes this is repeated is not decided", tree)
        return Term(tree.span, Slot(form_of(shape)), lambda: broadcast_to(self.tensor(x), shape))

    # --- what several operations share ---

    def chosen(self, span: Span, condition: Term, a: Term, b: Term) -> Term:
        """``a`` where a condition holds, else ``b``."""
        both = self.shapes.entrywise(a.slot, b.slot, None, "the cases", scalars=True)
        out = Term(span, self.shapes.entrywise(condition.slot, both, None, "the cases", scalars=True), lambda: None)

        def make() -> Value:
            values = [self.value(condition), as_number(self.value(a)), as_number(self.value(b))]
            if not isinstance(values[0], Tensor) and not is_condition(values[0]):
                raise self.error(f"{self.shown(condition.span)} is no condition", condition.span)
            if not any(isinstance(v, Tensor) for v in values):
                return sympy.Piecewise((values[1], values[0]), (values[2], True))
            form = self.form(out)
            tensors = (
                x if not self.form(t).axes else spread(x, self.form(t), form, core=True)
                for t, x in ((t, self.tensor(t)) for t in (condition, a, b))
            )
            return symattn.where(*tensors)

        out.make = make
        return out

    def joined(self, span: Span, parts: list[Term], across: bool) -> Term:
        """Blocks side by side, or one below the other: vectors are columns, or rows of one row."""
        forms = [self.form(part) for part in parts]
        if any(form.lead or form.is_scalar for form in forms):
            raise self.error("blocks are matrices and vectors of one kind: of families, write an index", span)
        if any(form.labels for form in forms):
            return self._joined_families(span, parts, forms, across)
        stacked = not across and all(form.cols is None for form in forms)  # columns make a longer column
        rowed = across and all(form.rows is None for form in forms)
        full = [(ONE if f.rows is None else f.rows, ONE if f.cols is None else f.cols) for f in forms]
        kept, grown = (0, 1) if across else (1, 0)
        for one, form in zip(full, forms, strict=True):
            if not self.shapes.unify(full[0][kept], one[kept]):
                raise self.shape_error(f"blocks of {self.shapes.shown(forms[0])} and {self.shapes.shown(form)}", span)
        sizes = [self.shapes.size(one[grown]) for one in full]
        if any(isinstance(size, Unknown) for size in sizes):
            raise self.error("how large a block is does not follow", span)
        length = sympy.Add(*sizes)
        if stacked or rowed:
            form = Form(rows=length) if stacked else Form(cols=length)
            return Term(span, Slot(form), lambda: symattn.concat([self.tensor(p) for p in parts], axis=0))
        out = Form(rows=full[0][0], cols=length) if across else Form(rows=length, cols=full[0][1])

        def make() -> Tensor:
            blocks = [_matrix(self.tensor(p), f) for p, f in zip(parts, forms, strict=True)]
            result: Tensor = symattn.concat(blocks, axis=-1 if across else -2)
            return result

        return Term(span, Slot(out), make)

    def _joined_families(self, span: Span, parts: list[Term], forms: list[Form], across: bool) -> Term:
        """Blocks that have indices: for each of these, one matrix, or one longer vector."""
        labels, grown = forms[0].labels, -1 if across else -2
        for form in forms[1:]:
            labels = self.shapes.joined_labels(labels, form.labels, None)
        lines = all((form.rows if across else form.cols) is None for form in forms)
        if lines:
            grown = -1
        elif any(len(form.core) < 2 for form in forms):
            raise self.error("blocks of families are matrices, or vectors end to end", span)
        for form in forms[1:]:
            if not lines and not self.shapes.unify(form.core[-3 - grown], forms[0].core[-3 - grown]):
                raise self.shape_error(f"blocks of {self.shapes.shown(forms[0])} and {self.shapes.shown(form)}", span)
        length = sympy.Add(*(self.known_size(form.core[grown], "a block", span) for form in forms))
        out = replace(forms[0], labels=labels, **{"cols" if across else "rows": length})

        def make() -> Tensor:
            full = self.shapes.resolved(out)
            blocks = [spread(self.tensor(p), f, full, core=False) for p, f in zip(parts, forms, strict=True)]
            reach = full.axes[: len(labels)]
            blocks = [broadcast_to(b, (*reach, *b.shape[-1 if lines else -2 :])) for b in blocks]
            result: Tensor = symattn.concat(blocks, axis=grown)
            return result

        return Term(span, Slot(out), make)

    # --- lists with dots ---

    def run(self, span: Span, items: Sequence[Tree], across: bool) -> Term:
        r"""``[H_1, \ldots, H_h]``: all values of an index side by side, or one below the other."""
        if (steps := self._steps(items)) is not None:
            return self._progression(span, *steps, across)
        run = run_of(items)
        if run is None or LETTER in self.letters:
            raise self.error(r"these dots are not read: write A_1, \ldots, A_n", span)
        first, last = sympy.Integer(run.first), self.size_of(run.last)
        with self.bound([LETTER], summed=True):
            self.firsts[LETTER] = first
            self.shapes.unify(self.letters[LETTER], sympy.expand(last - first + 1))
            each = self.term(run.item)
            form = self.form(each)
        if LETTER not in dict(form.labels) or form.lead:
            raise self.error("what the dots run over is not declared as one family", span)
        return self._strung(span, each, form, across)

    def _steps(self, items: Sequence[Tree]) -> tuple[Any, Any, Any] | None:
        r"""``1, \ldots, n`` and ``-(n-1), \ldots, -1, 0``: the first number, by how much they grow, and how many."""
        told = [None if is_dots(item) else self._plain_number(item) for item in items]
        dots = [n for n, item in enumerate(items) if is_dots(item)]
        first, last = told[0], told[-1]
        if len(dots) != 1 or told.count(None) != 1 or first is None or last is None:
            return None
        steps = {sympy.expand(b - a) for a, b in pairwise(told) if a is not None and b is not None}
        if len(steps) > 1 or (not steps and first != 1):
            return None
        step = steps.pop() if steps else sympy.S.One
        count = sympy.expand((last - first) / step + 1) if step != 0 else sympy.S.Zero
        return (first, step, count) if step.is_Integer and count.is_integer and never_negative(count - 1) else None

    def _plain_number(self, tree: Tree) -> sympy.Expr | None:
        """A number of sizes and symbols, None for what is a tensor or has an index."""
        if any(isinstance(part, Scripted) and self.names.find(part) is None for part in parts_of(tree)):
            return None
        term = self.term(tree)
        self.shapes.solve()
        form = term.slot.form
        value = self.value(term) if form is not None and not form.axes else None
        return None if isinstance(value, Tensor) or not isinstance(value, sympy.Expr) else value

    def _progression(self, span: Span, first: Any, step: Any, count: Any, across: bool) -> Term:
        return self.of_tensor(span, symattn.from_index((count,), lambda i: first + step * i), row=across)

    def _strung(self, span: Span, each: Term, form: Form, across: bool) -> Term:
        """The blocks of a family as one matrix or vector, those of an index next to each other."""
        count = self.known_size(dict(form.labels)[LETTER], "the list", span)
        labels = tuple(pair for pair in form.labels if pair[0] != LETTER)
        own, other = (form.cols, form.rows) if across else (form.rows, form.cols)
        length = count if own is None else count * own
        out = Form(labels, (), other, length) if across else Form(labels, (), length, other)
        before = -2 if across and own is not None else -1 if across else -1 - len(form.core)

        def make() -> Tensor:
            y = moveaxis(self.tensor(each), axis_of(self.form(each), LETTER), before)
            return y if own is None else merge_axes(y, (before, before + 1))

        return Term(span, Slot(out), make)

    @property
    def defined_letters(self) -> dict[str, tuple[str, ...]]:
        """The indices by which names were defined, of this text."""
        return self.names.letters


def _matrix(x: Tensor, form: Form) -> Tensor:
    if form.rows is None:
        return x[None, :]
    return x[:, None] if form.cols is None else x
