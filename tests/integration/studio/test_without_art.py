"""A studio without the package `studio.art`: it starts, and every picture is a seeded tile."""

from __future__ import annotations

import io
import urllib.request
from collections.abc import Callable
from pathlib import Path

import pytest
from PIL import Image

from studio.testing import Studio

#: What each Python process runs at its start: the package is not to be found.
HIDING = 'import sys; sys.modules["studio.art"] = None'


@pytest.fixture
def without_art(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "sitecustomize.py").write_text(HIDING, "utf-8")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))


def picture(url: str) -> bytes:
    with urllib.request.urlopen(url, timeout=30) as answer:
        return bytes(answer.read())


def result_of(studio: Studio) -> Callable[..., dict[str, str]]:
    def result(operation: str, /, **body: object) -> dict[str, str]:
        job = studio.ask("jobs/get", jobId=studio.ask(operation, **body)[1]["jobId"])[1]
        assert job["status"] == "succeeded", job
        found: dict[str, str] = job["result"]
        return found

    return result


def test_pictures_are_seeded_tiles(without_art: None) -> None:
    """Another for each further pattern of a prompt, for another prompt or palette, and a product's in a margin."""
    with Studio(process=True) as studio:
        result = result_of(studio)
        herons, again, moons = (
            result("patterns/create", requestId=str(number), prompt=prompt)
            for number, prompt in enumerate(("herons", "herons", "moons"))
        )
        palette = ["#102030", "#ffd84d"]
        recoloured = result("refine/recolor", requestId="r", patternId=herons["patternId"], palette=palette)
        selections = {"size": "11oz", "finish": "matte"}
        product = result(
            "products/create",
            requestId="p",
            patternId=herons["patternId"],
            categoryId="cat_stg_mug",
            selections=selections,
        )
        shown = [picture(one["imageUrl"]) for one in (herons, again, moons, recoloured, product)]

    assert len(set(shown)) == 5
    images = [Image.open(io.BytesIO(one)).convert("RGB") for one in shown]
    assert {image.size for image in images} == {(512, 512)}
    assert images[3].getpixel((256, 256)) in ((16, 32, 48), (255, 216, 77))
    assert images[4].getpixel((5, 5)) == (239, 236, 230)
