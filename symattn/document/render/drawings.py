"""SVG as part of a page: neither a script nor anything that is loaded from elsewhere comes in with it."""

from __future__ import annotations

from xml.etree import ElementTree

from ...errors import OperandError

_REFUSED = frozenset(("script", "foreignObject", "metadata", "iframe", "a", "animate", "set"))
_OF_NAMES = ("aria-label", "aria-labelledby", "role")


def inline_svg(svg: str, alternative: str, prefix: str) -> str:
    """The drawing as one element that is announced by its alternative text, its names made its own by the prefix.

    One that does not take the colour of the text around it is made for white paper, and has it: class "paper".
    """
    root = _parsed(svg)
    for parent in list(root.iter()):
        for kid in list(parent):
            if _is_refused(kid):
                parent.remove(kid)
    for element in root.iter():
        element.tag = _bare(element.tag)
        given = ((_bare(key), value) for key, value in element.attrib.items())
        element.attrib = {key: _own(key, value, prefix) for key, value in given if _is_safe(key, value)}
    for name in _OF_NAMES:
        root.attrib.pop(name, None)
    root.attrib |= {"role": "img", "aria-label": alternative} | ({} if "currentColor" in svg else {"class": "paper"})
    root.tail = None
    return ElementTree.tostring(root, encoding="unicode")


def _parsed(svg: str) -> ElementTree.Element:
    try:
        root = ElementTree.fromstring(svg)
    except ElementTree.ParseError as error:
        raise OperandError(f"a figure takes a drawing in SVG, and this is none: {error}") from None
    if _bare(root.tag) != "svg":
        raise OperandError(f"a figure takes a drawing in SVG, and this is <{_bare(root.tag)}>")
    return root


def _own(name: str, value: str, prefix: str) -> str:
    """The value of an attribute, in which names get the prefix, since other drawings of a page may have the same."""
    if name == "id":
        return prefix + value
    if name == "href" and value.startswith("#"):
        return f"#{prefix}{value[1:]}"
    return value.replace("url(#", f"url(#{prefix}")


def _bare(name: object) -> str:
    """A name without its namespace, which HTML gives by itself; what is no element has none."""
    return name.rpartition("}")[2] if isinstance(name, str) else "metadata"


def _is_safe(name: str, value: str) -> bool:
    if name == "href":
        return value.startswith(("#", "data:image/"))
    return not name.lower().startswith("on") and _loads_nothing(value)


def _is_refused(element: ElementTree.Element) -> bool:
    tag = _bare(element.tag)
    return tag in _REFUSED or (tag == "style" and not _loads_nothing(element.text or ""))


def _loads_nothing(style: str) -> bool:
    """Whether a style names nothing outside; what it writes in escapes may be anything."""
    plain = style.lower()
    return "@import" not in plain and "\\" not in plain and plain.count("url(") == plain.count("url(#")
