"""A folder that somebody else prepared decides nothing, and runs nothing."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from patternmill.env_file import variable
from patternmill.errors import ConfigurationError
from patternmill.settings import Settings, load_settings
from tests.unit.test_keys import STRANGER, by_root

pytestmark = pytest.mark.usefixtures("folder")
#: What a folder's `.env` may set, what only tightens there, and what is for the environment alone.
FREE = [
    *("studio_url", "api_key", "max_in_flight", "request_timeout", "job_timeout", "create_timeout"),
    *("currency", "pattern_price", "refinement_price", "product_price"),
]
TIGHTENING = [
    *("attempts", "in_doubt_limit", "day_budget", "approve_above_items", "approve_above_cost"),
    *("confirm_above", "retire_at_most", "change_at_most"),
]
EXPORTED = [
    *("profiles", "home", "environment", "ledger_url", "dask", "final_reasons", "operations_file"),
    *("confirm", "sources", "out_below"),
]
EXAMPLE = Path(__file__).resolve().parents[2] / ".env.example"


# -- `.env`


def test_each_setting_is_one_or_the_other() -> None:
    """A new one has to be put into one of the lists, and into that part of the example."""
    settings = {*Settings.model_fields, "studio_url", "api_key"}
    assert sorted(settings) == sorted([*FREE, *TIGHTENING, *EXPORTED])
    free, tightening, exported = re.split(r"^# -- .*$", EXAMPLE.read_text("utf-8"), flags=re.MULTILINE)[1:]
    for text, names in ((free, FREE), (tightening, TIGHTENING), (exported, EXPORTED)):
        assert re.findall(r"^#(PATTERNMILL_\w+)=", text, re.MULTILINE) == list(map(variable, names))


@pytest.mark.parametrize(
    "line",
    [
        *(f"{variable(name)}=x" for name in EXPORTED),
        'PATTERNMILL_DASK={"cluster_class": "os.system", "cluster_kwargs": {"command": "id"}}',
        "patternmill_ledger_url=postgresql://evil.example/x",
        "PATTERNMILL_PROFILES__STAGING__URL=https://evil.example/v1",
        "PATTERNMILL_WORKER_FOLDER=/",
        "PATTERNMILL_DEBUG=1",
        "export PATTERNMILL_HOME=/tmp/evil",
    ],
)
def test_env_file_sets_nothing_that_is_exported_only(folder: Path, line: str) -> None:
    """The variable is named; its value is not shown."""
    (folder / ".env").write_text(line + "\n")
    with pytest.raises(ConfigurationError, match="which a folder's file must not decide") as refused:
        load_settings()
    name, _, value = line.removeprefix("export ").partition("=")
    assert name.upper() in str(refused.value)
    assert len(value) == 1 or value not in str(refused.value)


@pytest.mark.parametrize(
    ("field", "exported", "looser", "tighter"),
    [
        ("attempts", None, "3", "1"),
        ("in_doubt_limit", None, "PT13H", "PT1H"),
        ("confirm_above", None, "101", "7"),
        ("retire_at_most", None, "5,11%", "5,3%"),
        ("retire_at_most", None, "100%", "0"),
        ("attempts", "3", "4", "2"),
        ("in_doubt_limit", "PT14H", "PT15H", "PT13H"),
        ("day_budget", "500", "501", "499"),
        ("approve_above_items", "1", "2", "0"),
        ("approve_above_cost", "10", "1000", "9"),
        ("confirm_above", "200", "201", "199"),
        ("retire_at_most", "50,50%", "51,1%", "49,1%"),
    ],
)
def test_limit_of_the_folder_only_tightens(
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    field: str,
    exported: str | None,
    looser: str,
    tighter: str,
) -> None:
    """A looser one than the default is refused where none is exported; else the tighter one counts."""
    if exported is not None:
        monkeypatch.setenv(variable(field), exported)
    before = getattr(load_settings(), field)
    (folder / ".env").write_text(f"{variable(field)}={tighter}\n")
    assert getattr(load_settings(), field) != before
    (folder / ".env").write_text(f"{variable(field)}={looser}\n")
    if exported is not None:
        assert getattr(load_settings(), field) == before
    else:
        with pytest.raises(ConfigurationError, match=f"{variable(field)} looser than the default"):
            load_settings()


def test_cluster_is_an_address_or_a_file_of_the_home(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its arguments name code, which a variable does not carry."""
    for text in ('{"cluster_class": "os.system"}', "../cluster.json", "/tmp/cluster.json", "tcp://host:1"):
        monkeypatch.setenv("PATTERNMILL_DASK", text)
        with pytest.raises(ConfigurationError, match="PATTERNMILL_DASK"):
            load_settings()
    for text in ("cluster.json", "tls://host:8786"):
        monkeypatch.setenv("PATTERNMILL_DASK", text)
        assert load_settings().dask == text


# -- Prefect's files


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("prefect.toml", ""),
        ("pyproject.toml", '[tool.prefect.logging]\nconfig_path = "x.yml"\n'),
        ("pyproject.toml", "[tool.prefect"),
        (".env", "PREFECT_LOGGING_CONFIG_PATH=x.yml\n"),
        (".env", "prefect_logging_settings_path=x.yml\n"),
        (".env", "PREFECT_PROFILES_PATH=profiles.toml\n"),
    ],
)
def test_folder_that_configures_prefect_is_refused(folder: Path, name: str, text: str) -> None:
    """Its logging configuration runs code as whoever types a command there, with a key set or without."""
    (folder / name).write_text(text)
    with pytest.raises(ConfigurationError, match=f"{name} configures Prefect"):
        load_settings()
    (folder / name).unlink()
    load_settings()
    # The server that a command starts works in a folder of the home.
    served = folder / ".patternmill" / "prefect"
    served.mkdir(parents=True, mode=0o700)
    (served / name).write_text(text)
    with pytest.raises(ConfigurationError, match=f"{name} configures Prefect"):
        load_settings()


def test_fifo_is_no_env_file(folder: Path) -> None:
    """Prefect would read it."""
    os.mkfifo(folder / ".env")
    with pytest.raises(ConfigurationError, match="configures Prefect"):
        load_settings()


def test_checkout_is_no_such_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(EXAMPLE.parent)
    load_settings()


# -- the home


@by_root
@pytest.mark.parametrize(
    ("place", "how"),
    [
        *(("", how) for how in ("foreign", "group", "all", "linked")),
        *((place, "group") for place in ("ledger.sqlite3", "prefect", "studio/pictures/x.png")),
        *(("ledger.sqlite3", how) for how in ("foreign", "linked")),
    ],
)
def test_home_that_others_write_is_refused(folder: Path, place: str, how: str) -> None:
    """That is the home itself, or anything in it: its ledger decides what is bought."""
    home = folder / ".patternmill"
    for path in (home / "studio" / "pictures" / "x.png", home / "prefect" / "port", home / "ledger.sqlite3"):
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        path.write_text("")
        path.chmod(0o600)
    load_settings()
    path = home / place
    if how == "foreign":
        os.chown(path, STRANGER, STRANGER)
    elif how == "linked":
        path.rename(folder / "elsewhere")
        path.symlink_to(folder / "elsewhere")
        load_settings()
        os.chown(folder / "elsewhere", STRANGER, STRANGER)
    else:
        path.chmod(path.stat().st_mode | (0o020 if how == "group" else 0o002))
    with pytest.raises(ConfigurationError, match="would decide what is bought") as refused:
        load_settings()
    assert "PATTERNMILL_HOME=~/.patternmill" in refused.value.remedy
