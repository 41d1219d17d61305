"""Helpers that generated code carries along: functions by their names, with their source."""

from __future__ import annotations

import ast
import linecache
from collections.abc import Callable, Iterable, Mapping
from typing import Any


class Helpers(dict[str, Callable[..., Any]]):
    """Functions by their names, in the order in which their source stands in a module."""

    def __init__(self, functions: Mapping[str, Callable[..., Any]]) -> None:
        super().__init__(functions)
        self._sources: dict[str, str] = {}
        self._wanted: dict[str, frozenset[str]] = {}

    def text_of(self, names: Iterable[str]) -> list[str]:
        """The source of the helpers and of what they need."""
        wanted = frozenset[str]().union(*map(self.needed, names))
        return [self.source(name) for name in self if name in wanted]

    def source(self, name: str) -> str:
        """From the first line of a function to the next one that begins a statement: ``inspect`` reads every token."""
        if name not in self._sources:
            code, home = self[name].__code__, self[name].__globals__
            lines = linecache.getlines(code.co_filename, home)[code.co_firstlineno - 1 :]
            after = (n for n, line in enumerate(lines) if n and line[0] not in " )\n")
            text = "".join(lines[: next(after, None)]).rstrip()
            self._sources[name] = text.replace("  # noqa: F821", "") + "\n"
        return self._sources[name]

    def needed(self, name: str) -> frozenset[str]:
        """A helper and those that it calls: the names in its source that are no variables of its own."""
        if name not in self._wanted:
            met = {node.id for node in ast.walk(ast.parse(self.source(name))) if isinstance(node, ast.Name)}
            called = met & self.keys() - set(self[name].__code__.co_varnames)
            self._wanted[name] = frozenset({name}).union(*map(self.needed, called))
        return self._wanted[name]
