"""Derivations of one's own: what ``derive``, ``verify`` and ``build`` write, say, and leave behind."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
import sys
import time
from pathlib import Path
from urllib.parse import unquote, urlsplit
from xml.etree import ElementTree

import pytest

from symattn.cli import main, writing
from symattn.document.render.site import Entry, index

FINE = """
import symattn as sa
print("a word by the file")
z = sa.tensor("z", "n")
L = sa.let("L", sa.logsumexp(z))
def derivation():
    return sa.Derivation("A sum, $L$", given={z: "scores"}, summary="Of *all* scores.").extend(L, sa.gradient(L, z))
"""
_START = "import symattn as sa\nQ = sa.tensor('Q', 'T d')\ndef derivation():\n    return sa.Derivation('x', given=[Q])"
WRONG = {  # by the file: what is wrong with it, and what is said of that, after its path
    "nothing": ("x = 1", " has no function derivation() that returns a sa.Derivation"),
    "number": ("derivation = 5", ": derivation is 5, and not a function: write def derivation(): return ..."),
    "other": ("def derivation(): return 3", ": derivation() returns 3, and not a sa.Derivation"),
    "broken": ("def derivation():\n    return 1 / 0", ", line 2: ZeroDivisionError: division by zero"),
    "syntax": ("x = 1\ndef derivation(:", ", line 2: SyntaxError: invalid syntax"),
    "leaves": ("import sys\nsys.exit(3)", ", line 2: SystemExit: 3"),
    "unread": (_START + ".say('Is $Q +^$ so?')", ", line 4: the paragraph has a formula that does not read, $Q +^$: ^"),
    "unknown": (_START + ".say('Is $R$ so?')", ": the paragraph speaks of 'R', in $R$, which is no name of the"),
    "false": (
        _START + ".extend(sa.let('Y', Q @ Q.T)).then(Q @ Q.T + 1)",
        ": step Y (line 2) is false: Q @ Q.T = Q @ Q.T + 1; T = 1, d = 1; Q = [[0]]; entry [0, 0]: left is 0, right is",
    ),
}


@pytest.fixture
def own(tmp_path: Path) -> Path:
    folder = tmp_path / "own"
    folder.mkdir()
    (folder / "a_sum.py").write_text(FINE)
    return folder


def left(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


@pytest.mark.parametrize("name", WRONG)
def test_what_is_wrong_with_a_file_is_said_in_one_line(name, tmp_path, capsys):
    file, out = tmp_path / f"{name}.py", tmp_path / "out"
    file.write_text(WRONG[name][0])
    assert main(["derive", str(file), "--to", "html", "-o", str(out / "page.html")]) == 2  # no such folder
    out.mkdir()
    capsys.readouterr()
    assert main(["derive", str(file), "--to", "html", "-o", str(out / "page.html")]) == 2
    printed = capsys.readouterr()
    assert printed.err.startswith(f"symattn: error: {file}{WRONG[name][1]}")
    assert (printed.out, printed.err.count("\n"), left(out)) == ("", 1, [])


def test_a_page_is_written_in_every_format_and_printed_alone(own, tmp_path, capsys):
    file = str(own / "a_sum.py")
    for to, begins in {
        "text": "A sum, L\n",
        "md": "# A sum, $L$",
        "latex": r"\sect",
        "json": "{",
        "html": "<!doc",
    }.items():
        assert main(["derive", file, "--to", to]) == 0
        printed = capsys.readouterr()
        assert printed.out.startswith(begins)
        assert set(printed.err.splitlines()) == {"a word by the file"}
        assert main(["derive", file, "--to", to, "-o", str(tmp_path / "page")]) == 0
        assert (tmp_path / "page").read_text().rstrip() == printed.out.rstrip()
        assert left(tmp_path) == ["own", "page"]


def test_the_name_of_a_file_says_its_format_and_no_other_is_written_into_it(own, tmp_path, capsys):
    file = str(own / "a_sum.py")
    for ending, begins in {"html": "<!doc", "MD": "# A sum", "tex": r"\sect", "json": "{", "txt": "A sum, L"}.items():
        assert main(["derive", file, "-o", str(tmp_path / f"page.{ending}")]) == 0
        assert (tmp_path / f"page.{ending}").read_text().startswith(begins)
    for to, name, of in (("pdf", "a.html", "html"), ("text", "a.pdf", "pdf"), ("md", "a.tex", "latex")):
        assert main(["derive", file, "--to", to, "-o", str(tmp_path / name)]) == 2
        message = f"{name} is the name of a file for --to {of}, not for --to {to}: leave out one of them\n"
        assert capsys.readouterr().err.endswith(message)
        assert not (tmp_path / name).exists()


def test_what_is_written_takes_its_place_as_a_whole_or_not_at_all(own, tmp_path, capsys):
    (tmp_path / "folder").mkdir()
    assert main(["derive", str(own / "a_sum.py"), "-o", str(tmp_path / "folder")]) == 2
    said = f"{tmp_path / 'folder'} cannot be written: that is a folder: name a file in it"
    assert capsys.readouterr().err.splitlines()[-1] == f"symattn: error: {said}"
    (tmp_path / "link").symlink_to(tmp_path / "page")
    assert main(["derive", str(own / "a_sum.py"), "-o", str(tmp_path / "link")]) == 0
    assert main(["derive", str(own / "a_sum.py"), "-o", os.devnull]) == 0
    assert left(tmp_path) == ["folder", "link", "own", "page"]
    assert not Path(os.devnull).is_file()


def test_a_site_has_what_is_right_and_says_what_is_left_out(own, tmp_path, capsys, monkeypatch):
    (own / "broken.py").write_text(WRONG["broken"][0])
    (own / "_ours.py").write_text("raise ValueError('not looked at')")
    monkeypatch.setenv("PATH", "")  # no TeX
    site = tmp_path / "new" / "site"
    assert main(["build", str(own), "-o", str(site)]) == 1
    printed = capsys.readouterr()
    assert printed.out == f"1 of 2 derivations are in {site / 'index.html'}\n"
    said = [line for line in printed.err.splitlines() if line.startswith("symattn: ")]
    assert said == [f"symattn: broken is left out: {own / 'broken.py'}, line 2: ZeroDivisionError: division by zero"]
    assert left(site) == [*(f"a-sum.{ending}" for ending in ("html", "json", "md", "tex", "txt")), "index.html"]
    page = (site / "index.html").read_text()
    assert all(f'href="{name}"' in page for name in left(site) if name != "index.html")
    assert "broken" not in page


def test_a_site_is_not_begun_where_it_cannot_be(own, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(writing, "checked", None)  # nothing is run
    file = str(own / "a_sum.py")
    assert main(["build", file, "-o", file]) == 2
    said = f"{file} cannot be written: {file} is no folder: choose another place"
    assert capsys.readouterr().err == f"symattn: error: {said}\n"
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    assert main(["build", file, "-o", str(tmp_path / "site")]) == 2
    assert "it is closed to you: choose another place" in capsys.readouterr().err
    (own / "sub").mkdir()
    assert main(["build", str(own / "sub"), "-o", str(tmp_path)]) == 2
    assert "there is no derivation in the folder" in capsys.readouterr().err
    (own / "sub" / "a_sum.py").write_text(FINE)
    assert main(["build", str(own), str(own / "sub"), "-o", str(tmp_path)]) == 2
    assert "are both called 'a-sum': rename one of them" in capsys.readouterr().err
    assert main(["derive", str(own)]) == 2
    assert "is a folder: name one of its files" in capsys.readouterr().err


def test_a_site_leads_to_files_of_any_name():
    names = ["a#b", "a b", "100%", "ü∇", "q?x=1", "c:d", "x&y<z>", "it's", "a%20b"]
    entries = [Entry(name, (name,), (), (), (f"{name}.html", f"{name}.md")) for name in names]
    _, start, rest = index(entries).partition("<article")
    article = ElementTree.fromstring(start + rest[: rest.index("</main>")])
    links = [unquote(urlsplit(link.get("href", "")).path) for link in article.iter("a")]
    assert {*links} == {f"{name}.{ending}" for name in names for ending in ("html", "md")}


@pytest.mark.parametrize(
    ("first", "second", "message"),
    [
        ("A", "a", "A and a are one file where case tells nothing apart: rename one of them"),
        ("\u00fc", "u\u0308", "are one file where case tells nothing apart"),
        ("Index", "a", "a derivation of a site is not called index"),
    ],
)
def test_names_that_are_one_file_elsewhere_are_refused(first, second, message, tmp_path, capsys):
    for name in (first, second):
        (tmp_path / f"{name}.py").write_text(FINE)
    assert main(["build", str(tmp_path), "-o", str(tmp_path / "site")]) == 2
    assert message in capsys.readouterr().err
    assert not (tmp_path / "site").exists()


def test_a_page_says_its_command_as_a_shell_reads_it(own, capsys):
    (own / "two words.py").write_text(FINE)
    assert main(["derive", str(own / "two words.py")]) == 0
    assert f"symattn verify '{own / 'two words.py'}'" in " ".join(capsys.readouterr().out.split("\n    "))


def test_verify_tells_each_step_of_what_is_named(own, capsys):
    assert main(["verify", str(own / "a_sum.py")]) == 0
    assert capsys.readouterr().out == "a-sum: L: by definition\na-sum: dz: proved\n"


@pytest.mark.slow
def test_a_site_that_is_stopped_leaves_nothing_behind(own, tmp_path):
    """By ctrl-C on a terminal, which reaches all processes; the bar is there by then."""
    (own / "b_sum.py").write_text(FINE)
    (own / "long.py").write_text(f"import time\ntime.sleep(60)\n{FINE}")
    reads, terminal = pty.openpty()
    command = [sys.executable, "-m", "symattn.cli", "build", str(own), "-o", str(tmp_path / "site")]
    with subprocess.Popen(command, stderr=terminal, stdout=subprocess.PIPE, start_new_session=True) as run:
        os.close(terminal)
        said = b""
        while b"2/3 " not in said:
            said += os.read(reads, 1000)
        start = time.monotonic()
        os.killpg(run.pid, signal.SIGINT)
        assert run.wait(timeout=20) == 130
    assert time.monotonic() - start < 10
    assert "█" * 16 + "░" * 8 in said.decode()
    assert os.read(reads, 1000).endswith(b"symattn: stopped\r\n")
    assert left(tmp_path) == ["own"]
