"""A cluster that would lose a run or expose it is refused before anything is bought."""

from __future__ import annotations

import json
import pickle
from pathlib import Path

import cloudpickle
import pytest
from pydantic import SecretStr

from flows.bulk_import import bulk_import
from flows.catalog_refresh import catalog_refresh
from flows.remake_patterns import remake_patterns
from flows.retry_failed import retry_failed
from patternmill.errors import ConfigurationError
from patternmill.files import replace_private
from patternmill.profiles import Profile
from patternmill.runs.safeguards import require_machines
from patternmill.settings import Settings
from tasks.machines import SCHEDULER_SETTINGS, _connect, _runner
from tasks.rows import GROUP_TASK

CLUSTER = "tls://10.0.0.1:8786"
LEDGER = SecretStr("postgresql://ledger@db.example/patternmill")
SERVICE = Profile(url="https://studio.example/v1", key=SecretStr("key"))


def test_machines_need_a_ledger_and_a_service_that_all_reach(tmp_path: Path) -> None:
    settings = Settings(home=tmp_path, dask=CLUSTER, profiles={"staging": SERVICE})
    with pytest.raises(
        ConfigurationError, match=r"several machines need a ledger in PostgreSQL.*PATTERNMILL_LEDGER_URL"
    ):
        require_machines(settings)
    require_machines(settings.model_copy(update={"ledger_url": LEDGER}))
    require_machines(settings.model_copy(update={"dask": None}))


@pytest.mark.parametrize(
    ("kwargs", "refusal"),
    [
        ({"n_workers": 0, "dashboard_address": None}, r"tcp://127\.0\.0\.1:\d+ is not encrypted"),
        ({"n_workers": 0, "dashboard_address": None, "security": True}, ""),
    ],
)
def test_cluster_that_anybody_can_use_is_refused(
    kwargs: dict[str, object], refusal: str, tmp_path: Path
) -> None:
    """A scheduler's port is code execution. One of this process has the settings that a run needs."""
    with _runner(*local_cluster(tmp_path, kwargs)) as runner:
        if refusal:
            with pytest.raises(ConfigurationError, match=refusal):
                _connect(runner)
        else:
            _connect(runner)


def local_cluster(home: Path, kwargs: dict[str, object]) -> tuple[str, Path]:
    """The file of a cluster of this process, and the home that has it."""
    cluster = {"cluster_class": "distributed.LocalCluster", "cluster_kwargs": kwargs}
    replace_private(home / "local.json", json.dumps(cluster))
    return "local.json", home


def test_scheduler_with_other_settings_is_refused(tmp_path: Path) -> None:
    """By default a frozen worker keeps its groups for five minutes."""
    import dask

    runner = _runner(*local_cluster(tmp_path, {"processes": False, "n_workers": 0}))
    refusing = pytest.raises(ConfigurationError, match="'worker-ttl': '5m'")
    with dask.config.set({"distributed.scheduler.worker-ttl": "5m"}), runner, refusing as refused:
        _connect(runner)
    assert str(SCHEDULER_SETTINGS) in refused.value.remedy


@pytest.mark.parametrize(
    "sent",
    [bulk_import, catalog_refresh, remake_patterns, retry_failed, GROUP_TASK],
    ids=lambda sent: sent.name,
)
def test_what_is_sent_to_machines_can_be_pickled(sent: object) -> None:
    """Each group is sent with its flow; a function that Prefect has wrapped is sent with everything that it names."""
    assert pickle.loads(cloudpickle.dumps(sent)).name == sent.name  # type: ignore[attr-defined]
