from collections import Counter

from symattn.printing.media.spelling import (
    ACCENTS,
    ALIKE,
    FONTS,
    FONTS_ALIKE,
    LEFT,
    LETTERS,
    RIGHT,
    SIGNS,
    SPACES,
    SPELLED,
    WIDE_ACCENTS,
)

MARKS = [marks for kind, marks in SIGNS.items() if kind not in ("opening", "closing")]  # which are those of fences


def test_a_control_word_means_one_thing():
    words = [word for table in (LETTERS, *MARKS, ACCENTS, WIDE_ACCENTS, FONTS) for word in table.values()]
    words += [*LEFT.values(), *RIGHT.values(), *SPACES.values(), *ALIKE, *FONTS_ALIKE]
    assert not [word for word, number in Counter(words).items() if number > 1]


def test_a_character_is_spelled_in_one_way():
    marks = [mark for table in MARKS for mark in table]
    assert len({*marks, *LETTERS}) == len(marks) + len(LETTERS)
    assert not [mark for mark in ALIKE.values() if mark not in SPELLED]
