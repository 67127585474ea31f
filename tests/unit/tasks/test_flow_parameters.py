"""What a deployment's run makes of its parameters."""

from __future__ import annotations

from pathlib import Path

import pytest

from patternmill.runs.request import ImportRequest
from tasks.run_steps import spec_of


@pytest.fixture
def worker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of a worker; its run begins in the code's folder."""
    for name in ("code", "worker"):
        (tmp_path / name).mkdir()
    monkeypatch.chdir(tmp_path / "code")
    monkeypatch.setenv("PATTERNMILL_STUDIO_URL", "https://studio.example/v1")
    monkeypatch.setenv("PATTERNMILL_API_KEY", "studio_key")
    monkeypatch.setenv("PATTERNMILL_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("PATTERNMILL_WORKER_FOLDER", str(tmp_path / "worker"))
    monkeypatch.setenv("PREFECT__RUNTIME__DEPLOYMENT__ID", "d-1")
    return tmp_path / "worker"


def test_paths_are_meant_in_the_folder_of_the_worker(worker: Path) -> None:
    (worker / "tea.csv").write_text("sku,prompt,category\nA-1,tea,Mug\n")
    spec = spec_of(ImportRequest(file=Path("tea.csv")))
    assert Path(spec.source).resolve() == worker / "tea.csv"
    assert spec.catalog_folder.resolve() == worker / "results" / "tea"
