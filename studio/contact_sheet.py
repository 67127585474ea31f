"""`python -m studio.contact_sheet sheet.webp`: one hundred prompts on one sheet, to be looked at."""

from __future__ import annotations

import argparse
import sys
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from PIL import Image, ImageDraw, ImageFont

from studio.art.tile import tile_image
from studio.design import Design

#: Written before anything was drawn for them, as a buyer of fabrics, papers and gifts would: model, then prompt.
PROMPTS = """
atelier: Dusty pink peonies with sage leaves on ivory, large scale
atelier: Navy and white Breton stripes
atelier: Ditsy cornflowers on butter yellow
atelier: Blue and white azulejo tiles, Lisbon summer
atelier: Elephants and palms on blush for a nursery
atelier: Gold ginkgo leaves on deep emerald
atelier: Terracotta rainbow arches, boho nursery
atelier: Lemons and blue tiles, Amalfi coast tea towel
atelier: Black cats and crescent moons, Halloween
atelier: Wild meadow flowers, scattered, on cream
atelier: Rote Mohnblumen auf hellblauem Grund
atelier: Dunkelgrüne Farne und goldene Sterne
atelier: Füchse im Herbstwald
atelier: Zitronenzweige auf Weiß
atelier: Kleine Gänseblümchen, gestreut, auf Salbeigrün
atelier: Hérons bleus sur fond crème
atelier: Citrons jaunes et feuilles vertes sur bleu marine
atelier: Cerises rouges, petites, sur rose pâle
atelier: Rayures bleu marine et blanches
atelier: Papillons violets et lavande
atelier: Flores rojas y hojas verdes sobre fondo negro
atelier: Limones amarillos sobre azul marino
atelier: Cactus verdes en el desierto terracota
atelier: Golondrinas azules sobre crema
atelier: Azulejos azules y blancos
atelier: 紺地に白い鶴と金色の雲
atelier: 桜の花、淡いピンクの背景
atelier: 青海波、藍色
atelier: 赤い金魚と水色の波
atelier: 秋の紅葉ときのこ
linocut: Hares and thistles, block print, charcoal on oatmeal
linocut: Artichokes and olive branches, Tuscan kitchen
linocut: Skulls and roses
linocut: Lobsters in red on white
linocut: Pine forest with deer, winter
linocut: Swallows over waves, indigo
linocut: Mushrooms and snails, woodland
linocut: Sunflowers on navy
linocut: Octopus and starfish, nautical
linocut: Folk birds and tulips, red and blue
watercolour: Hydrangeas in powder blue and lilac
watercolour: Eucalyptus wreath, soft sage, on white
watercolour: Strawberry fields, summer
watercolour: Koi and lotus, turquoise pond
watercolour: Wild roses on blush
watercolour: Toucans and monstera, tropical
watercolour: Jellyfish in a midnight ocean
watercolour: Peach blossoms on grey
watercolour: Autumn oak leaves and acorns
watercolour: Giraffes in a warm savanna
embroidery: Bees and clover on linen
embroidery: Red hearts and white daisies on denim
embroidery: Mexican otomi birds in hot pink and turquoise
embroidery: Peacocks on deep purple
embroidery: Tiny strawberries, ditsy, on cream
embroidery: Paisley in saffron and burgundy
embroidery: Alpine mountains and stars
embroidery: Hummingbirds and hibiscus
embroidery: Cherries on gingham
embroidery: Ladybirds on pistachio
atelier: Art deco fans, gold on black
atelier: Houndstooth in camel and chocolate
atelier: Tartan, red and forest green, Christmas
atelier: Terrazzo in coral, mint and grey
atelier: Leopard print, pink and orange
atelier: Moroccan quatrefoil in teal
atelier: Bauhaus blocks
atelier: Seventies daisies, orange and brown
atelier: Memphis squiggles, neon
atelier: Damask in silver grey on charcoal
atelier: Hexagons, honey and black
atelier: Matisse cutouts in primary colours
atelier: Herringbone in dove grey
atelier: Polka dots, white on cherry red
atelier: Argyle in burgundy and mustard
atelier: Chevron in mint and coral
atelier: Tumbling cubes in denim blues
atelier: Basketweave in natural linen
atelier: Victorian damask roses, plum
atelier: Japanese cranes and chrysanthemums, mirrored
atelier: Dinosaurs and bolts of lightning for boys, lime green
atelier: Unicorns and rainbows, pastel
atelier: Rockets and planets in outer space
atelier: Bicycles and croissants in Paris
atelier: Camper vans and cacti, desert road trip
atelier: Ice cream cones and cherries, candy colours
atelier: Tigers in the jungle, oversized
atelier: Penguins in the snow
atelier: Chillies and limes, hot kitchen
atelier: Pomegranates and figs, Persian, on deep teal
atelier: Snowflakes, kaleidoscope, icy blue
atelier: Hexagonal mandala of lotus flowers p6m
atelier: Evil eyes in cobalt and white, Greek
atelier: Seahorses and corals, trailing
atelier: Horses and stars, western, rust
atelier: Ribbon bows, coquette, ballet pink
atelier: Music notes and crowns, black and gold
atelier: Something quiet for a bathroom
atelier: My grandmother's kitchen curtains, 1950
atelier: The sound of rain on a tin roof
""".strip().splitlines()
COLUMNS = 10
CELL, GAP, LABEL = 236, 6, 17
PAPER, TEXT = "#ffffff", "#33302c"


@dataclass(frozen=True)
class Shown:
    """One picture of the sheet and what stands under it."""

    label: str
    design: Design


def shown() -> list[Shown]:
    """The hundred designs."""
    pairs = (line.split(": ", 1) for line in PROMPTS)
    return [
        Shown(
            f"{prompt}" if model == "atelier" else f"{prompt} ({model})", Design(prompt=prompt, model=model)
        )
        for model, prompt in pairs
    ]


def sheet(designs: Sequence[Shown], columns: int = COLUMNS) -> Image.Image:
    """The pictures side by side."""
    rows = -(-len(designs) // columns)
    step, down = CELL + GAP, CELL + GAP + LABEL
    whole = Image.new("RGB", (columns * step + GAP, rows * down + GAP), PAPER)
    pen, font = ImageDraw.Draw(whole), ImageFont.load_default(10)
    for place, one in enumerate(designs):
        x, y = GAP + place % columns * step, GAP + place // columns * down
        tile = tile_image(one.design)
        whole.paste(
            tile.resize((CELL, round(CELL * tile.height / tile.width)), Image.Resampling.LANCZOS), (x, y)
        )
        pen.text((x + 1, y + CELL + 2), _fitting(one.label, font), fill=TEXT, font=font)
    return whole


def _fitting(label: str, font: ImageFont.FreeTypeFont | ImageFont.ImageFont) -> str:
    """As much of the label as its cell holds, in the letters that every font has."""
    roman = _ROMAN.get(label, label)
    shown = "".join(one for one in unicodedata.normalize("NFKD", roman.replace("ß", "ss")) if one.isascii())
    while font.getlength(shown) > CELL:
        shown = shown[:-2].rstrip() + "…"
    return shown


#: What the Japanese prompts say, for sheets that are drawn without a Japanese font.
_ROMAN = {
    "紺地に白い鶴と金色の雲": "Japanese: white cranes, gold clouds on navy",
    "桜の花、淡いピンクの背景": "Japanese: cherry blossom on pale pink",
    "青海波、藍色": "Japanese: seigaiha waves, indigo",
    "赤い金魚と水色の波": "Japanese: red goldfish, pale blue waves",
    "秋の紅葉ときのこ": "Japanese: autumn maple and mushrooms",
}


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m studio.contact_sheet", description=__doc__)
    parser.add_argument("file", type=Path, help="the picture to write; its ending names the format")
    options = parser.parse_args(argv)
    sheet(shown()).save(options.file, quality=78, method=6)
    return 0


if __name__ == "__main__":
    sys.exit(main())
