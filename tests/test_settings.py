"""Settings: from the environment, and the few that a folder's `.env` may hold."""

from pathlib import Path

import pytest

from patternmill.errors import Refusal
from patternmill.settings import read_settings
from patternmill.text import money, parse_amount


@pytest.fixture(autouse=True)
def _folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("STUDIO_URL", "API_KEY", "HOME", "ENVIRONMENT"):
        monkeypatch.delenv(f"PATTERNMILL_{name}", raising=False)


def folder(text):
    Path(".env").write_text(text)


def test_a_folder_may_name_a_service_with_its_key_and_prices():
    folder(
        "PATTERNMILL_STUDIO_URL=https://a/v1\nPATTERNMILL_API_KEY=k\nPATTERNMILL_PRICE_PATTERN=1.50\nOTHER=x\n"
    )
    settings = read_settings()
    assert (settings.studio_url, settings.price_pattern) == ("https://a/v1", 15_000)
    assert settings.service == "production"


@pytest.mark.parametrize("name", ["STUDIO_URL", "API_KEY"])
def test_an_address_and_a_key_of_two_places_are_never_paired(monkeypatch, name):
    folder("PATTERNMILL_STUDIO_URL=https://a/v1\nPATTERNMILL_API_KEY=k\n")
    monkeypatch.setenv(f"PATTERNMILL_{name}", "https://mine/v1")
    settings = read_settings()
    assert (settings.studio_url == "") is (name == "API_KEY")
    assert (settings.api_key.get_secret_value() == "") is (name == "STUDIO_URL")


def test_what_a_folder_may_not_decide_is_refused_by_name():
    folder("PATTERNMILL_HOME=/tmp\n")
    with pytest.raises(Refusal, match="PATTERNMILL_HOME"):
        read_settings()


def test_a_wrong_setting_is_named(monkeypatch):
    monkeypatch.setenv("PATTERNMILL_MAX_IN_FLIGHT", "0")
    with pytest.raises(Refusal, match="PATTERNMILL_MAX_IN_FLIGHT"):
        read_settings()


def test_without_a_service_the_environment_is_the_embedded_studio():
    assert read_settings().service == "studio"


@pytest.mark.parametrize(
    ("text", "amount"),
    [("40.00", 400_000), ("€40", 400_000), ("EUR 0.5", 5_000), ("40,50 €", 405_000), ("0.0125", 125)],
)
def test_amounts_as_people_write_them(text, amount):
    assert parse_amount(text) == amount


@pytest.mark.parametrize("text", ["", "many", "-1", "1,000", "1.000,00", "1 000"])
def test_an_ambiguous_amount_is_refused(text):
    with pytest.raises(ValueError, match="is not an amount"):
        parse_amount(text)


def test_an_amount_is_shown_with_its_unit():
    assert money(400_000, "EUR") == "40.00 EUR"
