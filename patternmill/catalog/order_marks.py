"""How sheets say that a row is not to be ordered: in columns that nobody reads, and in place of a prompt."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from patternmill.catalog.column_words import name_key


def _names(text: str) -> frozenset[str]:
    return frozenset(name_key(name) for name in text.split(","))


def _phrases(text: str) -> frozenset[str]:
    return frozenset(" ".join(phrase.split()) for phrase in text.split(","))


#: By language: columns that ask whether a row is to be ordered. Not `ordered`, which asks whether it was.
_ORDER = _names(
    "order, order it, order now, to order, to be ordered, please order, do order, "
    "reorder, buy, buy it, to buy, purchase, to purchase, include, included, produce, to produce, make, to "
    "make, create, to create, generate, wanted, needed, go, go no go, ok, approve, approved, approval, active, "
    "is active, enabled, use, in use, "
    "bestellen, zu bestellen, bitte bestellen, wird bestellt, bestellung, kaufen, einkaufen, produzieren, "
    "herstellen, erstellen, aufnehmen, freigabe, freigegeben, genehmigt, aktiv, "
    "commander, a commander, acheter, a acheter, inclure, produire, a produire, creer, approuve, valide, actif, "
    "pedir, a pedir, comprar, a comprar, encargar, ordenar, incluir, producir, crear, aprobado, activo, "
    "ordinare, da ordinare, acquistare, da acquistare, comprare, da comprare, includere, produrre, da produrre, "
    "creare, approvato, attivo, "
    "bestellen, te bestellen, bestelling, kopen, te kopen, inkopen, opnemen, produceren, maken, aanmaken, "
    "goedgekeurd, akkoord, actief, "
    "注文, 注文する, 発注, 発注する, 購入"
)
#: Columns that ask the opposite.
_DO_NOT_ORDER = _names(
    "do not order, dont order, not to order, no order, do not buy, dont buy, do not make, skip, skipped, "
    "exclude, excluded, omit, ignore, hold, on hold, cancel, cancelled, canceled, discontinued, dropped, "
    "deleted, obsolete, archived, inactive, disabled, blocked, "
    "nicht bestellen, nicht kaufen, storno, storniert, gestrichen, entfallt, gesperrt, ausgelaufen, auslassen, "
    "ausgeschlossen, inaktiv, archiviert, geloscht, "
    "ne pas commander, ne pas acheter, annule, exclure, exclu, ignorer, supprime, suspendu, inactif, "
    "no pedir, no comprar, cancelado, anulado, excluir, excluido, omitir, suspendido, archivado, inactivo, "
    "descatalogado, "
    "non ordinare, non acquistare, non comprare, annullato, escludere, escluso, saltare, sospeso, archiviato, "
    "inattivo, "
    "niet bestellen, niet kopen, geannuleerd, uitgesloten, overslaan, vervallen, gearchiveerd, inactief"
)
#: Not those of a stock: what is yet to be made has none.
_QUANTITY = _names(
    "qty, quantity, quantities, order qty, order quantity, qty to order, quantity to order, pcs, pieces, units, "
    "menge, bestellmenge, anzahl, stuck, stuckzahl, stk, quantite, qte, quantite a commander, "
    "cantidad, cant, cantidad a pedir, unidades, quantita, qta, quantita da ordinare, pezzi, "
    "aantal, hoeveelheid, bestelaantal, stuks, 数量, 注文数, 発注数, 個数"
)
_STATUS = _names(
    "status, state, stage, decision, order status, product status, item status, article status, row status, "
    "product state, lifecycle, lifecycle status, "
    "bestellstatus, auftragsstatus, produktstatus, artikelstatus, zustand, entscheidung, "
    "statut, etat, statut produit, statut article, statut commande, statut de commande, "
    "estado, estado del producto, estado del pedido, situacion, stato, stato prodotto, stato ordine, stato dell "
    "ordine, "
    "toestand, productstatus, orderstatus, besluit, 状態, ステータス"
)

_NO = _phrases(
    "no, n, not, never, false, off, nope, nein, falsch, nicht, nie, non, faux, falso, nee, niet, onwaar, いいえ, 不要"
)
_YES = _phrases("yes, y, x, true, on, ja, j, wahr, oui, o, vrai, sí, si, s, verdadero, sì, vero, waar, はい")
_NO_SIGNS = frozenset("✗✘❌☒×")
_YES_SIGNS = frozenset("✓✔✅☑")
#: As a status, and in place of `no`.
_OUT = _phrases(
    "draft, archived, cancelled, canceled, discontinued, inactive, hold, on hold, deleted, removed, rejected, "
    "declined, dropped, obsolete, void, disabled, paused, suspended, withdrawn, skip, not approved, no go, "
    "entwurf, archiviert, storniert, abgebrochen, gestrichen, inaktiv, gelöscht, abgelehnt, ausgelaufen, "
    "zurückgestellt, pausiert, gesperrt, entfällt, entfallen, nicht freigegeben, "
    "brouillon, archivé, archivée, annulé, annulée, annule, abandonné, inactif, supprimé, refusé, suspendu, "
    "borrador, archivado, archivada, cancelado, cancelada, anulado, anulada, descatalogado, inactivo, "
    "eliminado, rechazado, suspendido, "
    "bozza, archiviato, annullato, annullata, cancellato, inattivo, eliminato, rifiutato, sospeso, fuori "
    "produzione, "
    "concept, gearchiveerd, geannuleerd, vervallen, inactief, verwijderd, afgewezen, "
    "下書き, キャンセル, 中止, 廃番, アーカイブ"
)
#: They mean that in any column, and as a prompt.
_CANCELLED = _phrases(
    "cancelled, canceled, order cancelled, order canceled, storniert, annulé, annulée, cancelado, cancelada, "
    "anulado, annullato, annullata, geannuleerd, キャンセル"
)
#: Not `do not make it too dark`: instructions to a model are prompts.
_DO_NOT = re.compile(
    r"\b(?:(?:do not|don'?t|not to|not to be) (?:order|buy|ordered)|nicht (?:bestellen|kaufen)"
    r"|ne pas (?:commander|acheter)|no (?:pedir|comprar|encargar)|non (?:ordinare|acquistare|comprare)"
    r"|niet (?:bestellen|kopen))\b",
    re.IGNORECASE,
)
#: What a column may be called by: `Order (y/n)`, `Bestellen ja/nein`.
_ANSWERS = re.compile(r"\W+(?:y(?:es)?|ja?|o(?:ui)?|s[iíì]?)\s*/\s*n(?:o|on|ein|ee)?\W*$", re.IGNORECASE)
_ZERO = re.compile(r"0+(?:[.,]0*)?")
_WORDS = re.compile(r"[^\W_]+")
#: In characters, of what is looked at as a word.
_LONGEST = 30
#: As many rows may all have a quantity of zero and mean it.
_FEW = 2


def says_do_not_order(text: str) -> bool:
    """Whether it is a remark that the row is not to be ordered, whatever it stands in."""
    return _DO_NOT.search(text.replace("\u2019", "'")) is not None or _plain(text) in _CANCELLED


def unwanted(header: str, cells: Mapping[str, int]) -> frozenset[str]:
    """Of the cells of a column that nobody reads: those that say that their row is not to be ordered.

    `cells`: with how many rows have each.
    """
    key = name_key(_ANSWERS.sub("", header))
    return frozenset((*filter(says_do_not_order, cells), *_unwanted_in(key, cells)))


def _unwanted_in(key: str, cells: Mapping[str, int]) -> Iterator[str]:
    if key in _QUANTITY:
        yield from _zeros(cells)
    elif key in _STATUS:
        yield from (cell for cell in cells if _plain(cell) in _OUT)
    elif key in _ORDER:
        yield from (cell for cell in cells if _is_no(cell) or _plain(cell) in _OUT)
        yield from (cell for cell in cells if _ZERO.fullmatch(cell.strip()) and _are_flags(cells))
    elif key in _DO_NOT_ORDER:
        yield from (cell for cell in cells if _is_yes(cell))
        yield from (cell for cell in cells if cell.strip() == "1" and _are_flags(cells))


def _zeros(cells: Mapping[str, int]) -> Iterator[str]:
    """Where no row has another number it is a stock that is not there yet."""
    zeros = [cell for cell in cells if _ZERO.fullmatch(cell.strip())]
    others = any(cell.strip() for cell in cells if cell not in zeros)
    if others or sum(cells[zero] for zero in zeros) <= _FEW:
        yield from zeros


def _are_flags(cells: Mapping[str, int]) -> bool:
    """Not where numbers go on counting: `order` is a place in a row of them too."""
    return all(
        cell.strip() in ("", "0", "1", "-") or _is_no(cell) or _is_yes(cell) or _plain(cell) in _OUT
        for cell in cells
    )


def _is_no(cell: str) -> bool:
    return cell.strip() in _NO_SIGNS or _plain(cell) in _NO


def _is_yes(cell: str) -> bool:
    return cell.strip() in _YES_SIGNS or _plain(cell) in _YES


def _plain(cell: str) -> str:
    return " ".join(_WORDS.findall(cell.casefold())) if len(cell) <= _LONGEST else ""
