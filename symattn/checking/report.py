"""What was found in documents, as text, JSON and SARIF."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from ..core.arguments import one_of
from ..errors import OperandError, described
from .documents import Document
from .findings import DECIDED, WRONG, Finding
from .lints import lints
from .statements import Notes

SUFFIXES = (".md", ".tex", ".txt", ".ipynb")
_QUIET = ("mention", "declared", "defined")  # of which nothing has to be said
_LEVELS = {"refuted": "error", "shape": "error", "warning": "warning"}


@dataclass(frozen=True)
class NotesReport:
    """The findings of one document, in the order of its lines."""

    findings: tuple[Finding, ...]
    name: str = ""

    @property
    def wrong(self) -> tuple[Finding, ...]:
        """What is false, and what has shapes that do not fit."""
        return tuple(finding for finding in self.findings if finding.status in WRONG)

    @property
    def warnings(self) -> tuple[Finding, ...]:
        return tuple(finding for finding in self.findings if finding.status == "warning")

    @property
    def skipped(self) -> tuple[Finding, ...]:
        return tuple(finding for finding in self.findings if finding.status == "skipped")

    @property
    def exit_code(self) -> int:
        """0 if nothing is wrong, 1 if something is, 3 if nothing could be decided."""
        if self.wrong or self.warnings:
            return 1
        return 0 if any(finding.status in DECIDED for finding in self.findings) else 3

    def __bool__(self) -> bool:
        return self.exit_code == 0

    def __str__(self) -> str:
        return "\n".join([*self._lines(), self.summary()])

    __repr__ = __str__

    def _lines(self) -> Iterator[str]:
        for finding in self.findings:
            if finding.status in _QUIET:
                continue
            rule = f"[{finding.rule}]" if finding.rule else ""
            said = f" {finding.message}" if finding.message else ""
            yield f"{self.name or 'text'}:{finding.line}:{finding.column} {finding.status}{rule}: {finding.statement}"
            if said:
                yield from (f"    {line}" for line in said.strip().splitlines())
            yield from (f"    {_meant(suggestion)}" for suggestion in finding.suggestions)

    def summary(self) -> str:
        """How many of each; nothing is left out of the count."""
        count = Counter(finding.status for finding in self.findings)
        checked = sum(count[status] for status in (*DECIDED, "unknown"))
        told = ", ".join(f"{n} {status}" for status, n in sorted(count.items()))
        return f"{checked} checked, {len(self.wrong)} wrong, {len(self.warnings)} warned of ({told or 'no formulas'})"

    def json(self) -> dict[str, Any]:
        """Everything, for programs."""
        found = [finding.as_json() for finding in self.findings]
        return {"version": 1, "file": self.name, "findings": found, "summary": self.summary()}

    def sarif(self) -> dict[str, Any]:
        """What is wrong or warned of, in the format that code hosts show beside lines."""
        results = [
            {
                "ruleId": finding.rule or finding.status,
                "level": _LEVELS[finding.status],
                "message": {"text": " ".join([finding.message, *map(_meant, finding.suggestions)])},
                "locations": [{"physicalLocation": self._location(finding)}],
            }
            for finding in self.findings
            if finding.status in _LEVELS
        ]
        return {"tool": {"driver": {"name": "symattn", "rules": []}}, "results": results}

    def _location(self, finding: Finding) -> dict[str, Any]:
        region = {"startLine": finding.line, "startColumn": finding.column}
        return {"artifactLocation": {"uri": self.name}, "region": region}


def _meant(suggestion: str) -> str:
    return f"Meant perhaps: {suggestion}."


def sarif(reports: list[NotesReport]) -> dict[str, Any]:
    """One SARIF file of several reports."""
    schema = "https://json.schemastore.org/sarif-2.1.0.json"
    return {"version": "2.1.0", "$schema": schema, "runs": [report.sarif() for report in reports]}


def check_notes(text: str, suffix: str = ".md", name: str = "") -> NotesReport:
    r"""Whether the mathematics of a document is right: each formula in Markdown, LaTeX, plain text or a notebook.

    Statements are read in order, by what was declared (``Q \in \mathbb{R}^{T \times d}``) and defined before them, and
    by what a comment declares, ``<!-- symattn: Q: T d; K: S d -->``. Claims are proved, refuted with a counterexample
    and, where one change makes them true, with what was meant, or left unknown; shapes that do not fit are told with
    where they were declared; what is not read is counted, with the reason. Lints look for what is true and still a
    mistake: the width of something else under a root, a mask as a factor, a projection that is never used.
    ``suffix`` is that of the file: ".md", ".tex", ".txt" or ".ipynb". Raises OperandError for what is no text, and for
    a notebook that is none.

    >>> import symattn as sa
    >>> print(sa.check_notes(r'''Let $A \in \mathbb{R}^{n \times n}$ and $B \in \mathbb{R}^{n \times n}$.
    ... Then $(A B)^\top = A^\top B^\top$.'''))
    text:2:7 refuted: (A B)^\top = A^\top B^\top
        n = ...
        Meant perhaps: (A B)^{\top} = B^{\top} A^{\top}.
    1 checked, 1 wrong, 0 warned of (2 declared, 1 refuted)
    """
    if not isinstance(text, str) or not isinstance(name, str):
        raise OperandError(f"check_notes takes the text of a document, not {described(text if name == '' else name)}")
    one_of("check_notes", "suffix", suffix, *SUFFIXES)
    notes = Notes(Document(text, suffix))
    found = [*notes.findings(), *lints(notes)]
    return NotesReport(tuple(sorted(found, key=lambda finding: (finding.line, finding.column))), name)
