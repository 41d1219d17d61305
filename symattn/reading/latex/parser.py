r"""From tokens to a syntax tree, by precedence.

From loose to tight: ``∨``, ``∧``, relations, ``+ −``, the body of a sum, ``⊙ ⊘ ∘ ⊗``, ``⋅ × /``, side by side, scripts.
So ``L \odot Q K^\top`` is L ⊙ (Q K^⊤), and ``Q K^\top / \sqrt{d}`` a quotient of the product. What people read in two
ways is refused: ``a / b c``, ``\log x y``, ``\cos (m - n) \theta``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from . import calculus_trees, grids
from .lexer import Token
from .text import FormulaText, Span
from .tree import (
    Apply,
    Fence,
    Fraction,
    Grid,
    Infix,
    Items,
    Large,
    Mark,
    Number,
    Prefix,
    Product,
    Relation,
    Root,
    Scripted,
    Slice,
    Symbol,
    Total,
    Tree,
    is_turn,
    moment_of,
)

RELATIONS = frozenset("=<>≤≥≠≈≡∼≔≕∈∉→⟹∝:") | {"⇒", "⊂", "⊆", "⟺", "≪", "≫", "∣", "∥", "↦"}
_OR, _AND, _RELATION, _BAR, _SUM, _BODY, _ENTRYWISE, _TIMES, _BESIDE = range(1, 10)
_INFIX = {
    "∨": _OR, "∧": _AND, "⊙": _ENTRYWISE, "⊘": _ENTRYWISE, "∘": _ENTRYWISE, "⊗": _ENTRYWISE, "⋆": _ENTRYWISE,
    "⋅": _TIMES, "×": _TIMES, "/": _TIMES, "∗": _TIMES, "mod": _TIMES, "÷": _TIMES, "•": _TIMES,
}  # fmt: skip
_LARGE = frozenset("∑∏∫⋃⋂⨁⨂⨀")
_EXTREMES = frozenset({"max", "min", "sup", "inf"})
_TURNED = frozenset({"sin", "cos", "tan"})
_FRACTIONS = frozenset({r"\frac", r"\dfrac", r"\tfrac", r"\cfrac", r"\binom"})
_LABELLED = frozenset({r"\underset", r"\overset", r"\stackrel"})
_BRACES = frozenset({r"\underbrace", r"\overbrace"})
_CLOSES = {"(": ")", "[": "]", "{": "}", "⟨": "⟩", "⌊": "⌋", "⌈": "⌉", "|": "|", "‖": "‖"}
_MARKS = frozenset("⊤∞…∗⋆†+−⊥∂∇")
_BOLD = frozenset({"bold", "blackboard"})  # numbers in these are vectors
DEEPEST = 100
INDICES = frozenset("ijklmnrstuvabc")  # letters that are indices where nothing else is said


class Parser:
    """Reads one stretch of tokens; ``applies`` says whether a letter in front of a fence is a function."""

    def __init__(self, text: FormulaText, tokens: Sequence[Token], applies: Callable[[Tree], bool]) -> None:
        end = tokens[-1].span.end if tokens else 0
        self.text = text
        self.tokens = [*(t for t in tokens if t.kind != "wide"), Token("end", "", Span(end, end))]
        self.applies = applies
        self.at = self.depth = 0
        self.bars: list[str] = []
        self.differentials: list[int] = []  # where integrals end that are open

    def read(self) -> Tree:
        """All of the tokens as one tree."""
        items = [self.expression(0)]
        while self.meets("sign", ","):
            self.next()
            items.append(self.expression(0))
        if self.token.kind != "end":
            raise self.error(f"{self.shown(self.token)} is not expected here")
        return items[0] if len(items) == 1 else Items(self.since(items[0].span.start), tuple(items))

    # --- tokens ---

    @property
    def token(self) -> Token:
        return self.tokens[self.at]

    def next(self) -> Token:
        token = self.tokens[self.at]
        self.at += token.kind != "end"
        return token

    def meets(self, kind: str, mark: str = "") -> bool:
        return self.token.kind == kind and (not mark or self.token.mark == mark)

    def expect(self, kind: str, mark: str, opened: Token) -> Token:
        if not self.meets(kind, mark):
            raise self.error(f"expected {mark} for the {opened.mark} at character {opened.span.start + 1}")
        return self.next()

    def error(self, problem: str, span: Span | None = None) -> Exception:
        return self.text.error(problem, span or self.token.span)

    def shown(self, token: Token) -> str:
        return "the end" if token.kind == "end" else repr(self.text.part(token.span))

    def since(self, start: int) -> Span:
        return Span(start, self.tokens[self.at - 1].span.end if self.at else start)

    # --- by precedence ---

    def expression(self, least: int) -> Tree:
        """What binds at least that tightly."""
        self.deeper()
        tree = self.operand()
        while (level := self._level()) > least:
            tree = self._joined(tree, level)
        self.depth -= 1
        return tree

    def deeper(self) -> None:
        """One level further in; whoever calls this goes back by ``depth``."""
        self.depth += 1
        if self.depth > DEEPEST:
            raise self.error("nested too deeply: name its parts")

    def _level(self) -> int:
        """How tightly what comes is joined to what stands before it; 0 where nothing is joined."""
        token = self.token
        if token.kind == "sign":
            if token.mark in "+−":
                return _SUM
            joined = _RELATION if token.mark in RELATIONS else _INFIX.get(token.mark, 0)
            return joined or (_BESIDE if self.begins() else 0)
        if token.kind == "bar" and self.bars[-1:] == ["["] and token.mark == "‖":
            return _BAR  # of a concatenation
        return _BESIDE if self.begins() else 0

    def begins(self) -> bool:
        """Whether a factor begins here."""
        token = self.token
        if self.at in self.differentials:
            return False
        if token.kind in ("letter", "word", "number", "open", "{", "accent"):
            return True
        if token.kind == "command":
            return token.mark != r"\end"
        if token.kind == "bar":
            return self.bars[-1:] != [token.mark]
        return token.kind == "sign" and (token.mark in _LARGE or token.mark in "∞…∂∇⊤")

    def _joined(self, left: Tree, level: int) -> Tree:
        if level == _SUM:
            return self._total(left)
        if level == _RELATION:
            return self._relation(left)
        if level in (_TIMES, _BESIDE):
            return self._product(left, level)
        sign = self.next().mark
        right = self.expression(level)
        return Infix(Span(left.span.start, right.span.end), sign, left, right)

    def _total(self, first: Tree) -> Tree:
        terms = [("+", first)]
        if isinstance(first, Total) and self.tokens[self.at - 1].kind != "close":
            terms = list(first.terms)
        while self.meets("sign") and self.token.mark in "+−":
            sign = self.next().mark
            terms.append((sign, self.expression(_SUM)))
        return Total(Span(first.span.start, terms[-1][1].span.end), tuple(terms))

    def _relation(self, first: Tree) -> Tree:
        sides, signs = [first], []
        while self.meets("sign") and self.token.mark in RELATIONS:
            signs.append(self.next().mark)
            if self.meets("end"):
                raise self.error(f"{signs[-1]} has no right side")
            sides.append(self.expression(_RELATION))
        return Relation(Span(first.span.start, sides[-1].span.end), tuple(sides), tuple(signs))

    def _product(self, first: Tree, level: int) -> Tree:
        if level == _TIMES and self.token.mark in "/÷":
            return self._quotient(first)
        if level == _TIMES and self.token.mark == "mod":
            self.next()
            right = self.expression(_TIMES)
            return Infix(Span(first.span.start, right.span.end), "mod", first, right)
        factors, signs = [first], []
        while self._level() == level and not (level == _TIMES and self.token.mark in ("/", "÷", "mod")):
            if level == _BESIDE:
                self._check_beside(factors[-1])
            signs.append(self.next().mark if level == _TIMES else "")
            factors.append(self.expression(level))
        return Product(Span(first.span.start, factors[-1].span.end), tuple(factors), tuple(signs))

    def _check_beside(self, left: Tree) -> None:
        r"""That no two numbers stand side by side, and no 1 that may be ``\mathbf{1}`` beside a factor."""
        if self.bars[-1:] == ["_"] and not (isinstance(left, Number) and self.meets("number")):
            return  # in a name or an entry, such as \beta_{a 1}
        if isinstance(left, Number) and left.digits == "1" and not left.bold:
            raise self.error(r"a 1 in front of a factor is not decided: write ones as \mathbf{1}", left.span)
        if not self.meets("number") or self.token.style in _BOLD:
            return
        if isinstance(left, Number) and not left.bold:
            raise self.error(r"two numbers side by side are not decided: write 1000, or 2 \cdot 3")
        if isinstance(left, Scripted) and self.text.text[self.token.span.start - 1].isdigit():
            raise self.error("a script of several digits stands in braces: write 2^{10}")
        if isinstance(left, Symbol) and left.letters in ("e", "E") and not self.token.apart:
            raise self.error(r"whether this is a power of ten is not decided: write \cdot 10^{5}, or a space")
        if self.token.mark == "1":
            raise self.error(r"a 1 behind a factor is not decided: write ones as \mathbf{1}")

    def _quotient(self, above: Tree) -> Tree:
        sign = self.next()
        below = self.expression(_TIMES)
        if isinstance(below, Product):
            raise self.error(
                "what stands below this / is not decided: write \\frac{...}{...}, or parentheses around it", sign.span
            )
        factor = calculus_trees.behind_the_last(below)
        if factor is not None:
            raise self.error(
                f"whether {self.text.part(factor.span)} is a part of what stands below the / is not decided: write "
                "\\frac{...}{...}, or parentheses",
                factor.span,
            )
        return Infix(Span(above.span.start, below.span.end), "/", above, below)

    # --- operands ---

    def operand(self) -> Tree:
        """A factor with its scripts, or what a prefix makes."""
        token = self.token
        if token.kind == "sign" and token.mark in "+−±":
            return self._signed()
        if token.kind == "sign" and token.mark == "¬":
            self.next()
            inside = self.expression(_AND)
            return Prefix(Span(token.span.start, inside.span.end), "¬", inside)
        if token.kind == "sign" and token.mark == "∫":
            return calculus_trees.integral(self)
        if token.kind == "word" and token.mark == "lim" and self._has_limits():
            return calculus_trees.limit(self)
        if token.kind == "sign" and token.mark in _LARGE:
            return self._large(self.next())
        if token.kind == "word" and token.mark in _EXTREMES and self._has_limits():
            return self._large(self.next())
        return calculus_trees.factorial(self, self._called(self.scripts(self.atom())))

    def _signed(self) -> Tree:
        token = self.next()
        if token.mark == "±":
            raise self.error("± stands for two formulas: write them both", token.span)
        if self.meets("end") or self.meets("}"):
            return Mark(token.span, token.mark)
        inside = self.expression(_SUM)
        return Total(Span(token.span.start, inside.span.end), ((token.mark, inside),))

    def body(self) -> Tree:
        """What a large sign in front of it is of."""
        return self.expression(_BODY)

    def _has_limits(self) -> bool:
        r"""Whether ``\max`` has an index below it, and no word such as ``axis``."""
        after = self.tokens[self.at + 1 : self.at + 4]
        inside = after[2:] if [t.kind for t in after[1:2]] == ["{"] else after[1:2]
        return bool(after) and after[0].kind == "_" and not any(t.kind == "word" for t in inside)

    def _large(self, token: Token) -> Tree:
        below = above = None
        while self.token.kind in ("_", "^"):
            if (below if self.token.kind == "_" else above) is not None:
                raise self.error(f"a second {self.token.mark} behind one sign")
            below, above = (self.script(), above) if self.token.kind == "_" else (below, self.script())
        if not self.begins() and not self.meets("sign", "−"):
            raise self.error(f"{token.mark} has nothing behind it")
        body = self.body()
        return Large(Span(token.span.start, body.span.end), token.mark, below, above, body)

    def _called(self, head: Tree) -> Tree:
        """A function with its arguments, where ``head`` is one."""
        base = head.base if isinstance(head, Scripted) else head
        if not isinstance(base, Symbol) or not self._takes(head, base):
            return head
        if not self.meets("open"):
            return self._unbracketed(head, base)
        fence = self.token
        arguments = self.atom()
        assert isinstance(arguments, Fence)
        if ";" in arguments.separators and base.letters.lower() == "concat":
            raise self.error("whether these stand side by side is not decided: write [X, Y], or [X; Y]", fence.span)
        call = Apply(Span(head.span.start, arguments.span.end), head, arguments.items)
        if base.letters in _TURNED and fence.apart and self.begins():
            raise self.error(
                f"where the argument of {base.letters} ends is not decided: write it in parentheses, or a \\cdot "
                "behind it",
                head.span,
            )
        return self._scripts_of_call(call, fence)

    def _scripts_of_call(self, call: Apply, fence: Token) -> Tree:
        r"""A call with its scripts: no power of a moment in parentheses, as ``\mathbb{E}(x)^2`` may be of x."""
        found = self.scripts(call)
        power = found.above if isinstance(found, Scripted) else None
        if power is not None and not is_turn(power) and moment_of(call.head) and fence.mark == "(":
            raise self.error(
                "whether this power is of the moment is not decided: write brackets, as \\mathbb{E}[x]^2, or "
                "\\mathbb{E}[x^2]",
                power.span,
            )
        return found

    def _takes(self, head: Tree, base: Symbol) -> bool:
        if self.meets("open") and self.token.mark in "([":
            if moment_of(head):
                return self.applies(head)
            if len(base.letters) == 1 and (self.token.mark == "[" or (base.letters in INDICES and self._is_indexed())):
                return False
            return self.applies(head)
        return len(base.letters) > 1 and base.letters in UNBRACKETED and self.applies(head)

    def _is_indexed(self) -> bool:
        """Whether a subscript stands behind the fence that comes: an entry, as in ``i (W_q)_{ij}``."""
        depth = 0
        for n in range(self.at, len(self.tokens)):
            depth += (self.tokens[n].kind == "open") - (self.tokens[n].kind == "close")
            if not depth:
                return self.tokens[n + 1 : n + 2] != [] and self.tokens[n + 1].kind == "_"
        return False

    def _unbracketed(self, head: Tree, base: Symbol) -> Tree:
        if not self.begins():
            raise self.error(f"{base.letters} has no argument", head.span)
        self.deeper()
        inside = self.operand()
        self.depth -= 1
        if (self.begins() and not self.meets("word")) or self.meets("sign", "/"):
            raise self.error(
                f"where the argument of {base.letters} ends is not decided: write {base.letters}(...)", head.span
            )
        return Apply(Span(head.span.start, inside.span.end), head, (inside,))

    def atom(self) -> Tree:
        """A symbol, a number, something between fences, a fraction, a root, a matrix."""
        token = self.next()
        match token.kind:
            case "letter" if (token.mark, token.style) == ("d", "upright") and self.token.kind in ("letter", "accent"):
                inside = self.atom()  # of a gradient
                assert isinstance(inside, Symbol)
                return Symbol(self.since(token.span.start), f"d{inside.letters}", inside.style, inside.accents)
            case "letter" | "word":
                return Symbol(token.span, token.mark, token.style)
            case "number":
                return Number(token.span, token.mark, token.style in _BOLD)
            case "open":
                return self._fence(token)
            case "bar":
                return self._between_bars(token)
            case "{":
                self.at -= 1
                inside = self.argument(token)
                if isinstance(inside, (Symbol, Number)):
                    return inside
                return Fence(self.since(token.span.start), "{}", "{}", (inside,))
            case "accent":
                return self._accented(token)
            case "command":
                return self._command(token)
            case "sign" if token.mark in _MARKS:
                return Mark(token.span, token.mark)
        raise self.error(f"{self.shown(token)} cannot begin an expression", token.span)

    def _fence(self, opened: Token) -> Tree:
        if opened.mark == "{" and self.meets("command", r"\begin"):
            return self._cases_behind(opened)
        self.bars.append(opened.mark)
        items: list[Tree] = []
        separators = ""
        while not self.meets("close"):
            items.append(self._slice() if opened.mark == "[" else self.expression(0))
            if self.meets("sign", ",") or self.meets("sign", ";"):
                separators += self.next().mark
            elif not self.meets("close"):
                raise self.error(
                    f"expected {_CLOSES[opened.mark]} for the {opened.mark} at character "
                    f"{opened.span.start + 1}, not {self.shown(self.token)}"
                )
        self.expect("close", _CLOSES[opened.mark], opened)
        self.bars.pop()
        return Fence(self.since(opened.span.start), opened.mark, _CLOSES[opened.mark], tuple(items), separators)

    def _cases_behind(self, opened: Token) -> Tree:
        r"""``\left\{ \begin{array}{ll} ... \end{array} \right.``: cases, behind a brace that is not closed."""
        rows = grids.grid(self, self.next()).rows
        if self.meets("close"):
            raise self.error("a set is not read: write cases as \\begin{cases} ... \\end{cases}", opened.span)
        if self.meets("sign", "."):
            self.next()
        return Grid(self.since(opened.span.start), "cases", rows)

    def _slice(self) -> Tree:
        """An item between brackets, which may be a stretch ``a : b`` of an axis."""
        start, parts = self.token.span.start, list[Tree | None]()
        while True:
            empty = self.meets("sign", ":") or self.meets("sign", ",") or self.meets("close") or self.meets("}")
            parts.append(None if empty else self.expression(_RELATION if self._slices() else 0))
            if not self.meets("sign", ":"):
                break
            self.next()
        if len(parts) == 1 and parts[0] is not None:
            return parts[0]
        return Slice(self.since(start), tuple(parts))

    def _slices(self) -> bool:
        """Whether a colon stands before the end of this item."""
        depth = 0
        for token in self.tokens[self.at :]:
            depth += (token.kind in ("open", "{")) - (token.kind in ("close", "}"))
            if depth < 0 or (not depth and token.mark == ","):
                return False
            if not depth and token.kind == "sign" and token.mark == ":":
                return True
        return False

    def _between_bars(self, opened: Token) -> Tree:
        doubled = self.token.kind == "bar" and self.token.mark == "|" == opened.mark and not self.token.apart
        if doubled:  # ``||x||`` is a norm
            self.next()
        self.bars.append(opened.mark)
        inside = self.expression(0)
        self.expect("bar", opened.mark, opened)
        self.bars.pop()
        if doubled:
            self.expect("bar", opened.mark, opened)
        mark = "‖" if doubled else opened.mark
        return Fence(self.since(opened.span.start), mark, mark, (inside,))

    def _accented(self, token: Token) -> Tree:
        inside = self.argument(token)
        if isinstance(inside, Symbol):
            return Symbol(self.since(token.span.start), inside.letters, inside.style, inside.accents + token.mark)
        if isinstance(inside, Scripted) and isinstance(inside.base, Symbol):
            base = inside.base
            marked = Symbol(base.span, base.letters, base.style, base.accents + token.mark)
            return Scripted(self.since(token.span.start), marked, inside.below, inside.above, inside.primes)
        raise self.error("an accent stands on a letter", token.span)

    def argument(self, token: Token) -> Tree:
        """What stands in braces behind a command, or one symbol."""
        self.deeper()
        inside = self._argument(token)
        self.depth -= 1
        return inside

    def _argument(self, token: Token) -> Tree:
        if self.meets("{"):
            opened = self.next()
            if self.token.kind in ("letter", "word") and self.tokens[self.at + 1].kind == "}":
                inside = self.atom()
            else:
                self.bars.append("{")
                inside = self.expression(0)
                self.bars.pop()
            self.expect("}", "}", opened)
            return inside
        if self.token.kind not in ("letter", "number", "word", "command"):
            raise self.error(f"{token.mark} needs something in braces behind it", token.span)
        if self.meets("number") and len(self.token.mark) > 1:
            return self._digit()
        return self.atom()

    def _digit(self) -> Tree:
        r"""The first digit of a number: ``\frac12`` has two arguments."""
        token = self.token
        start = token.span.start
        rest = Token("number", token.mark[1:], Span(start + 1, token.span.end), token.style)
        if not token.mark.isdecimal():
            raise self.error("put the number into braces")
        self.tokens[self.at] = rest
        return Number(Span(start, start + 1), token.mark[0])

    def _command(self, token: Token) -> Tree:
        start = token.span.start
        if token.mark in _FRACTIONS:
            above, below = self.argument(token), self.argument(token)
            return calculus_trees.fraction(self, token, Fraction(self.since(start), above, below))
        if token.mark == r"\sqrt":
            degree = None
            if self.meets("open", "["):
                opened = self.next()
                degree = self.expression(0)
                self.expect("close", "]", opened)
            if self.meets("number") and len(self.token.mark) > 1:
                raise self.error("what a root is of stands in braces: write \\sqrt{16}")
            inside = self.argument(token)
            return Root(self.since(start), inside, degree)
        if token.mark == r"\begin":
            return grids.grid(self, token)
        if token.mark in _BRACES:
            inside = self.argument(token)
            if self.token.kind in ("_", "^"):
                self.script()  # a label
            return Fence(self.since(start), "(", ")", (inside,))
        if token.mark in _LABELLED:
            return self._labelled(token)
        raise self.error(f"the command {self.text.part(token.span)} is not read", token.span)

    def _labelled(self, token: Token) -> Tree:
        r"""``\underset{j}{\operatorname{softmax}}`` has an index; a label of anything else says nothing."""
        label = self.argument(token)
        if self.meets("{") and self.tokens[self.at + 1].mark in RELATIONS:
            raise self.error("a label at a relation is not read: write the sign alone", token.span)
        inside = self.argument(token)
        if isinstance(inside, Symbol) and len(inside.letters) > 1 and token.mark == r"\underset":
            return Scripted(self.since(token.span.start), inside, label)
        if isinstance(inside, Symbol):
            return inside
        return Fence(self.since(token.span.start), "(", ")", (inside,))

    # --- scripts ---

    def scripts(self, base: Tree) -> Tree:
        """The base with the scripts that stand at it."""
        below = above = None
        primes = ""
        while self.token.kind in ("_", "^", "prime"):
            token = self.token
            if token.kind == "prime":
                if above is not None:
                    raise self.error("a prime stands before other superscripts")
                primes += self.next().mark
            elif token.kind == "_":
                if below is not None:
                    raise self.error("a second _ behind one base: put the first into braces, as in {x_{i}}_{j}")
                below = self.script()
            else:
                script = self.script()
                if isinstance(script, Mark) and script.sign[0] == "′":
                    primes += script.sign
                    continue
                if above is not None:
                    raise self.error("a second ^ behind one base: put the first into braces", token.span)
                above = script
        if below is above is None and not primes:
            return base
        if above is not None or primes:
            self._check_shows(base)
        return Scripted(Span(base.span.start, self.tokens[self.at - 1].span.end), base, below, above, primes)

    def _check_shows(self, base: Tree) -> None:
        r"""That what a superscript stands at shows: nobody sees the braces of ``{A B}^\top``."""
        inside = base.items[0] if isinstance(base, Fence) and base.left == "{}" else None
        bare = isinstance(inside, Apply) and not self.text.part(inside.span).endswith((")", "]", "}"))
        if bare or isinstance(inside, (Total, Product, Infix, Large, Relation, Prefix)):
            raise self.error(r"braces do not show what a superscript is of: write (A B)^\top, or A B^\top", base.span)

    def script(self) -> Tree:
        """What stands behind ``_`` or ``^``."""
        token = self.next()
        if not self.meets("{"):
            if self.token.kind == "sign" and self.token.mark in _MARKS:
                return Mark(self.token.span, self.next().mark)
            if self.meets("prime"):
                return Mark(self.token.span, self.next().mark)
            return self.argument(token)
        opened = self.next()
        self.bars.append("_" if token.kind == "_" else "{")
        items = [self._script_item()]
        while self.meets("sign", ",") or self.meets("sign", ";"):
            self.next()
            items.append(self._script_item())
        self.expect("}", "}", opened)
        self.bars.pop()
        return items[0] if len(items) == 1 else Items(self.since(opened.span.start), tuple(items))

    def _script_item(self) -> Tree:
        token = self.token
        if self._slices():
            return self._slice()
        if token.kind == "prime":
            marks = "".join(self.next().mark for _ in iter(lambda: self.meets("prime"), False))
            return Mark(self.since(token.span.start), marks)
        if token.kind == "sign" and token.mark in "⊙∘":
            self.next()
            inside = self.expression(0)
            return Prefix(self.since(token.span.start), "⊙", inside)
        if token.kind == "sign" and token.mark in _MARKS and self.tokens[self.at + 1].kind == "}":
            return Mark(token.span, self.next().mark)
        return self.expression(0)


UNBRACKETED = frozenset(
    "exp log ln lg sin cos tan tanh sinh cosh softmax Softmax SoftMax sigmoid diag tr Tr det ReLU relu max min vec "
    "logsumexp rowsum rank sign sgn arctan arcsin arccos".split()
)
"""Words that may stand in front of their argument without parentheses."""
