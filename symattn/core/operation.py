"""The record of one operation: what it means, and everything that is claimed about it.

The *entry formula* is the meaning. Shape, derivatives, NumPy and notation are claims about it, and the tests hold
each of them against it. Everything else in symattn walks these records.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from .boxes import Box
from .late import late
from .node import Tensor, intern
from .sizes import Shape

Index = tuple[Any, ...]


class ShapeRule(Protocol):
    """The shape of the result, of ``*inputs`` and ``**params``; raises ShapeError."""

    def __call__(self, *args: Any, **kwargs: Any) -> Shape: ...


class Entry(Protocol):
    """One entry of the result as a SymPy scalar, where ``read(k, index)`` is an entry of input k: the definition."""

    def __call__(self, read: Callable[[int, Index], Any], index: Index, node: Tensor, /) -> Any: ...


class Pullback(Protocol):
    """One cotangent an input, of ``*inputs`` and ``**params``; None where the derivative is zero wherever it exists.

    It is written in symattn's own operations. Extra leading axes of the cotangent are a batch, so axes are counted from
    the end. Of an operation with several results, it takes those cotangents and results that matter, by their ``part``,
    and ``wanted`` says of which inputs cotangents are.
    """

    def __call__(self, cotangent: Any, result: Any, /, *args: Any, **kwargs: Any) -> Sequence[Tensor | None]: ...


class Pushforward(Protocol):
    """The tangent of the result, of ``*inputs`` and ``**params``; a tangent is None where its input does not move."""

    def __call__(self, tangents: Any, result: Tensor, /, *args: Any, **kwargs: Any) -> Tensor: ...


class NumPyText(Protocol):
    """A NumPy expression; operands come as text that may be put between parentheses."""

    def __call__(self, code: Any, node: Tensor, /, *operands: Any) -> str: ...


class Notation(Protocol):
    """How it is written, and how tightly that binds (see ``ops/notation.py``)."""

    def __call__(self, printer: Any, node: Any, /) -> tuple[Box, int]: ...


class NotationFromEnd(Protocol):
    """How the result is written in the other order of its first axis, where that has a notation of its own."""

    def __call__(self, printer: Any, node: Any, /) -> tuple[Box, int] | None: ...


class Equations(Protocol):
    """Rows that define the values of loops that some expressions show, by names which the printer then knows."""

    def __call__(self, printer: Any, shown: Sequence[Tensor], /) -> Sequence[Any]: ...


class Build(Protocol):
    """The light tidying at construction (units, zeros, double transposes): the tensor, made by ``node`` in the end."""

    def __call__(self, *args: Any, **kwargs: Any) -> Tensor: ...


@dataclass(frozen=True, eq=False)
class Operation:
    """One operation, declared once, whole.

    ``reason`` is the sentence that a person says when using its derivative; ``called`` is what people call the result
    where they do not write the name of the record: "the product" for ``a * b``.
    """

    name: str
    shape: ShapeRule
    entry: Entry
    vjp: Pullback | None
    jvp: Pushforward | None
    numpy: NumPyText
    notation: Notation
    reason: str
    called: str = ""
    letters: tuple[str, ...] = ()  # what the field calls the result, then the inputs: softmax gives P from Z
    kind: str | Callable[..., str] = "real"  # of the entries: "real", "binary", "integer", or "inputs": as they are
    masks: tuple[int, ...] = ()  # which inputs are read as True or False
    places: tuple[int, ...] = ()  # which inputs are read as indices
    # An input that may hold -oo is "refused", "kept" or "absorbed"; or a function says whether the result may hold it
    minus_infinity: str | Callable[..., bool] = "refused"
    is_view: bool = False  # whether NumPy gives it as another view of the memory of its first input
    # The parameters for a result of another shape, where they hold shapes; those of other operations stay as they are
    resized: Callable[[Tensor, Shape], dict[str, Any]] | None = None
    part: str = ""  # the parameter that says which of several results of one computation it is
    from_end: NotationFromEnd | None = None
    equations: Equations | None = None  # of what has no notation but by these
    build: Build | None = None
    broadcasts: bool = False  # whether it works entry by entry on several inputs, which broadcast
    spreads: bool = False  # whether it moves entries in a way for which matrix notation has no sign
    stays_whole: bool = False  # whether integers give integers that are no larger
    bounded: str = ""  # why its entries lie between bounds, in a sentence of proofs
    nonsmooth: str = ""  # where the derivative does not exist, and what is taken there
    rows: str = ""  # "probabilities": not negative, each row of sum 1 unless masked; or "positive probabilities"
    range: tuple[Any, Any] | None = None  # two numbers that all entries lie between
    monotone: str = ""  # "increasing" or "decreasing", of a function entry by entry; or "strictly" so
    assumed: set[str] = field(default_factory=set)  # which of these three are stated and not proved

    def __call__(self, *inputs: Tensor, **params: Any) -> Tensor:
        return self.build(*inputs, **params) if self.build else intern(self, inputs, params)

    def node(self, *inputs: Tensor, **params: Any) -> Tensor:
        """The operation on the inputs as it stands."""
        return intern(self, inputs, params)

    @property
    def title(self) -> str:
        """What the operation is called in messages."""
        return self.called or self.name

    @property
    def assumptions(self) -> dict[str, str]:
        """What is stated of the entries and not proved: ``rows``, ``range`` and ``monotone`` in words."""
        said = {"rows": f"the rows of {self.name} are {self.rows}", "monotone": f"{self.name} is {self.monotone}"}
        if self.range is not None:
            said["range"] = f"the entries of {self.name} lie between {self.range[0]} and {self.range[1]}"
        return {what: f"{said[what]}, as stated" for what in sorted(self.assumed, reverse=True)}

    def __repr__(self) -> str:
        return f"<operation {self.name}>"

    def __copy__(self, *memo: Any) -> Operation:
        return self

    __deepcopy__ = __copy__

    def __reduce__(self) -> Any:
        return late("record"), (self.name,)  # by name: records hold functions
