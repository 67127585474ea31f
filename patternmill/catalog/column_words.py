"""What the trade calls the columns of a catalog, in English, German, French, Spanish, Italian, Dutch and Japanese."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping

#: A remark in a name: `Color (inside)`.
ASIDE = re.compile(r"\([^()]*\)|\[[^\[\]]*\]")
_CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z])")
_WORD = re.compile(r"[^\W_]+")

#: By column: the names that mean it and nothing else, then those that often mean it.
_NAMES: dict[str, tuple[str, str]] = {
    "prompt": (
        "prompt, prompt text, text prompt, pattern prompt, design prompt, ai prompt, image prompt, prompts,"
        "pattern description, pattern text, design description, motif description,"
        "musterbeschreibung, motivbeschreibung, muster beschreibung, prompttext,"
        "description du motif, texte du prompt, invite,"
        "descripcion del patron, descripcion del estampado, descrizione del motivo, descrizione pattern,"
        "patroonomschrijving, patroonbeschrijving, omschrijving patroon,"
        "プロンプト, 柄の説明, 図案の説明, デザイン説明, パターン説明",
        "description, product description, desc, text, design, pattern, motif, artwork, theme, idea, title, body,"
        "body html, product title, beschreibung, artikelbeschreibung, bezeichnung, motiv, muster, dessin, titel,"
        "motif, titre, modele, texte, descripcion, estampado, patron, titulo, diseno, texto, descrizione, motivo,"
        "disegno, titolo, testo, omschrijving, beschrijving, patroon, ontwerp, tekst,"
        "説明, 商品説明, 商品名, 図案, 柄, 模様, デザイン, モチーフ",
    ),
    "sku": (
        "sku, skus, sku code, variant sku, product sku, item sku, item number, item no, item code, article number,"
        "article no, art no, article code, product code, product number, part number, style number, style code,"
        "artikelnummer, artikelnr, artikel nr, art nr, artnr, artikel no, bestellnummer, bestellnr, produktnummer,"
        "reference article, reference produit, ref article, ref produit, code article, code produit, no article,"
        "numero d article, codigo, codigo de articulo, codigo de producto, codigo articulo, numero de articulo,"
        "referencia, ref, codice, codice articolo, codice prodotto, cod articolo, artikelcode, productcode,"
        "productnummer, 品番, 商品番号, 商品コード, 型番, 管理番号, 商品管理番号",
        "id, product id, item id, code, number, handle, ean, gtin, upc, barcode, variant barcode, article, item,"
        "nummer, artikel, artikel id, nr, no, numero, identifiant, articulo, articolo, reference,"
        "番号, コード, 商品id, janコード, jan",
    ),
    "category": (
        "category, product category, product type, category name, categoria, categorie, kategorie,"
        "produktkategorie, produkttyp, produktart, produktgruppe, artikelkategorie, warengruppe, artikelgruppe,"
        "categorie de produit, type de produit, type produit, categoria de producto, tipo de producto,"
        "categoria prodotto, tipo prodotto, tipo di prodotto, productcategorie, producttype, productgroep,"
        "カテゴリ, カテゴリー, 商品カテゴリ, 商品カテゴリー, 商品種別, 商品タイプ",
        "type, product, item type, group, department, collection type, custom product type, standard product type,"
        "typ, art, produkt, gruppe, artikeltyp, produit, groupe, famille, producto, tipo, grupo, familia, prodotto,"
        "gruppo, famiglia, product soort, soort, groep,"
        "種類, 種別, 分類, 商品, アイテム",
    ),
}
#: By what they usually are called in an offer: other names of options.
_OPTIONS: dict[str, str] = {
    "color": "color, colour, colors, colours, colourway, farbe, farben, farbton, couleur, couleurs, coloris, teinte,"
    "colore, colori, kleur, kleuren, 色, カラー",
    "size": "size, sizes, dimension, dimensions, measurements, grosse, groesse, grossen, masse, abmessung, abmessungen,"
    "format, taille, tailles, talla, tamano, medida, medidas, taglia, misura, misure, dimensione, dimensioni,"
    "maat, maten, afmeting, afmetingen, サイズ, 寸法, 大きさ",
    "fabric": "fabric, cloth, textile, stoff, stoffart, gewebe, bezug, bezugsstoff, tissu, tela, tejido, tessuto, stof,"
    "weefsel, 生地, 布地",
    "material": "material, materials, materialien, matiere, materiau, materiale, materiaal, 素材, 材質",
    "finish": "finish, surface, oberflache, oberflaeche, ausfuhrung, ausfuehrung, veredelung, finition, acabado,"
    "finitura, afwerking, 仕上げ, 表面加工",
    "paper": "paper, papier, papierart, papel, carta, papiersoort, 紙, 用紙, 紙質",
    "width": "width, breite, bahnbreite, largeur, ancho, anchura, larghezza, breedte, 幅",
    "length": "length, lange, laenge, longueur, largo, longitud, lunghezza, lengte",
    "height": "height, hohe, hoehe, hauteur, alto, altura, altezza, hoogte",
    "shape": "shape, form, forme, forma, vorm",
    "style": "style, stil, estilo, stile, stijl",
    "frame": "frame, rahmen, cadre, marco, cornice, lijst",
}


def name_key(header: str) -> str:
    """What spellings of one name share: `Art.-Nr.`, `ART NR`; accents, asides in brackets and signs are left out."""
    text = _CAMEL.sub(" ", ASIDE.sub(" ", header)).replace("№", "no")
    folded = unicodedata.normalize("NFKD", text.casefold())
    plain = "".join(character for character in folded if not unicodedata.combining(character))
    return "".join(_WORD.findall(plain))


def _keys(names: str) -> frozenset[str]:
    return frozenset(name_key(name) for name in names.split(","))


_BY_COLUMN = {column: (_keys(sure), _keys(likely)) for column, (sure, likely) in _NAMES.items()}
_OPTION_KEYS: Mapping[str, str] = {key: option for option, names in _OPTIONS.items() for key in _keys(names)}


def name_rank(column: str, header: str) -> int:
    """How surely a header names `sku`, `prompt` or `category`: 3 surely, 2 often, 1 it has a word of it, 0 not."""
    key, (sure, likely) = name_key(header), _BY_COLUMN[column]
    if key in sure or key in likely:
        return 3 if key in sure else 2
    words = {name_key(word) for word in _WORD.findall(_CAMEL.sub(" ", header))}
    return 1 if words & sure else 0


def option_called(header: str) -> str | None:
    """The usual English name of the option that a header names: `Größe (cm)` is `size`."""
    return _OPTION_KEYS.get(name_key(header))


def looks_like_option(header: str) -> bool:
    return option_called(header) is not None
