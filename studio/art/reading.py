"""Reading prompts: motifs, colours, style, layout and size, as far as their words are known."""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Collection
from dataclasses import dataclass, replace

from studio.art import words
from studio.art.colour import Colour, lightness, shift

#: How an edit names what it takes away: `without A`, `replace A with B`, `B instead of A`.
GONE = re.compile(r"\b(?:without|remove|no|replace|instead of|ohne|statt)\b(.+?)(?:\b(?:with|by|durch)\b|$)")
#: A word between the one before and the one after it.
Word = tuple[str, str, str]


@dataclass(frozen=True)
class Reading:
    """The parts of a prompt that were understood. `exact`: its colours were chosen one by one; no other is drawn."""

    motifs: tuple[str, ...]
    ground: Colour | None
    colours: tuple[Colour, ...]
    style: str | None
    layout: str | None
    size: float
    exact: bool = False

    def coloured(self, palette: tuple[Colour, ...]) -> Reading:
        """Return the reading in these colours: the ground, then the inks. A ground alone keeps the inks."""
        ground, *inks = (colour.lower() for colour in palette)
        return replace(
            self, ground=ground, colours=tuple(inks) or self.colours, exact=bool(inks) or self.exact
        )

    def edited(self, prompt: str) -> Reading:
        """Return the reading with what these words add, take away or colour."""
        text = _fold(prompt)
        gone = read_prompt(" ".join(GONE.findall(text))).motifs
        new = read_prompt(GONE.sub(" ", text))
        kept = [motif for motif in (*self.motifs, *new.motifs) if motif not in gone]
        return replace(
            self,
            motifs=tuple(dict.fromkeys(kept)) or self.motifs,
            ground=new.ground or self.ground,
            colours=tuple(dict.fromkeys((*new.colours, *self.colours))),
            style=new.style or self.style,
            layout=new.layout or self.layout,
            size=min(1.5, max(0.6, self.size * new.size)),
        )


def seed_of(prompt: str, seed: int | None = None) -> int:
    """Return a number that is the same for prompts which differ only in case, spaces or the spelling of characters.

    Another `seed` is another drawing of the same prompt; None is the prompt's own.
    """
    plain = " ".join(unicodedata.normalize("NFKC", prompt).casefold().split())
    text = plain if seed is None else f"{plain}\n{seed}"
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8])


def read_prompt(prompt: str) -> Reading:
    """Read a prompt word by word."""
    tokens = re.findall("[a-z]+", _fold(prompt))
    triples = list(zip(["", *tokens], tokens, [*tokens[1:], ""], strict=False))
    motifs = {word[1]: motif for word in triples if (motif := _motif(word[1])) and not _is_colour(word)}
    strong = [motif for token, motif in motifs.items() if not words.WEAK.match(token)]
    ground, colours = _colours(triples)
    layouts = (
        name for name, pattern in words.LAYOUTS.items() if any(re.match(pattern, token) for token in tokens)
    )
    return Reading(
        motifs=tuple(dict.fromkeys(strong or motifs.values())),
        ground=ground or next((words.MOODS[token] for token in tokens if token in words.MOODS), None),
        colours=tuple(dict.fromkeys(colours)),
        style=next((words.STYLES[token] for token in tokens if token in words.STYLES), None),
        layout=next(layouts, None),
        size=next((words.SIZES[stem] for token in tokens if (stem := _stem(token, words.SIZES))), 1.0),
    )


def _fold(text: str) -> str:
    plain = unicodedata.normalize("NFKD", text.casefold())
    return "".join(letter for letter in plain if not unicodedata.combining(letter))


def _stem(token: str, known: Collection[str]) -> str | None:
    """Return the known word of which the token is the plural, or a form with the ending of an adjective."""
    stems = (token.removesuffix(ending) for ending in ("", "en", "er", "es", "em", "e", "n", "s"))
    return next((stem for stem in stems if stem in known), None)


def _motif(token: str) -> str | None:
    return next((name for name, pattern in words.MOTIFS.items() if re.match(pattern, token)), None)


def _is_colour(word: Word) -> bool:
    """Return whether a word is a colour here, though it may be a motif elsewhere: `lemon dots`, `on lavender`."""
    before, token, after = word
    if colour_of(token) is None or (_motif(token) and words.PARTS.match(after)):
        return False
    follows = before in words.ON or before in words.SHADES
    return follows or after in words.PLAIN or _motif(token) is None or _motif(after) is not None


def _colours(triples: list[Word]) -> tuple[Colour | None, list[Colour]]:
    """Return the colour of the ground, where one is named, and the other colours in their order."""
    ground, found, wanted = None, list[Colour](), False
    for word in triples:
        before, token, _ = word
        wanted = wanted or token in words.ON
        if token in words.BACKGROUND and found and ground is None and not wanted:
            ground = found.pop()
        colour = colour_of(token) if _is_colour(word) else None
        if colour is None or (token in words.PLAIN and colour_of(before)):
            continue
        colour = _shaded(colour, _stem(before, words.SHADES))
        if wanted and ground is None:
            ground = colour
        else:
            found.append(colour)
        wanted = False
    return ground, found


def colour_of(token: str) -> Colour | None:
    """Return the colour that a word names: `blue`, `blaue`, `hellblauen`."""
    if stem := _stem(token, words.HEX):
        return words.HEX[stem]
    shade = next((shade for shade in words.SHADES if token.startswith(shade)), None)
    plain = _stem(token.removeprefix(shade), words.HEX) if shade else None
    return _shaded(words.HEX[plain], shade) if plain else None


def _shaded(colour: Colour, shade: str | None) -> Colour:
    share, stronger = words.SHADES[shade] if shade else (0.0, 1.0)
    return shift(colour, share * (1 - lightness(colour) if share > 0 else lightness(colour)), stronger)
