"""Takes docs/pictures/migrate-report.png: the report on examples/games, its summary above one of
its models.

PYTHONPATH=. .venv/bin/python scripts/report_picture.py
"""

from __future__ import annotations

import base64
import runpy
import shutil
import tempfile
from pathlib import Path

from partita_migrate.costing.estimate_stage import estimate
from partita_migrate.designing.model_stage import model
from partita_migrate.report.report_page import report
from partita_migrate.understanding.analyze_stage import analyze
from partita_migrate.understanding.plan_stage import plan
from partita_migrate.workspace.migration_folder import Folder
from testkit.browser.chromium import Browser, browsing

HOME = Path(__file__).parents[1]
PICTURE = HOME / "docs" / "pictures" / "migrate-report.png"
WIDTH = 1180
SUMMARY_PIXELS = 1000
MODEL_PIXELS = 520
MODEL = "#model-2 .model-table"
JOINED = """
<body style="margin: 0"><img style="display: block; border-bottom: 2px solid #dcdcd4"
src="data:image/png;base64,{}"><img style="display: block" src="data:image/png;base64,{}"></body>
"""


def main() -> None:
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as name:
        place = Path(name)
        page = _report(place / "games")
        with browsing(place / "profile") as browser:
            browser.open(page, width=WIDTH, height=SUMMARY_PIXELS)
            summary = _shot(browser, 0, SUMMARY_PIXELS)
            browser.click("#tab-model-2")
            top = browser.evaluate(
                f"document.querySelector('{MODEL}').getBoundingClientRect().top + scrollY"
            )
            drawn = _shot(browser, round(top), MODEL_PIXELS)
            joined = place / "joined.html"
            joined.write_text(JOINED.format(summary, drawn))
            browser.open(joined, width=WIDTH, height=SUMMARY_PIXELS + MODEL_PIXELS)
            picture = _shot(browser, 0, SUMMARY_PIXELS + MODEL_PIXELS + 2)
    PICTURE.write_bytes(base64.b64decode(picture))
    print(f"{PICTURE.relative_to(HOME)}, {PICTURE.stat().st_size:,} bytes")


def _report(path: Path) -> Path:
    shutil.copytree(HOME / "examples" / "games", path)
    runpy.run_path(str(path / "generate.py"), run_name="__main__")
    folder = Folder.open(path)
    for stage in (plan, analyze, model, estimate, report):
        stage(folder)
    return path / "report.html"


def _shot(browser: Browser, top: int, height: int) -> str:
    """Returns a screenshot of a part of the page, in base64."""
    clip = {"x": 0, "y": top, "width": WIDTH, "height": height, "scale": 1}
    found = browser.call(
        "Page.captureScreenshot", format="png", clip=clip, captureBeyondViewport=True
    )
    return str(found["data"])


if __name__ == "__main__":
    main()
