"""The studio's vocabulary: which words of a prompt mean a colour, a mood, a subject, a layout, a scale, a style."""

from __future__ import annotations

from types import MappingProxyType

COLOURS = MappingProxyType(
    {
        "white": "#fbfaf6", "ivory": "#f7f1e1", "cream": "#f5ecd7", "ecru": "#e9dcc3", "linen": "#ece3d4",
        "beige": "#e2d3b9", "sand": "#dcc6a0", "oat": "#e4d8c3", "oatmeal": "#e0d4c0", "stone": "#c9c0b2",
        "taupe": "#a3927f", "tan": "#c79f6f", "camel": "#c1935a", "caramel": "#b9773c", "brown": "#7a5236",
        "chocolate": "#53341f", "coffee": "#6b4a35", "chestnut": "#7d3f25", "rust": "#b1502a",
        "terracotta": "#c8694a", "clay": "#b8755a", "brick": "#9c3f2f", "copper": "#b5703f",
        "bronze": "#8c6a35", "gold": "#cf9f3b", "golden": "#d6a63f", "ochre": "#c88d2b", "mustard": "#d8a92d",
        "amber": "#e39a22", "honey": "#e3ab45", "saffron": "#eeae2a", "yellow": "#f3cd45",
        "butter": "#f8e3a0", "buttercup": "#f6d24f", "lemon": "#f5da4e", "chartreuse": "#bccb3a",
        "lime": "#a6c843", "olive": "#7b7a3a", "moss": "#6d7a3c", "sage": "#a3b18a", "pistachio": "#b9cd97",
        "mint": "#b4dcc4", "green": "#4f8a55", "emerald": "#12805c", "jade": "#3f9c7c", "forest": "#2b533d",
        "bottle": "#17402f", "pine": "#275446", "eucalyptus": "#7fa293", "seafoam": "#a7d8c6",
        "teal": "#1f7a7a", "petrol": "#15515c", "turquoise": "#3bb7b2", "aqua": "#83d0d0", "cyan": "#41b4c9",
        "sky": "#9ccbe6", "azure": "#3f8fd4", "blue": "#3c6ea8", "denim": "#4b6a8c", "cobalt": "#1f4fa8",
        "royal": "#2a4bb0", "sapphire": "#1d428f", "navy": "#1d2c4d", "indigo": "#303a78", "ink": "#1c2233",
        "periwinkle": "#8d97d8", "lilac": "#c3aedb", "lavender": "#b3a2d6", "violet": "#7a55a8",
        "purple": "#6b3f8c", "plum": "#6a2f54", "aubergine": "#42213f", "mauve": "#b58aa5",
        "orchid": "#c176b8", "magenta": "#c2307c", "fuchsia": "#d23b8b", "raspberry": "#b4264f",
        "pink": "#eca3b4", "rose": "#d98091", "blush": "#f0cfc6", "peach": "#f6bd96", "apricot": "#f3ac6d",
        "salmon": "#ef9078", "coral": "#ee7560", "orange": "#e8823a", "tangerine": "#ef8a35",
        "red": "#c8362f", "scarlet": "#d5321f", "crimson": "#a91f35", "ruby": "#9b1c3c", "cherry": "#b1203a",
        "burgundy": "#6c1f32", "maroon": "#5f2028", "wine": "#6a2238", "grey": "#9a9a98", "gray": "#9a9a98",
        "silver": "#c3c7ca", "dove": "#c4c1bd", "slate": "#56626e", "charcoal": "#36393d", "black": "#1b1b1d",
    }
)  # fmt: skip

#: After another colour word these only say again what it is: `sky blue`, `forest green`.
PLAIN_COLOURS = frozenset(
    {"blue", "green", "red", "pink", "yellow", "orange", "purple", "brown", "grey", "gray", "white", "black"}
)

#: Words that change the colour word after them: lighter by, chroma times.
COLOUR_CHANGES = MappingProxyType(
    {
        "pale": (0.13, 0.65), "light": (0.11, 0.8), "soft": (0.07, 0.7), "powder": (0.14, 0.6),
        "baby": (0.13, 0.75), "pastel": (0.14, 0.65), "dark": (-0.14, 0.9), "deep": (-0.11, 1.05),
        "bright": (0.05, 1.35), "vivid": (0.03, 1.4), "hot": (0.0, 1.5), "neon": (0.1, 1.7),
        "dusty": (0.0, 0.6),
        "muted": (0.0, 0.6), "faded": (0.06, 0.5), "burnt": (-0.08, 0.95), "warm": (0.02, 1.05),
        "rich": (-0.05, 1.2),
        "off": (-0.02, 1.0), "electric": (0.05, 1.5),
    }
)  # fmt: skip

#: Moods: a ground, then the colours that go on it, strongest first. Several entries: one is chosen by the prompt.
MOODS = MappingProxyType(
    {
        "midnight": ("#141d38 #e9dfc4 #c9a24c #7f9ccf #3d5a94", "#10192e #c7d3ee #8fa6d8 #e7c66b #46598f"),
        "night": ("#17203a #eadfbd #8aa2cf #c9a24c #3f5585",),
        "autumn": ("#f4e8d3 #b1502a #d8a02d #6d3b2a #7b7a3a", "#3b2a25 #d98a3a #c25a34 #e6c98f #8f8a4a"),
        "spring": ("#f8f6ea #e58fa3 #8fb77a #f3cf5b #a9c9e6", "#eef3e2 #f0a7b5 #6fa06a #f5d874 #b6a1d8"),
        "summer": ("#fdf6e3 #ef7d57 #f5c84c #2f9c95 #f2a7b5",),
        "winter": ("#eaf0f3 #3f5f7f #8fb0c6 #b5423f #5d7f6c", "#22364a #eef3f5 #9fc0d4 #c65a55 #6f94a8"),
        "christmas": ("#f6f0e2 #a8242f #2c5a41 #c99a3a #6b8f71", "#1f4433 #f2e9d6 #b83236 #d0a548 #7fa588"),
        "halloween": ("#231c2b #e8822f #f0e3c8 #7d5ba6 #a9b64c",),
        "tropical": ("#f9f3e1 #12806a #f0705a #f4b942 #3fa7a0", "#0f3d3a #4fae84 #f27b62 #f6c451 #e9e2c4"),
        "jungle": ("#12332b #4c9a62 #8fbf6a #f09a5a #e9e2c4",),
        "desert": ("#f3e2cb #c8694a #7d8f69 #e0a458 #8a4a3c",),
        "ocean": ("#eaf3f1 #1d5f7a #4aa3a8 #f0836b #123c58", "#123c58 #7cc2c4 #e8efe6 #f0836b #2f7a94"),
        "nautical": ("#f7f4ea #1d2c4d #c23b34 #7f9cb8 #d9b36a",),
        "coastal": ("#f5f1e6 #4a7c97 #9fc3cc #e5c79a #e07a63",),
        "woodland": ("#f1ead8 #4c5f3c #a2502f #c79a4b #6d4a33",),
        "meadow": ("#f6f3e2 #d7566b #6b8f4e #f0c04a #7a8fcb",),
        "garden": ("#f7f3e8 #d9627a #5f8a5a #f2c14e #8f7fc0",),
        "sunset": ("#fbe3cd #e4573d #f29a4a #8a3a63 #f6c667", "#4b1f45 #f2735a #f8b055 #d5477a #f9d9a8"),
        "dawn": ("#f7ece6 #e89a93 #f3c79b #8f9fc4 #b98bb0",),
        "retro": ("#f4e6cb #d9682e #e8ab3a #7a8b4f #5b3a29", "#f2e3c6 #2f8f8a #e36f3c #e9b33f #6b3f2c"),
        "seventies": ("#f3e3c5 #c8612a #e5a832 #7a5230 #8a8b45",),
        "70s": ("#f3e3c5 #c8612a #e5a832 #7a5230 #8a8b45",),
        "midcentury": ("#f3ead7 #2f7f86 #e08a35 #c9432f #3b3a36",),
        "scandi": ("#f6f4ee #2f3b45 #d9a441 #8fa7a3 #d98d7a",),
        "scandinavian": ("#f6f4ee #2f3b45 #d9a441 #8fa7a3 #d98d7a",),
        "nordic": ("#f2f1ec #34495a #c2554a #9db2b5 #d3b06a",),
        "bauhaus": ("#f3ecdc #c9302c #1f4e9c #efb827 #1f1f21",),
        "deco": ("#14262e #cfa355 #ecdcb4 #3f6f73 #8a3f3a",),
        "boho": ("#f3e7d6 #b8623f #d79f55 #7d8f76 #7c4a43",),
        "folk": ("#f6efdf #b5312f #24456b #e0a32e #4f7a4c",),
        "japanese": ("#f3ede0 #24406b #c8503f #8fa88f #d9b25f",),
        "indian": ("#f6ead2 #a5283c #d98c1f #1f6f6b #5a2a5a",),
        "moroccan": ("#f5eddc #14627a #c9622f #e2ab3f #1f3f57",),
        "mediterranean": ("#f7f3e7 #1f5fa8 #f2c73c #5f8a4f #e07a3f",),
        "provence": ("#f6f0df #7f79b5 #e3b648 #6f8a5c #b58fb5",),
        "vintage": ("#efe6d3 #8c4a4a #6f8270 #c9a05a #4f5a68",),
        "victorian": ("#23303a #a8505a #7f9270 #d1b071 #d8c9b0",),
        "gothic": ("#1c1a20 #8a2338 #b9a27a #56505f #6f7f78",),
        "candy": ("#fdeef2 #ef7fa6 #7fcad1 #f7c95f #b08fd8",),
        "pastel": ("#faf5ef #eab0bd #a8cfc3 #f4d99b #b9b4de",),
        "nursery": ("#f8f3e9 #e9a58f #9dbfb0 #f1cd84 #9fb4cf",),
        "kids": ("#fbf6ea #ef6f5a #3f9fb5 #f4bf3f #6fae6a",),
        "neon": ("#17151f #ff4fa0 #3be0d0 #f8ec4f #8f5bff",),
        "monochrome": ("#f5f3ee #1f1f22 #5f6065 #a9a9aa #333438",),
        "earthy": ("#efe4d2 #8a4f33 #7d7a48 #c8924b #4f3a2c",),
        "rustic": ("#eee2cf #7f4a33 #5f6b48 #c28f4a #3f3a35",),
        "romantic": ("#f8ece8 #c4667a #e3a5a2 #8a9f83 #7a3f55",),
        "cottage": ("#f6f1e4 #c9657a #7f9a6f #e7bd58 #7f97c0",),
        "farmhouse": ("#f4efe4 #4a6078 #a9554a #c9ae7f #7f8f76",),
        "cosmic": ("#171633 #e8d9f2 #c978c4 #f2c14e #5f6fd0",),
        "galaxy": ("#15142e #bfa8f0 #ef7fb0 #f2d06b #4f6fd0",),
        "rainbow": ("#fbf7ee #e4473f #f2a33c #3f9f6f #3f7fc4",),
        "forest": ("#20382c #8fae78 #d8c9a0 #c9763f #4f7a58",),
        "harvest": ("#f3e6cc #c4622d #dca53a #6f7a3f #7a3f33",),
        "icy": ("#eef5f7 #5f8fb0 #a9cbdc #3f5f80 #c9d6dc",),
        "minimal": ("#f5f2eb #3f4446 #c9b79c #8f9a94 #b5694f",),
        "luxury": ("#16222a #d3aa5a #f0e4c9 #3f6a64 #8a4450",),
        "sea": ("#edf4f1 #1f6580 #5fb0b0 #f0866b #17445f",),
        "primary": ("#f7f3e8 #cf2e2a #1f4e9c #f0bc2c #2f7d4f",),
        "outer space": ("#171633 #e8d9f2 #c978c4 #f2c14e #5f6fd0",),
    }
)  # fmt: skip

#: What is chosen when no word says a colour or a mood.
DEFAULT_MOODS = (
    "garden",
    "coastal",
    "folk",
    "vintage",
    "midcentury",
    "earthy",
    "spring",
    "boho",
    "scandi",
    "meadow",
)

#: The names of drawings in `motifs` and of `fields`, each with the words (or two words) that mean it.
_MEANT_BY = {
    "leaf": "leaf, leave, leaves", "sprig": "foliage, botanical, herb, sprig, branch, vine, ivy",
    "willow": "willow, grass", "eucalyptus": "eucalyptus", "fern": "fern, bracken, frond", "palm": "palm",
    "monstera": "monstera", "oak": "oak, maple", "acorn": "acorn", "cactus": "cactus, cacti, succulent",
    "olive_branch": "olive branch, olives", "wheat": "wheat, barley", "clover": "clover, shamrock",
    "seaweed": "seaweed, kelp", "pine": "tree, pine tree, fir, spruce, pinetree",
    "daisy": "flower, daisy, daisies, aster, chamomile",
    "peony": "floral, bloom, peony, peonies, dahlia, chrysanthemum, carnation, marigold, hydrangea",
    "rose_flower": "ranunculus, rose, camellia", "sunflower": "sunflower",
    "tulip": "tulip, crocus, bluebell, iris", "poppy": "poppy, poppies, anemone, hibiscus, pansy",
    "blossom": "blossom, cherry blossom, sakura, jasmine", "lotus": "magnolia, lotus, lily, waterlily",
    "lavender": "lavender, hyacinth, foxglove", "wildflower": "wildflower, wild flower, meadow, bouquet, cornflower",
    "bird": "bird, robin, sparrow, finch, wren, songbird", "heron": "heron, crane, egret, stork",
    "swallow": "hummingbird, swallow, gull, seagull, dove bird", "flamingo": "flamingo",
    "butterfly": "butterfly, butterflies, moth", "bee": "bee, bumblebee, honeybee",
    "star": "star, starry, space", "sparkle": "sparkle, constellation", "moon": "moon, crescent, lunar",
    "sun": "sun, sunburst", "starburst": "starburst, atomic", "cloud": "cloud", "drop": "rain, raindrop, drop",
    "rainbow": "rainbow", "snowflake": "snowflake, snow", "fish": "fish, fishes, koi, goldfish",
    "whale": "whale, dolphin", "shell": "shell, seashell", "coral_reef": "corals, coral reef, reef",
    "anchor": "anchor", "turtle": "turtle", "starfish": "starfish", "lemon": "lemon",
    "citrus": "citrus, orange slice, oranges, grapefruit, limes, fruit",
    "strawberry": "strawberry, strawberries", "cherries": "cherry, cherries", "apple": "apple, peaches, plums",
    "berries": "berry, berries, blueberry, blueberries, currant, holly, mistletoe, raspberries",
    "pumpkin": "pumpkin", "mushroom": "mushroom, toadstool, fungi", "mountain": "mountain, peak, hill, alpine",
    "heart": "heart, love, valentine", "cat": "cat, kitten", "fox": "fox, foxes", "bear": "bear, panda",
    "rabbit": "rabbit, bunny, bunnies, hare", "paw": "paw, dog, puppy, puppies", "paisley": "paisley",
    "stripe": "stripe, striped, ticking, pinstripe",
    "dot": "dot, dotted, polka, polka dot, spot", "gingham": "check, checked, gingham, vichy",
    "plaid": "plaid, tartan, windowpane", "checkerboard": "checkerboard, chequerboard, chess",
    "houndstooth": "houndstooth", "chevron": "chevron, zigzag",
    "herringbone": "herringbone, parquet, tweed, basketweave, weave",
    "geometric": "geometric, geometry, cube, bauhaus", "triangle": "triangle, argyle, diamond, harlequin",
    "hexagon": "hexagon, honeycomb", "tile": "tile, azulejo, mosaic",
    "quatrefoil": "moroccan tile, quatrefoil, trellis, lattice, ogee, damask",
    "wave": "wave, wavy, ripple, marble",
    "scallop": "sea, seigaiha, scallop, fish scale, mermaid", "deco_fan": "fan, art deco, deco, gatsby",
    "terrazzo": "terrazzo", "confetti": "confetti, sprinkle", "memphis": "memphis, squiggle",
    "cutout": "abstract, matisse, cutout, cut out, shape, brush, brushstroke",
    "leopard": "leopard, cheetah, animal print", "arch": "arch, arches, rainbow arch, rainbow arches",
    "circles": "circle, ring",
}  # fmt: skip
SUBJECTS = MappingProxyType(
    {word: subject for subject, words in _MEANT_BY.items() for word in words.split(", ")}
)

#: What a word shows besides its drawing, when no colour is said before it: limes are green oranges.
OWN_COLOURS = MappingProxyType(
    {
        "limes": "#a6c843", "oranges": "#e8823a", "peaches": "#f6bd96", "plums": "#6a2f54",
        "blueberry": "#4a5c9c", "blueberries": "#4a5c9c", "goldfish": "#e8823a", "koi": "#e8723a",
        "robin": "#c4562f", "cornflower": "#4a66b8", "grapefruit": "#ee7f6f", "bluebell": "#6673b8",
        "holly": "#b8282f", "raspberries": "#b4264f",
    }
)  # fmt: skip

#: Two words of which neither means what it says: nobody wants cups on a tea towel.
OTHER_THINGS = frozenset({"tea towel", "tea towels", "star sign", "sun room", "apple watch", "bow tie"})

#: Words that are a colour and a subject: what they mean when nothing next to them decides.
DOUBTFUL = MappingProxyType(
    {
        "rose": "subject", "lavender": "subject", "lemon": "subject", "cherry": "subject",
        "eucalyptus": "subject",
        "pine": "colour", "olive": "colour", "orange": "colour", "peach": "colour", "plum": "colour",
        "coral": "colour",
        "forest": "mood", "sky": "colour", "dove": "colour", "mint": "colour",
    }
)  # fmt: skip

#: Before one of these a doubtful word means the plant: `lemon branches`, `lavender sprigs`.
PLANT_PARTS = frozenset(
    {
        "blossom", "branch", "branches", "bush", "field", "flower", "garden", "grove", "leaf", "leave", "leaves",
        "meadow", "orchard", "sprig", "stem", "tree", "vine",
    }
)  # fmt: skip

#: Fields with names so common that a more particular one in the same prompt is meant: `waves ... like seigaiha`.
COMMON_FIELDS = frozenset({"circles", "cutout", "deco_fan", "geometric", "wave"})

#: What a mood shows when the prompt names no subject.
MOOD_SUBJECTS = MappingProxyType(
    {
        "midnight": ("moon", "star"), "night": ("moon", "star"), "autumn": ("oak", "acorn"),
        "spring": ("blossom", "sprig"), "summer": ("citrus", "sprig"), "winter": ("snowflake", "pine"),
        "christmas": ("pine", "star"), "halloween": ("pumpkin", "moon"), "tropical": ("monstera", "palm"),
        "jungle": ("monstera", "palm"), "desert": ("cactus", "sun"), "ocean": ("fish", "seaweed"),
        "nautical": ("anchor", "starfish"), "coastal": ("shell", "starfish"), "woodland": ("mushroom", "fern"),
        "meadow": ("wildflower", "daisy"), "garden": ("peony", "sprig"), "sunset": ("sun", "mountain"),
        "dawn": ("swallow", "cloud"), "retro": ("daisy",), "seventies": ("daisy",), "70s": ("daisy",),
        "midcentury": ("starburst",), "scandi": ("tulip", "sprig"), "scandinavian": ("tulip", "sprig"),
        "nordic": ("pine", "mountain"), "bauhaus": ("geometric",), "deco": ("deco_fan",),
        "boho": ("rainbow", "sun"),
        "folk": ("tulip", "bird"), "japanese": ("scallop",), "indian": ("paisley", "lotus"),
        "moroccan": ("quatrefoil",), "mediterranean": ("lemon", "tile"),
        "provence": ("lavender", "olive_branch"),
        "vintage": ("rose_flower", "sprig"), "victorian": ("rose_flower", "sprig"), "gothic": ("rose_flower", "moon"),
        "candy": ("confetti",),
        "nursery": ("bear", "cloud"), "kids": ("rainbow", "star"), "neon": ("memphis",),
        "cosmic": ("moon", "star"),
        "galaxy": ("moon", "sparkle"), "rainbow": ("rainbow", "cloud"), "forest": ("pine", "fern"),
        "harvest": ("pumpkin", "wheat"), "luxury": ("deco_fan",), "sea": ("scallop",), "minimal": ("circles",),
        "romantic": ("rose_flower", "sprig"), "cottage": ("daisy", "sprig"), "icy": ("snowflake",),
    }
)  # fmt: skip

DEFAULT_SUBJECTS = (
    "sprig",
    "daisy",
    "cutout",
    "quatrefoil",
    "leaf",
    "geometric",
    "wildflower",
    "arch",
    "tulip",
    "scallop",
)

LAYOUTS = MappingProxyType(
    {
        "toss": "toss", "tossed": "toss", "scattered": "toss", "scatter": "toss", "random": "toss",
        "ditsy": "toss",
        "half drop": "half_drop", "halfdrop": "half_drop", "brick": "brick", "grid": "grid", "row": "grid",
        "mirrored": "pmm", "mirror": "pmm", "symmetrical": "pmm", "kaleidoscope": "p4m", "medallion": "p4m",
        "mandala": "p4m", "rosette": "p6", "hexagonal": "p6", "pinwheel": "p4", "tile": "p4", "rotating": "p4",
        "trailing": "pg", "climbing": "pg", "damask": "cm", "swirling": "p3",
    }
)  # fmt: skip

SCALES = MappingProxyType(
    {
        "tiny": 0.5, "micro": 0.45, "mini": 0.55, "small": 0.65, "little": 0.65, "delicate": 0.75, "ditsy": 0.55,
        "fine": 0.7, "dainty": 0.65, "large": 1.5, "big": 1.5, "bold": 1.35, "oversized": 1.9, "giant": 1.9,
        "huge": 1.9, "statement": 1.6, "grand": 1.5, "wide": 1.4, "larger": 1.4,
        "bigger": 1.4, "smaller": 0.7, "denser": 0.7, "finer": 0.7, "maxi": 1.7, "enormous": 2.0, "miniature": 0.5,
        "narrow": 0.65, "thin": 0.6,
    }
)  # fmt: skip

STYLES = MappingProxyType(
    {
        "ink": "ink", "line": "ink", "lineart": "ink", "outline": "ink", "outlined": "ink", "sketch": "ink",
        "drawn": "ink", "etched": "ink", "toile": "ink", "block": "print", "linocut": "print", "lino": "print",
        "woodblock": "print", "stamp": "print", "stamped": "print",
        "watercolour": "watercolour",
        "watercolor": "watercolour", "painted": "watercolour", "painterly": "watercolour",
        "gouache": "watercolour",
        "aquarelle": "watercolour",
    }
)  # fmt: skip

TEXTURES = MappingProxyType(
    {
        "linen": "linen", "woven": "linen", "canvas": "linen", "fabric": "linen", "tweed": "linen",
        "wool": "linen",
        "paper": "paper", "grain": "paper", "chalk": "paper", "washed": "wash", "faded": "wash",
        "distressed": "wash",
        "vintage": "paper", "rustic": "linen", "smooth": "none", "crisp": "none",
    }
)  # fmt: skip

#: After one of these, a colour is the ground's.
GROUND_WORDS = frozenset({"on", "against", "over", "background", "ground"})
