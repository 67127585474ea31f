"""The meanings of words in prompts, in English and German; all are in small letters and without accents."""

from __future__ import annotations

import re


def _pairs(text: str) -> dict[str, str]:
    return dict(re.findall(r"(\w+)\s+(\w+)", text))


COLOURS = _pairs("""
white fbfaf6 ivory f7f1e1 cream f5ecd7 linen ece3d4 beige e2d3b9 sand dcc6a0 oat e4d8c3 stone c9c0b2 taupe a3927f tan
c79f6f caramel b9773c brown 7a5236 chocolate 53341f rust b1502a terracotta c8694a clay b8755a brick 9c3f2f copper
b5703f gold cf9f3b golden d6a63f ochre c88d2b mustard d8a92d amber e39a22 honey e3ab45 yellow f3cd45 butter f8e3a0
lemon f5da4e lime a6c843 olive 7b7a3a moss 6d7a3c sage a3b18a pistachio b9cd97 mint b4dcc4 green 4f8a55 emerald 12805c
jade 3f9c7c forest 2b533d teal 1f7a7a petrol 15515c turquoise 3bb7b2 aqua 83d0d0 sky 9ccbe6 azure 3f8fd4 blue 3c6ea8
denim 4b6a8c cobalt 1f4fa8 royal 2a4bb0 navy 1d2c4d indigo 303a78 periwinkle 8d97d8 lilac c3aedb lavender b3a2d6
violet 7a55a8 purple 6b3f8c plum 6a2f54 mauve b58aa5 magenta c2307c fuchsia d23b8b raspberry b4264f pink eca3b4 rose
d98091 blush f0cfc6 peach f6bd96 apricot f3ac6d salmon ef9078 coral ee7560 orange e8823a red c8362f crimson a91f35
cherry b1203a burgundy 6c1f32 wine 6a2238 grey 9a9a98 gray 9a9a98 silver c3c7ca slate 56626e charcoal 36393d black
1b1b1d
""")
#: The same in German.
GERMAN = _pairs("""
weiss white creme cream elfenbein ivory grau grey silber silver silbern silver schwarz black braun brown rost rust
gelb yellow senf mustard senfgelb mustard ocker ochre rot red rosa pink koralle coral altrosa rose grun green salbei
sage salbeigrun sage flieder lilac lila purple blau blue turkis turquoise marine navy nachtblau navy himmelblau sky
kupfer copper weinrot wine
""")
#: Colours by their names in both languages.
HEX = {name: f"#{code}" for name, code in COLOURS.items()}
HEX |= {german: HEX[english] for german, english in GERMAN.items()}
#: Words that add nothing after another colour: `sky blue`, `forest green`.
PLAIN = frozenset(re.findall(r"\w+", "blue green red pink yellow orange purple brown grey gray white black"))

#: How a word changes the colour after it: the share of the way to white (negative: to black), and the saturation.
SHADES = {
    "pale": (0.45, 0.9), "light": (0.4, 0.8), "soft": (0.25, 0.75), "dusty": (0.05, 0.6), "pastel": (0.55, 0.65),
    "dark": (-0.3, 0.9), "deep": (-0.22, 1.05), "bright": (0.08, 1.35), "muted": (0.0, 0.6), "warm": (0.03, 1.1),
    "burnt": (-0.15, 0.95), "hell": (0.4, 0.8), "dunkel": (-0.3, 0.9), "zart": (0.45, 0.9), "pastell": (0.55, 0.65),
}  # fmt: skip
#: The ground that goes with a mood, where the prompt names none.
MOODS = {
    "misty": "#e6eceb", "nebel": "#e6eceb", "dawn": "#f6eae2", "moody": "#20302b", "midnight": "#161f3a",
    "night": "#1a2340", "nacht": "#1a2340", "autumn": "#f4e8d3", "vintage": "#f3e9d6", "winter": "#eef2f4",
}  # fmt: skip
#: Words before a ground, and after one.
ON = frozenset(("on", "against", "over", "auf", "vor"))
BACKGROUND = frozenset(("background", "ground", "hintergrund", "grund"))

#: Motifs by the words for them. The first part of a motif's name is the family that draws it.
MOTIFS = {
    "waterside heron": ".*heron|egret|stork|ibis|flamingo|cranes?$|.*reiher|kranich|storch",
    "waterside reeds": "reed|bulrush|cattail|ponds?$|lakes?$|.*schilf|teich",
    "garden lemon": "lemon|citron|citrus|limes$|.*zitron|limette",
    "garden orange": "oranges|orangen|tangerine|clementine|mandarin|apricots|peaches",
    "garden strawberry": ".*strawberr|.*erdbeer|.*raspberr|himbeer|berr(y|ies)|beeren?$",
    "garden cherry": "cherr(y|ies)|.*kirsche|apples?$|apfel",
    "garden clover": "clover|shamrock|.*klee",
    "garden flower": "bloss|bloom|.*flower|floral|dais|peon|roses|popp|tulip|magnolia|.*blum|.*blute|.*rosen$|meadow",
    "garden bee": "bees?$|honeybee|bumblebee|bienen?$|hummel",
    "foliage fern": "ferns?$|.*farn|fronds?$|bracken",
    "foliage lavender": "lavend|.*lavendel|heather|lupin|salvia",
    "foliage leaf": "lea(f|ves)|foliage|eucalypt|olives|.*blatt|laub|vine|monstera|palm|sprig|.*zweig|branch|botan",
    "arches arch": "arch(es|ed|way|ways)?$|rainbow|.*bogen|geometri|bauhaus|adobe",
    "fans fan": "fans?$|waves?$|seigaiha|scallop|.*facher|.*welle|ocean|sea$|meer|shells?$|muschel|deco$",
    "confetti triangle": "confetti|konfetti|triang|dreieck|memphis",
    "confetti dot": "dots?$|dotted|polka|spots?$|terrazzo|.*punkte?$|circles?$|kreise?$|sprinkles",
}
#: Motifs that count only where no other is named.
WEAK = re.compile("botan|geometri|meadow|branch|sprig|zweig|deco|ponds?$|teich|lakes?$|lea|blatt|laub")
#: Before these, a word that is both a motif and a colour is the motif: `lavender sprigs`.
PARTS = re.compile("branch|sprig|bloss|flower|lea(f|ves)|tree|field|grove|stripe|zweig")

STYLES = _pairs("""
watercolour watercolour watercolor watercolour aquarell watercolour ink ink tusche ink sketch ink paper paper papier
paper linocut linocut woodcut linocut linolschnitt linocut embroidered embroidery embroidery embroidery
""")
LAYOUTS = {"stripes": r".*stripe|rows$|.*streif", "tossed": "scatter|toss|ditsy|.*streut"}
SIZES = {"tiny": 0.7, "ditsy": 0.7, "small": 0.8, "klein": 0.8, "large": 1.25, "bold": 1.2, "gross": 1.25}
