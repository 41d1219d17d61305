"""The reference of what symattn gives, as Markdown, from signatures and docstrings."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterator, Mapping
from typing import Any

import symattn
from symattn import testing


def reference() -> dict[str, str]:
    """Pages of Markdown by their names: all that is public."""
    public = {name: getattr(symattn, name) for name in symattn.__all__}
    modules = {f"sa.{name}": value for name, value in public.items() if inspect.ismodule(value)}
    names = {name: value for name, value in public.items() if not inspect.ismodule(value)}
    found = {"reference": _page("Reference", "What `import symattn as sa` gives.", "sa", names)}
    for called, module in {**modules, "symattn.testing": testing}.items():
        listed = {name: getattr(module, name) for name in module.__all__}
        short = called.rpartition(".")[2]
        found[f"reference_{short}"] = _page(f"Reference: {short}", _first(module), called, listed)
    return found


def _page(title: str, summary: str, prefix: str, names: Mapping[str, Any]) -> str:
    """A section for each module that something comes from, headed by what that is for."""
    homes: dict[str, list[str]] = {}
    for name, value in names.items():
        homes.setdefault(_purpose(value), []).append("\n\n".join(_told(f"{prefix}.{name}", value)))
    sections = (f"## {purpose}\n\n" + "\n\n".join(told) for purpose, told in sorted(homes.items()))
    return f"# {title}\n\n{summary}\n\n" + "\n\n".join(sections) + "\n"


def _purpose(value: Any) -> str:
    """The first sentence on the module that it is from."""
    return _first(sys.modules[value.__module__]).partition(": ")[0].rstrip(".")


def _first(module: Any) -> str:
    return (inspect.getdoc(module) or module.__name__).splitlines()[0]


def _told(name: str, value: Any) -> Iterator[str]:
    yield f"### `{name}{_signature(value)}`"
    yield _markdown(inspect.getdoc(value) or "")
    if inspect.isclass(value) and not issubclass(value, Exception):
        for called, method in vars(value).items():
            if not called.startswith("_") and inspect.isfunction(method) and method.__doc__:
                yield f"#### `{value.__name__}.{called}{_signature(method)}`"
                yield _markdown(inspect.getdoc(method) or "")


def _signature(value: Any) -> str:
    """The parameters with their defaults, without types, which read badly in a line."""
    if not callable(value) or (inspect.isclass(value) and value.__init__ is object.__init__):
        return ""
    try:
        parameters = list(inspect.signature(value).parameters.values())
    except ValueError:  # of a class that is written in C
        return ""
    bare = [p.replace(annotation=inspect.Parameter.empty) for p in parameters if p.name != "self"]
    return str(inspect.Signature(bare))


def _markdown(doc: str) -> str:
    """A docstring with its examples between fences."""
    written, inside = list[str](), False
    for line in doc.splitlines():
        if line.startswith(">>>") and not inside:
            written += ["", "```python"]
            inside = True
        elif inside and not line.strip():
            written.append("```")
            inside = False
        written.append(line)
    return "\n".join([*written, *(["```"] if inside else [])])
