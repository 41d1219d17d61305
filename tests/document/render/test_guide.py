"""Pages of Markdown in the looks of derivations, and the reference."""

from __future__ import annotations

import sys

import pytest

import symattn as sa
from symattn.cli import notes
from symattn.cli.build import _GUIDE, documented
from symattn.cli.reference import reference
from symattn.document.render import guide
from symattn.errors import OperandError

_SOURCE = """# A *title*

First, [another page](other.md) and `a < b`.

## To be found

| a | b |
|---|---|
| 1 | `x_1` |

```python
>>> 1 < 2
True
<BLANKLINE>
...
```

See [there](other.md#place).

<b>no HTML</b>
"""


def test_a_page_of_markdown_has_our_looks_and_no_html_of_its_own():
    (page,) = guide.pages({"first": _SOURCE})
    assert (page.name, page.title) == ("first", "A title")
    assert page.summary == 'First, <a href="other.html">another page</a> and <code>a &lt; b</code>.'
    assert '<h2 id="to-be-found">' in page.article
    assert '<div class="scroll">\n<table class="guide">' in page.article
    assert '<pre tabindex="0"><code>&gt;&gt;&gt; 1 &lt; 2\nTrue\n\n...</code></pre>' in page.article
    assert "&lt;b&gt;no HTML" in page.article
    assert '<a href="other.html#place">there</a>' in page.article
    written = guide.written(page, {"Guide": "index.html"})
    assert written.startswith("<!doctype html>")
    assert '<a href="index.html">Guide</a>' in written
    assert '<a href="first.html">A title</a>' in guide.contents([page], {})


def test_without_what_reads_markdown_one_line_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "markdown_it", None)
    with pytest.raises(OperandError, match="pip install 'symattn\\[docs\\]'"):
        guide.pages({"first": _SOURCE})


def test_the_reference_tells_all_that_is_public():
    found = reference()
    assert all(f"### `sa.{name}" in found["reference"] for name in sa.__all__ if name not in ("attention", "plot"))
    assert all(f"### `sa.attention.{name}" in found["reference_attention"] for name in sa.attention.__all__)
    assert "### `sa.softmax(z, axis=-1, where=None, " in found["reference"]
    assert "#### `Derivation.then(expr, relation='=', because='', label='', by=None)`" in found["reference"]
    assert all(page.count("```") % 2 == 0 for page in found.values())


def test_the_guide_leads_to_its_pages():
    files = documented()
    assert {path.stem for path in notes.shipped("docs").glob("*.md")} == {*_GUIDE}
    names = {path.stem for path in notes.shipped("docs").glob("*.md")} | reference().keys() | {"index"}
    assert files.keys() == {f"docs/{name}.html" for name in names}
    assert all(f'href="{name}.html"' in files["docs/index.html"].decode() for name in names)
