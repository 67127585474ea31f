"""The one double of the service: its faults, its dialects, its record, and the audit that reads the record."""

from tests.double.audit import Audit, Line
from tests.double.server import serving
from tests.double.service import Double
from tests.double.transport import DoubleTransport
from tests.double.weather import DIALECTS, FAULTS, SPELLS, Spell, Weather

__all__ = [
    "DIALECTS", "FAULTS", "SPELLS", "Audit", "Double", "DoubleTransport", "Line", "Spell", "Weather", "serving",
]  # fmt: skip
