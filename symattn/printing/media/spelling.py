r"""How LaTeX spells characters, fonts, accents, fences and spaces: one table for who writes and who reads.

Greek follows SymPy's symbol conventions: ``ϵ`` is ``\epsilon`` and ``ε`` is ``\varepsilon``, ``ϕ`` is ``\phi``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ...core.boxes import SignKind, Style

LETTERS = {
    "α": r"\alpha", "β": r"\beta", "γ": r"\gamma", "δ": r"\delta", "ϵ": r"\epsilon", "ε": r"\varepsilon",
    "ζ": r"\zeta", "η": r"\eta", "θ": r"\theta", "ϑ": r"\vartheta", "ι": r"\iota", "κ": r"\kappa", "ϰ": r"\varkappa",
    "λ": r"\lambda", "μ": r"\mu", "ν": r"\nu", "ξ": r"\xi", "π": r"\pi", "ϖ": r"\varpi", "ρ": r"\rho",
    "ϱ": r"\varrho", "σ": r"\sigma", "ς": r"\varsigma", "τ": r"\tau", "υ": r"\upsilon", "ϕ": r"\phi", "φ": r"\varphi",
    "χ": r"\chi", "ψ": r"\psi", "ω": r"\omega", "ϝ": r"\digamma",
    "Γ": r"\Gamma", "Δ": r"\Delta", "Θ": r"\Theta", "Λ": r"\Lambda", "Ξ": r"\Xi", "Π": r"\Pi", "Σ": r"\Sigma",
    "Υ": r"\Upsilon", "Φ": r"\Phi", "Ψ": r"\Psi", "Ω": r"\Omega",
    "ℓ": r"\ell", "ℏ": r"\hbar", "ı": r"\imath", "ȷ": r"\jmath", "ð": r"\eth", "℧": r"\mho",
    "ℵ": r"\aleph", "ℶ": r"\beth", "ℷ": r"\gimel", "ℸ": r"\daleth", "℘": r"\wp", "ℜ": r"\Re", "ℑ": r"\Im",
}  # fmt: skip
CAPITALS = frozenset("ΓΔΘΛΞΠΣΥΦΨΩ")  # Greek letters that LaTeX sets upright, and fonts change

LEFT = {
    "(": "(", "[": "[", "{": r"\{", "|": r"\lvert", "‖": r"\lVert", "⌊": r"\lfloor", "⌈": r"\lceil", "⟨": r"\langle",
}  # fmt: skip
RIGHT = {
    ")": ")", "]": "]", "}": r"\}", "|": r"\rvert", "‖": r"\rVert", "⌋": r"\rfloor", "⌉": r"\rceil", "⟩": r"\rangle",
}  # fmt: skip
SIGNS: dict[SignKind, dict[str, str]] = {
    "opening": LEFT,
    "closing": RIGHT,
    "relation": {
        "=": "=", "<": "<", ">": ">", ":": ":", "≤": r"\le", "≥": r"\ge", "≠": r"\neq", "≈": r"\approx",
        "≡": r"\equiv", "∼": r"\sim", "≃": r"\simeq", "≅": r"\cong", "∝": r"\propto", "≪": r"\ll", "≫": r"\gg",
        "≺": r"\prec", "≻": r"\succ", "⪯": r"\preceq", "⪰": r"\succeq", "≐": r"\doteq", "≜": r"\triangleq",
        "≔": ":=", "∈": r"\in", "∉": r"\notin", "∋": r"\ni", "⊂": r"\subset", "⊆": r"\subseteq", "⊃": r"\supset",
        "⊇": r"\supseteq", "∣": r"\mid", "∤": r"\nmid", "∥": r"\parallel", "⊢": r"\vdash", "⊨": r"\models",
        "→": r"\to", "←": r"\leftarrow", "↔": r"\leftrightarrow", "↦": r"\mapsto", "⇒": r"\Rightarrow",
        "⇐": r"\Leftarrow", "⇔": r"\Leftrightarrow", "⟶": r"\longrightarrow", "⟼": r"\longmapsto",
        "⟹": r"\implies", "⟺": r"\iff", "↪": r"\hookrightarrow", "↑": r"\uparrow", "↓": r"\downarrow",
    },
    "sum": {"+": "+", "−": "-", "±": r"\pm", "∓": r"\mp", "⊕": r"\oplus", "⊖": r"\ominus"},
    "product": {
        "×": r"\times", "⋅": r"\cdot", "⊙": r"\odot", "⊘": r"\oslash", "⊗": r"\otimes", "∘": r"\circ", "∗": r"\ast",
        "⋄": r"\diamond", "⋆": r"\star", "∙": r"\bullet", "÷": r"\div", "∧": r"\wedge", "∨": r"\vee", "⊻": r"\veebar",
        "∪": r"\cup", "∩": r"\cap", "∖": r"\setminus", "⊔": r"\sqcup", "⊓": r"\sqcap", "⊎": r"\uplus",
        "⊛": r"\circledast", "mod": r"\bmod",
    },
    "prefix": {"¬": r"\lnot", "∀": r"\forall", "∃": r"\exists"},
    "punctuation": {",": ",", ";": ";"},
    "large": {
        "∑": r"\sum", "∏": r"\prod", "∐": r"\coprod", "∫": r"\int", "∬": r"\iint", "∮": r"\oint", "⋃": r"\bigcup",
        "⋂": r"\bigcap", "⨁": r"\bigoplus", "⨂": r"\bigotimes", "⨀": r"\bigodot", "⋀": r"\bigwedge",
        "⋁": r"\bigvee", "⨆": r"\bigsqcup", "max": r"\max", "min": r"\min", "sup": r"\sup", "inf": r"\inf",
        "lim": r"\lim",
    },
    "ordinary": {
        "/": "/", "!": "!", "?": "?", ".": ".", "@": "@", "|": "|", "‖": r"\Vert", "⊤": r"\top", "⊺": r"\intercal",
        "⊥": r"\bot", "∞": r"\infty", "∂": r"\partial", "∇": r"\nabla", "∅": r"\emptyset", "†": r"\dagger",
        "‡": r"\ddagger", "′": r"\prime", "□": r"\square", "■": r"\blacksquare", "△": r"\triangle",
        "∠": r"\angle",
        "♯": r"\sharp", "♭": r"\flat", "♮": r"\natural", "✓": r"\checkmark", "…": r"\ldots", "⋯": r"\cdots",
        "⋮": r"\vdots", "⋱": r"\ddots", "%": r"\%", "#": r"\#", "&": r"\&", "$": r"\$", "_": r"\_", "√": r"\surd",
        "♢": r"\diamondsuit", "♡": r"\heartsuit", "♣": r"\clubsuit", "♠": r"\spadesuit", "§": r"\S",
    },
}  # fmt: skip
SPELLED = {mark: word for marks in SIGNS.values() for mark, word in marks.items()} | {"-": "-", "*": "*"}
ALIKE = {
    r"\leq": "≤", r"\geq": "≥", r"\ne": "≠", r"\lt": "<", r"\gt": ">", r"\coloneqq": "≔", r"\leqslant": "≤",
    r"\geqslant": "≥", r"\rightarrow": "→", r"\gets": "←", r"\owns": "∋", r"\land": "∧", r"\lor": "∨", r"\neg": "¬",
    r"\varnothing": "∅", r"\perp": "⊥", r"\dots": "…", r"\dotsc": "…", r"\dotsb": "⋯",
    r"\colon": ":", r"\vert": "|", r"\|": "‖", r"\Longrightarrow": "⟹",
    r"\Longleftrightarrow": "⟺", r"\smallsetminus": "∖", r"\dag": "†", r"\ddag": "‡", r"\Box": "□",
}  # fmt: skip

FUNCTIONS = frozenset(
    "arccos arcsin arctan arg cos cosh cot coth csc deg det dim exp gcd hom inf ker lg lim liminf limsup ln log max "
    "min Pr sec sin sinh sup tan tanh".split()
)

FONTS: dict[Style, str] = {
    "italic": r"\mathit", "upright": r"\mathrm", "bold": r"\mathbf", "blackboard": r"\mathbb",
    "calligraphic": r"\mathcal", "sans": r"\mathsf", "fraktur": r"\mathfrak", "typewriter": r"\mathtt",
}  # fmt: skip
BOLD = r"\boldsymbol"  # of letters that \mathbf leaves as they are
FONTS_ALIKE: dict[str, Style] = {
    BOLD: "bold", r"\bm": "bold", r"\mathnormal": "italic", r"\mathscr": "calligraphic",
}  # fmt: skip

ACCENTS = {
    "^": r"\hat", "~": r"\tilde", "‾": r"\bar", "˙": r"\dot", "¨": r"\ddot", "→": r"\vec", "ˇ": r"\check",
    "˘": r"\breve", "´": r"\acute", "ˋ": r"\grave", "_": r"\underline",
}  # fmt: skip
WIDE_ACCENTS = {"^": r"\widehat", "~": r"\widetilde", "‾": r"\overline", "→": r"\overrightarrow"}


MATRICES = {
    ("[", "]"): "bmatrix", ("(", ")"): "pmatrix", ("|", "|"): "vmatrix", ("‖", "‖"): "Vmatrix", ("{", "}"): "Bmatrix",
    ("{", ""): "cases", ("", ""): "matrix",
}  # fmt: skip

THIN = 1 / 6
SPACES = {-THIN: r"\!", THIN: r"\,", 2 / 9: r"\:", 5 / 18: r"\;", 1 / 3: r"\ ", 1.0: r"\quad", 2.0: r"\qquad"}

STRUT = r"{\frac{1}{1}}"  # of which the height is taken

_IN_TEXT = {mark: word for mark, word in {**LETTERS, **SPELLED}.items() if not mark.isascii() and word != mark} | {
    raised: f"^{{{digit}}}" for raised, digit in zip("⁰¹²³⁴⁵⁶⁷⁸⁹", "0123456789", strict=True)
}
WORDS = {mark: f"${word}$" for mark, word in _IN_TEXT.items()} | {
    "\\": r"\textbackslash{}", "{": r"\{", "}": r"\}", "^": r"\^{}", "~": r"\~{}", "#": r"\#", "$": r"\$",
    "%": r"\%", "&": r"\&", "_": r"\_", "<": "$<$", ">": "$>$", "|": "$|$",
    "\u00a0": "~",
}  # fmt: skip
"""What stands for a character within ``\text{...}``."""


TYPESET = frozenset("¡¿£§©ÆØßæøıĲĳŁłŒœ–—‘’“”†‡•…")
TEXT_ACCENTS = frozenset("\u0300\u0301\u0302\u0303\u0304\u0306\u0307\u0308\u030a\u030b\u030c\u0327")
"""What every TeX sets among words besides ASCII, and the accents that it sets on a letter of ASCII."""


@dataclass(frozen=True)
class Spelling:
    """How one kind of LaTeX spells what differs between the kinds."""

    signs: Mapping[str, str]
    left: Mapping[str, str]
    right: Mapping[str, str]
    spaces: Mapping[float, str]
    words: Mapping[str, str]
    letters: Mapping[str, str]
    function: str
    large: str
    ends_row: str
    after_mark: str  # what begins a subscript behind a mark, as in ``)_{i}``


PLAIN = Spelling(
    signs=SPELLED, left=LEFT, right=RIGHT, spaces=SPACES, words=WORDS, letters=LETTERS | {"_": r"\_"},
    function=r"\operatorname{%s}", large=r"\operatorname*{%s}", ends_row=r"\\", after_mark="_",
)  # fmt: skip

_LEFT, _RIGHT = {"{": r"\lbrace", "[": r"\lbrack"}, {"}": r"\rbrace", "]": r"\rbrack"}
_LINE = r"\underline{\enspace}"
_OUTSIDE = {
    "<": r"{\lt}", ">": r"{\gt}", "|": r"{\vert}", "*": r"{\ast}", "~": r"{\sim}", "\\": r"\backslash", "_": _LINE,
    **_LEFT, **_RIGHT,
}  # fmt: skip
_WIDE = {"#": "＃", "$": "＄", "%": "％", "&": "＆", "^": "＾", "`": "‘"}  # which neither Markdown nor TeX reads
GITHUB = Spelling(
    signs=SPELLED
    | {"<": r"\lt", ">": r"\gt", "*": r"\ast", "|": r"\vert", "_": _LINE, "≔": r"\mathrel{:=}"}
    | {mark: rf"\text{{{wide}}}" for mark, wide in _WIDE.items()},
    left=LEFT | _LEFT,
    right=RIGHT | _RIGHT,
    spaces={-THIN: r"\negthinspace", THIN: r"\thinspace", 2 / 9: r"\thinspace", 5 / 18: r"\thinspace",
            1 / 3: r"\enspace", 1.0: r"\quad", 2.0: r"\qquad"},
    words={mark: rf"}}{written}\text{{" for mark, written in (_IN_TEXT | _OUTSIDE).items()} | _WIDE | {"\u00a0": " "},
    letters=LETTERS | {"_": _LINE},
    function=r"\mathrm{%s}",
    large=r"\mathop{\mathrm{%s}}\limits",
    ends_row=r"\cr",
    after_mark=" _ ",
)  # fmt: skip
"""For GitHub, whose Markdown eats a backslash before a mark, and reads ``<``, ``*``, ``_`` and ``[`` itself."""

SPELLINGS = {"": PLAIN, "github": GITHUB}
