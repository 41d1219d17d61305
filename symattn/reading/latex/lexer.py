r"""LaTeX as words with their places: fonts become styles of letters, spacing and colours go, ``{\sum}`` is opened.

What a control word means stands in the tables by which LaTeX is written. Braces that only hold things together are
gone after this stage, but for those of arguments, of scripts, and those that carry scripts themselves.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TypeAlias

from ...core.boxes import Function, Name, Number, Sign, Space, Style
from ...printing.media.latex_words import (
    ACCENTED,
    BARS,
    CLOSING,
    OPENING,
    SIZES,
    STYLES,
    leaf,
)
from .text import FormulaText, Span

_WORD = re.compile(r"\s+|%[^\n]*|\\[A-Za-z]+\*?|\\.|\d+(?:\.\d+)?|\.\d+|:=|=:|'+|\.{3}|.", re.DOTALL)
DEEPEST = 60  # levels of nesting

_DROPPED = {
    *SIZES, r"\left", r"\right", r"\middle", r"\scriptstyle", r"\hline", r"\boxed", r"\mathop", r"\mathrel",
    r"\mathbin", r"\mathord", r"\ensuremath", r"\notag", r"\nonumber", r"\displaylimits", r"\strut", r"\mathstrut",
    r"\allowdisplaybreaks", r"\displaybreak", r"\allowbreak",
}  # fmt: skip
_WITH_ARGUMENT = {r"\tag", r"\label", r"\color", r"\hspace", r"\vspace", r"\phantom", r"\vphantom", r"\hphantom"}
_COLOURED = {r"\textcolor", r"\colorbox"}
_WORDS = {r"\text", r"\mathrm", r"\operatorname", r"\operatorname*", r"\textbf", r"\textrm", r"\texttt", r"\textit",
          r"\textsf", r"\mbox", r"\mathtt"}  # fmt: skip
_PROSE = {r"\text", r"\textrm", r"\mbox", r"\textbf", r"\textit"}
_CONNECTIVES = {"if", "for", "otherwise", "else", "where", "and", "with", "is", "or", "when", "for all", "forall"}
_OLD_FONTS: dict[str, Style] = {
    r"\bf": "bold", r"\rm": "upright", r"\it": "italic", r"\cal": "calligraphic", r"\sf": "sans", r"\tt": "typewriter",
}  # fmt: skip
_ALIKE = {
    "·": "⋅", "×": "×", r"\cdotp": "⋅", "*": "∗", "−": "−", "-": "−", r"\coloneqq": "≔", ":=": "≔", r"\eqqcolon": "≕",
    "=:": "≕", r"\top": "⊤", r"\intercal": "⊤", r"\transpose": "⊤", r"\dots": "…", r"\ldots": "…", r"\cdots": "…",
    r"\vdots": "…", r"\ddots": "…", "...": "…", r"\lvert": "|", r"\rvert": "|", r"\lVert": "‖", r"\rVert": "‖",
    r"\triangleq": "≔", r"\doteq": "≔", r"\defeq": "≔", r"\newline": r"\\", r"\cr": r"\\",
}  # fmt: skip
WORDS_OF_LETTERS = frozenset(
    "softmax Softmax SoftMax Attention MultiHead Concat concat LayerNorm MHA FFN ReLU GELU sigmoid diag head "
    "Attn exp log tanh sin cos max min".split()
)
_WORDS_BEFORE_FENCES = frozenset(
    "tr det rank sum mean relu abs sign vec ln lg cosh sinh argmax argmin erf Var Cov concat gelu silu".split()
)


@dataclass(frozen=True, slots=True)
class Token:
    """A word of a formula: its kind, what it is in Unicode, its place, and the font of a letter.

    Kinds: letter, word, number, sign, open, close, bar, ``{``, ``}``, ``_``, ``^``, prime, ``&``, row, command,
    prose, wide (a space that separates), accent and end.
    """

    kind: str
    mark: str
    span: Span
    style: Style = "italic"
    apart: bool = False  # whether a space stands in front


class Lexer:
    """Takes the words of a text one by one, and then puts groups in order."""

    def __init__(self, text: FormulaText) -> None:
        self.text = text
        self.tokens: list[Token] = []

    def read(self) -> list[Token]:
        """All tokens, and one at the end."""
        apart = False
        for match in _WORD.finditer(self.text.text):
            word = match[0]
            if word.isspace() or word[0] == "%":
                apart = True
                continue
            token = self._token(word, Span(*match.span()), apart)
            apart = token is None and apart
            if token is not None:
                self.tokens.append(token)
        self._check_groups()
        tokens = _Groups(self.text, _with_words(self.tokens)).arranged()
        end = len(self.text.text.rstrip())
        return [*tokens, Token("end", "", Span(end, end))]

    def _token(self, word: str, span: Span, apart: bool) -> Token | None:
        def made(kind: str, mark: str, style: Style = "italic") -> Token:
            return Token(kind, mark, span, style, apart)

        if word in _ALIKE:
            mark = _ALIKE[word]
            return made("bar" if mark in "|‖" else "row" if mark == r"\\" else "sign", mark)
        if word in "{}_^&":
            return made(word, word)
        if word == r"\\":
            return made("row", word)
        if word[0] == "'":
            return made("prime", "′" * len(word))
        if word in BARS:
            return made("bar", BARS[word])
        if word in OPENING:
            return made("open", OPENING[word])
        if word in CLOSING:
            return made("close", CLOSING[word])
        if word in _DROPPED:
            return None
        if word in ACCENTED:
            return made("accent", ACCENTED[word])
        return self._leaf(word, made)

    def _leaf(self, word: str, made: Callable[..., Token]) -> Token | None:
        box = leaf(word, "italic")
        token: Token | None
        match box:
            case Name(letters=letters):
                token = made("letter", letters)
            case Number(digits=digits):
                token = made("number", digits)
            case Function(name=Name(letters=letters)):
                token = made("word", letters)
            case Space(width=width):
                token = made("wide", word) if width >= 1 else None
            case Sign(mark=mark):
                token = made("sign", "′" if mark == "′" else mark.replace("-", "−"))
                if mark == "′":
                    token = made("prime", mark)
                elif len(mark) > 1 and mark != "mod":
                    token = made("word", mark)
            case _:
                token = self._other(word, made)
        return token

    def _other(self, word: str, made: Callable[..., Token]) -> Token | None:
        token: Token
        if word[0] == ".":
            token = made("number", f"0{word}") if len(word) > 1 else made("sign", ".")
        elif word[0] == "\\" and len(word) > 1:
            token = made("command", word)
        elif word.isalpha():
            token = made("letter", word)
        else:
            raise self.text.error(f"the character {word!a} is not read here", Span(*made("", "").span))
        return token

    def _check_groups(self) -> None:
        """Braces in pairs, and no deeper than anybody writes; brackets are counted with them."""
        opened: list[Token] = []
        depth = 0
        for token in self.tokens:
            depth += (token.kind == "open") - (token.kind == "close" and depth > len(opened))
            if token.kind == "{":
                opened.append(token)
                depth += 1
            elif token.kind == "}":
                if not opened:
                    raise self.text.error("} closes nothing that is open here", token.span)
                opened.pop()
                depth -= 1
            if depth > DEEPEST:
                raise self.text.error(f"nested over {DEEPEST} levels deep: name its parts", token.span)
        if opened:
            raise self.text.error("{ is not closed", opened[-1].span)


def _with_words(tokens: list[Token]) -> list[Token]:
    """Letters side by side that spell a word of the field in full, as in ``softmax(Q)``, are that word."""
    out: list[Token] = []
    run: list[Token] = []

    def flush(following: str = "") -> None:
        word = "".join(t.mark for t in run)
        if word in WORDS_OF_LETTERS or (following == "(" and word in _WORDS_BEFORE_FENCES):
            out.append(Token("word", word, Span(run[0].span.start, run[-1].span.end), "upright", run[0].apart))
        else:
            out.extend(run)
        run.clear()

    for token in tokens:
        joins = token.kind == "letter" and token.mark.isascii() and not (run and token.apart)
        if not joins:
            flush(token.mark)
        if token.kind == "letter" and token.mark.isascii():
            run.append(token)
        else:
            out.append(token)
    flush()
    return out


_Stretch: TypeAlias = tuple[int, int, Style | None, Token | None]  # from, to, font, and the brace that closes it


class _Groups:
    """Opens groups, sets fonts, and leaves what scripts and arguments need."""

    def __init__(self, text: FormulaText, tokens: list[Token]) -> None:
        self.text = text
        self.tokens = tokens
        self.ends = self._matched()
        self.out: list[Token] = []

    def _matched(self) -> dict[int, int]:
        ends, opened = {}, []
        for n, token in enumerate(self.tokens):
            if token.kind == "{":
                opened.append(n)
            elif token.kind == "}" and opened:
                ends[opened.pop()] = n
        return ends

    def arranged(self) -> list[Token]:
        """The tokens in order, by a stack of stretches that are still to be gone through."""
        stack: list[_Stretch] = [(0, len(self.tokens), None, None)]
        while stack:
            at, end, style, closing = stack.pop()
            if at >= end:
                if closing is not None:
                    self.out.append(closing)
                continue
            after, inside = self._step(at, end, style)
            stack.append((after, end, style, closing))
            stack += reversed(inside)
        return self.out

    def _step(self, at: int, end: int, style: Style | None) -> tuple[int, list[_Stretch]]:
        token = self.tokens[at]
        word = token.mark if token.kind == "command" else ""
        if word in _WITH_ARGUMENT:
            return self._argument(at + 1, end, token)[1], []
        if word in _COLOURED:
            return self._argument(at + 1, end, token)[1], []
        if word in _OLD_FONTS:
            first, after = self._argument(at + 1, end, token) if self._opens(at + 1, end) else (at + 1, end)
            inner = self._stretch(first, after) if self._opens(at + 1, end) else (at + 1, end)
            return after, [(*inner, _OLD_FONTS[word], None)]
        if word == r"\parbox":
            return self._words_in_a_box(at, end), []
        if word in _WORDS:
            return self._word(at, end, style)
        if word in STYLES:
            first, after = self._argument(at + 1, end, token)
            return after, self._grouped(first, after, STYLES[word], end)
        if token.kind == "{":
            after = self.ends[at] + 1
            return after, self._grouped(at, after, style, end)
        if token.kind in ("_", "^") and self._opens(at + 1, end):
            return self._script(at, style)
        if style is not None and token.kind in ("letter", "number"):
            token = replace(token, style=style)
        self.out.append(token)
        return at + 1, []

    def _opens(self, at: int, end: int) -> bool:
        return at < end and self.tokens[at].kind == "{"

    def _argument(self, at: int, end: int, token: Token) -> tuple[int, int]:
        """Where an argument begins and where it is over."""
        if at >= end or self.tokens[at].kind not in ("{", "letter", "number", "word", "command"):
            raise self.text.error(f"{token.mark} needs something in braces behind it", token.span)
        return at, (self.ends[at] + 1 if self.tokens[at].kind == "{" else at + 1)

    def _stretch(self, first: int, after: int) -> tuple[int, int]:
        return (first + 1, after - 1) if self.tokens[first].kind == "{" else (first, after)

    def _script(self, at: int, style: Style | None) -> tuple[int, list[_Stretch]]:
        self.out += [self.tokens[at], self.tokens[at + 1]]
        close = self.ends[at + 1]
        return close + 1, [(at + 2, close, style, self.tokens[close])]

    def _grouped(self, first: int, after: int, style: Style | None, end: int) -> list[_Stretch]:
        """The inside of a group, between braces where an argument or a script stands at them."""
        inner = self._stretch(first, after)
        kept = self.tokens[first].kind == "{" and (self._is_argument() or self._carries(inner, after, end))
        if not kept:
            return [(*inner, style, None)]
        self.out.append(self.tokens[first])
        return [(*inner, style, self.tokens[after - 1])]

    def _carries(self, inner: tuple[int, int], after: int, end: int) -> bool:
        """Whether a group of more than one symbol has a script."""
        if after >= end or self.tokens[after].kind not in ("_", "^", "prime"):
            return False
        count = inner[1] - inner[0]
        only = self.tokens[inner[0]].mark if count == 1 else ""
        return count > 1 or only in ("",)

    def _is_argument(self) -> bool:
        r"""Whether what comes is an argument of ``\frac``, ``\sqrt``, ``\begin``, an accent, ``\underset``."""
        arguments, n = 0, len(self.out) - 1
        while n >= 0:
            last = self.out[n]
            if last.kind in ("_", "^", "accent"):
                return arguments == 0
            if last.kind == "command":
                return arguments < _ARITY.get(last.mark, 0)
            if last.kind == "}":
                n = self._start_of_group(n)
                arguments += 1
                n -= 1
                continue
            if arguments or last.kind not in ("letter", "number"):
                return last.kind == "close" and last.mark == "]" and self._after_degree(n)
            if n and self.out[n - 1].kind == "command" and _ARITY.get(self.out[n - 1].mark, 0) > 1:
                return True
            return False
        return False

    def _start_of_group(self, n: int) -> int:
        depth = 0
        while n >= 0:
            depth += (self.out[n].kind == "}") - (self.out[n].kind == "{")
            if not depth:
                return n
            n -= 1
        return 0

    def _after_degree(self, n: int) -> bool:
        while n >= 0 and self.out[n].mark != "[":
            n -= 1
        return n > 0 and self.out[n - 1].mark == r"\sqrt"

    def _word(self, at: int, end: int, style: Style | None) -> tuple[int, list[_Stretch]]:
        r"""``\mathrm{softmax}``: a word; ``\text{if }``: prose; ``\mathrm{QK^\top}``: upright symbols."""
        token = self.tokens[at]
        first, after = self._argument(at + 1, end, token)
        inner = self.tokens[slice(*self._stretch(first, after))]
        span = Span(token.span.start, self.tokens[after - 1].span.end)
        letters = [t for t in inner if t.kind in ("letter", "number", "word") or t.mark in ("−", "_", "-")]
        spaced = any(t.apart for t in inner[1:])
        said = "".join(t.mark for t in inner).rstrip(".,")
        if token.mark in _PROSE and said in _CONNECTIVES:
            self.out.append(Token("prose", said, span))
            return after, []
        if inner and len(letters) == len(inner) and not spaced and inner[0].kind in ("letter", "word"):
            if any(t.kind == "_" for t in inner) and token.mark not in (r"\operatorname", r"\operatorname*"):
                return self._scripted_word(inner, span, after, token.apart)
            mark = "".join(t.mark for t in inner).replace("−", "-")
            if len(mark) > 1 or token.mark in _PROSE or token.mark.startswith(r"\operatorname"):
                self.out.append(Token("word", mark, span, "upright", token.apart))
            else:
                self.out.append(replace(inner[0], style="upright", apart=token.apart))
            return after, []
        if token.mark in _PROSE:
            self.out.append(self._prose(token, first, after))
            return after, []
        return after, self._grouped(first, after, "upright", end)

    def _words_in_a_box(self, at: int, end: int) -> int:
        r"""``\parbox[t]{4em}{words}``: prose. Where it is over."""
        token = self.tokens[at]
        width = at + 1
        if width < end and self.tokens[width].mark == "[":
            width = next((n for n in range(width, end) if self.tokens[n].mark == "]"), end - 1) + 1
        first, after = self._argument(self._argument(width, end, token)[1], end, token)
        self.out.append(self._prose(token, first, after))
        return after

    def _prose(self, token: Token, first: int, after: int) -> Token:
        """Words as they stand in the text."""
        start, stop = self._stretch(first, after)
        source = self.text.text[self.tokens[first].span.end : self.tokens[after - 1].span.start] if stop else ""
        span = Span(token.span.start, self.tokens[after - 1].span.end)
        return Token("prose", " ".join(source.split()) if start <= stop else "", span)

    def _scripted_word(self, inner: list[Token], span: Span, after: int, apart: bool) -> tuple[int, list[_Stretch]]:
        r"""``\mathrm{head_i}``: a word with a subscript."""
        n = next(k for k, t in enumerate(inner) if t.kind == "_")
        self.out.append(Token("word", "".join(t.mark for t in inner[:n]), span, "upright", apart))
        self.out.append(inner[n])
        self.out += [Token("{", "{", inner[n].span), *inner[n + 1 :], Token("}", "}", inner[-1].span)]
        return after, []


_ARITY = {
    r"\frac": 2, r"\dfrac": 2, r"\tfrac": 2, r"\cfrac": 2, r"\binom": 2, r"\sqrt": 1, r"\begin": 2, r"\end": 1,
    r"\underset": 2, r"\overset": 2, r"\stackrel": 2, r"\underbrace": 1, r"\overbrace": 1,
}  # fmt: skip


_DEFINED = frozenset({"def", "Δ", "△", "def."})


def _with_definitions(tokens: list[Token]) -> list[Token]:
    r"""``\stackrel{\text{def}}{=}`` as the sign of a definition."""
    out: list[Token] = []
    for token in tokens:
        out.append(token)
        last = [t.mark for t in out[-7:]]
        if (
            len(last) == 7
            and last[0] in (r"\stackrel", r"\overset")
            and last[1:2] + last[3:] == ["{", "}", "{", "=", "}"]
        ):
            if last[2] in _DEFINED:
                out[-7:] = [Token("sign", "≔", Span(out[-7].span.start, token.span.end))]
    return out


def tokens_of(text: FormulaText) -> list[Token]:
    """The tokens of a formula."""
    return _with_definitions(Lexer(text).read())
