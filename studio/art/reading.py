"""What a prompt says: its words, sorted into colours, moods, subjects, layout, scale, style and texture."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from studio.art import words
from studio.art.colour import Colour, shift

#: A colour belongs to the next subject only when at most this many words lie between.
REACH = 3
WORD = re.compile(r"[a-z0-9]+")


@dataclass(frozen=True)
class Mention:
    """A subject, and the colours that were named just before it."""

    subject: str
    colours: tuple[Colour, ...] = ()


@dataclass
class Reading:
    """Everything that was understood. Empty fields are for the dice."""

    ground: Colour | None = None
    colours: list[Colour] = field(default_factory=list)
    moods: list[str] = field(default_factory=list)
    mentions: list[Mention] = field(default_factory=list)
    layout: str | None = None
    scale: float = 1.0
    style: str | None = None
    texture: str | None = None


def read_prompt(prompt: str) -> Reading:
    """Read a prompt word by word, longest phrases first."""
    return _Reader([singular(word) for word in WORD.findall(prompt.lower())]).read()


def singular(word: str) -> str:
    """The form in which the vocabulary knows a word; words that it knows as they are stay."""
    if _known(word) or len(word) < 4:
        return word
    for ending, instead in (("ies", "y"), ("es", ""), ("s", ""), ("ves", "f")):
        stem = word[: -len(ending)] + instead
        if word.endswith(ending) and _known(stem):
            return f"{stem}s" if stem in words.DOUBTFUL else stem
    return word


def _known(word: str) -> bool:
    tables: tuple[Mapping[str, object], ...] = (
        words.SUBJECTS,
        words.COLOURS,
        words.MOODS,
        words.SCALES,
        words.LAYOUTS,
    )
    return any(word in table for table in tables)


class _Reader:
    """One pass over the words. Colours wait until a subject, or the end, claims them."""

    def __init__(self, tokens: list[str]) -> None:
        self._tokens = tokens
        self._reading = Reading()
        self._waiting: list[tuple[int, Colour]] = []
        self._for_ground = False

    def read(self) -> Reading:
        place = 0
        while place < len(self._tokens):
            place += self._take(place)
        return self._reading

    def _take(self, place: int) -> int:
        """Understand the words at this place; how many there were."""
        pair = " ".join(self._tokens[place : place + 2])
        if pair in words.OTHER_THINGS:
            return 2
        if pair in words.SUBJECTS or pair in words.LAYOUTS or pair in words.MOODS:
            self._word(place, pair)
            return 2
        change = words.COLOUR_CHANGES.get(self._tokens[place])
        after = self._tokens[place + 1] if place + 1 < len(self._tokens) else ""
        if change is not None and after in words.COLOURS and not self._is_subject(place + 1):
            self._colour(place, shift(words.COLOURS[after], lighter=change[0], chroma=change[1]))
            return 1 + self._colour_words(place + 1)
        if self._tokens[place] in words.COLOURS and self._colour_words(place) == 2:
            self._colour(place, words.COLOURS[self._tokens[place]])
            return 2
        self._word(place, self._tokens[place])
        return 1

    def _colour_words(self, place: int) -> int:
        """How many words name the colour at this place: `sky`, or `sky blue`."""
        return 1 + (place + 1 < len(self._tokens) and self._tokens[place + 1] in words.PLAIN_COLOURS)

    def _word(self, place: int, word: str) -> None:
        reading = self._reading
        if word in words.GROUND_WORDS:
            self._ground_word(word)
        elif word in words.COLOURS and not self._is_subject(place):
            self._colour(place, words.COLOURS[word])
        elif (word in words.SUBJECTS or word.rstrip("s") in words.DOUBTFUL) and not self._is_mood(word):
            self._subject(place, words.SUBJECTS.get(word) or words.SUBJECTS[word.rstrip("s")], word)
        if word in words.MOODS:
            reading.moods.append(word)
        reading.layout = words.LAYOUTS.get(word, reading.layout)
        reading.style = words.STYLES.get(word, reading.style)
        reading.texture = words.TEXTURES.get(word, reading.texture)
        reading.scale *= words.SCALES.get(word, 1.0)

    def _ground_word(self, word: str) -> None:
        """`on navy` says the colour after it, `navy background` the one before."""
        if word in ("background", "ground") and self._waiting and self._reading.ground is None:
            _, self._reading.ground = self._waiting.pop()
            self._reading.colours.remove(self._reading.ground)
        else:
            self._for_ground = True

    def _colour(self, place: int, colour: Colour) -> None:
        if self._for_ground and self._reading.ground is None:
            self._reading.ground = colour
        else:
            self._reading.colours.append(colour)
            self._waiting.append((place, colour))
        self._for_ground = False

    def _subject(self, place: int, subject: str, word: str) -> None:
        near = tuple(colour for at, colour in self._waiting if place - at <= REACH + len(self._waiting))
        if not near and word in words.OWN_COLOURS:
            near = (words.OWN_COLOURS[word],)
        self._waiting.clear()
        if subject not in {mention.subject for mention in self._reading.mentions}:
            self._reading.mentions.append(Mention(subject, near))

    def _is_subject(self, place: int) -> bool:
        """Whether a word that is also a colour means the thing here: `rose peonies` are rose, `a rose` is a rose."""
        word = self._tokens[place]
        meaning = words.DOUBTFUL.get(word)
        if meaning is None or word not in words.SUBJECTS:
            return False
        after = self._tokens[place + 1] if place + 1 < len(self._tokens) else ""
        if after in words.PLANT_PARTS:
            return True
        if (
            self._for_ground
            or after in words.SUBJECTS
            or after in words.GROUND_WORDS - {"on", "over", "against"}
        ):
            return False
        return meaning == "subject"

    def _is_mood(self, word: str) -> bool:
        return word in words.MOODS and word not in ("meadow", "sea", "deco", "rainbow", "bauhaus")
