from collections import Counter

from symattn.printing.media.spelling import (
    ACCENTS,
    ALIKE,
    BRACES,
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


def test_a_control_word_means_one_thing():
    words = [word for table in (LETTERS, *SIGNS.values(), ACCENTS, WIDE_ACCENTS, FONTS) for word in table.values()]
    words += [*LEFT.values(), *RIGHT.values(), *SPACES.values(), *ALIKE, *FONTS_ALIKE, *BRACES]
    assert not [word for word, number in Counter(words).items() if number > 1]


def test_a_character_is_spelled_in_one_way():
    marks = [mark for table in SIGNS.values() for mark in table]
    assert len({*marks, *LETTERS}) == len(marks) + len(LETTERS)
    assert not [mark for mark in ALIKE.values() if mark not in SPELLED]
