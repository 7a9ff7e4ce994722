"""Pictures of README and docs, taken of the pages of real runs.

    python -m benchmarks.pictures RUNS [--out docs/images] [--run NAME] [--with NAME ...]

Needs Playwright, Chromium and Pillow (`pip install '.[dev,monitor]'`). The animated picture shows
the monitor while the iterations of the runs are written again, one a frame.
"""

import argparse
import json
import shutil
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from mlrl_learners.monitor.index import EpisodeIndex
from mlrl_learners.monitor.library import Library
from mlrl_learners.monitor.server import make_app, server_config
from mlrl_learners.report import write_report
from mlrl_learners.runs.evaluations import decode_iteration
from mlrl_learners.runs.files import CONFIG_FILE, EPISODES_FILE, EVALUATIONS_FILE, METRICS_FILE
from mlrl_learners.runs.regular import read_lines
from mlrl_learners.runs.stored import UNREADABLE

__all__ = ["main", "write_beginning"]

SIZE = (1280, 800)
ANIMATED = (1120, 560)
COLORS = 256
MOST_RUNS = 9
TRIES = 60
SHORTEN = """(folder) => {
    for (const code of document.querySelectorAll("code"))
        code.textContent = code.textContent.replaceAll(folder, "runs");
}"""
PATIENCE_MS = 120_000
FRAME_MS, LAST_MS = 350, 2500
_READY = 200
_CHROMIUM = ("chromium", "chromium-browser", "google-chrome")


def main(arguments: Sequence[str] | None = None) -> int:
    """Take every picture."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("runs", type=Path, help="a folder of runs")
    parser.add_argument("--out", type=Path, default=Path("docs/images"))
    parser.add_argument("--run", help="the run of reader and report; the first one by default")
    parser.add_argument("--with", dest="others", nargs="*", help="runs beside it in the curves")
    asked = parser.parse_args(arguments)
    names = [run.name for run in Library(asked.runs).runs()]
    if not names:
        parser.error(f"no runs below {str(asked.runs)!r}")
    first = asked.run or names[0]
    shown = dict.fromkeys([first, *(names if asked.others is None else asked.others)])
    with _browser() as browser:
        for name, size in _pages(asked.runs, asked.out, first, list(shown)[:MOST_RUNS], browser):
            print(f"{name}: {size / 1000:.0f} kB")
    return 0


def write_beginning(run: Path, copy: Path, iterations: int) -> None:
    """Write the first iterations of a run's metrics and evaluations into another folder."""
    copy.mkdir(parents=True, exist_ok=True)
    if (run / CONFIG_FILE).is_file():
        shutil.copy(run / CONFIG_FILE, copy)
    for name in (METRICS_FILE, EVALUATIONS_FILE):
        kept = [line for line in read_lines(run / name) if _iteration(line) <= iterations]
        (copy / name).write_text("".join(kept), "utf-8")


def _pages(
    runs: Path,
    out: Path,
    first: str,
    shown: Sequence[str],
    browser: Any,  # noqa: ANN401
) -> Iterator[tuple[str, int]]:
    """Take the pictures; yield name and size in bytes of each."""
    out.mkdir(parents=True, exist_ok=True)
    names = [("chosen", 1), *(("run", name) for name in shown)]
    newest = {"run": first, "key": _newest(runs, first)}
    with _served(runs) as address:
        still = {
            "monitor.png": f"{address}/?{urlencode([*names, ('group', 'seed')])}",
            "monitor_run.png": f"{address}/run?{urlencode({'run': first})}",
            "monitor_episode.png": f"{address}/episode?{urlencode(newest)}",
        }
        for name, where in still.items():
            yield _save(out / name, _picture(browser, runs, where, SIZE))
    with tempfile.TemporaryDirectory() as folder:
        report = write_report(_path(runs, first), Path(folder) / "report.html")
        yield _save(out / "report.png", _picture(browser, runs, report.as_uri(), SIZE))
    yield _animate(out / "training.webp", runs, shown, browser)


def _animate(file: Path, runs: Path, names: Sequence[str], browser: Any) -> tuple[str, int]:  # noqa: ANN401
    """Write the picture of the monitor after every iteration."""
    last = max(_iteration(line) for name in names
               for line in read_lines(_path(runs, name) / METRICS_FILE))  # fmt: skip
    query = [("chosen", 1), *(("run", name) for name in names), ("group", "seed")]
    frames: list[bytes] = []
    with tempfile.TemporaryDirectory() as folder:
        for iteration in range(1, last + 1):
            for name in names:
                write_beginning(_path(runs, name), Path(folder) / name, iteration)
            with _served(Path(folder)) as address:
                where = f"{address}/?{urlencode(query)}"
                frames.append(_picture(browser, runs, where, ANIMATED))
    return file.name, _write_frames(file, frames)


def _write_frames(file: Path, frames: Sequence[bytes]) -> int:
    from PIL import Image

    images = [Image.open(BytesIO(frame)).convert("RGB") for frame in frames]
    times = [FRAME_MS] * (len(images) - 1) + [LAST_MS]
    images[0].save(file, save_all=True, append_images=images[1:], duration=times, loop=0,
                   quality=60, method=6)  # fmt: skip
    return file.stat().st_size


def _save(file: Path, picture: bytes) -> tuple[str, int]:
    from PIL import Image

    image = Image.open(BytesIO(picture)).convert("RGB")
    image.quantize(COLORS, Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE).save(
        file, optimize=True
    )
    return file.name, file.stat().st_size


def _picture(browser: Any, runs: Path, address: str, size: tuple[int, int]) -> bytes:  # noqa: ANN401
    page = browser.new_page(viewport={"width": size[0], "height": size[1]})
    try:
        page.set_default_timeout(PATIENCE_MS)
        for _ in range(TRIES):  # the index of a long file takes some time
            answer = page.goto(address)
            if answer is None or answer.status == _READY or not address.startswith("http"):
                break
            page.wait_for_timeout(500)
        page.evaluate(SHORTEN, str(runs.resolve()))
        return bytes(page.screenshot())
    finally:
        page.close()


def _path(runs: Path, name: str) -> Path:
    found = Library(runs).get(name)
    if found is None:
        raise SystemExit(f"there is no run {name!r} below {str(runs)!r}")
    return found.path


def _newest(runs: Path, name: str) -> str:
    """Return the key of the last episode of training of a run."""
    index = EpisodeIndex(_path(runs, name) / EPISODES_FILE)
    index.read_all()
    return index.entry(len(index) - 1).key


def _iteration(line: str) -> int:
    """Return the iteration of a line of metrics or evaluations; 0 if it has none."""
    try:
        return decode_iteration(json.loads(line)).iteration
    except UNREADABLE:
        return 0


@contextmanager
def _served(runs: Path) -> Iterator[str]:
    import uvicorn

    config = server_config(make_app(runs))
    config.port = 0
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run)
    thread.start()
    while not server.started:
        time.sleep(0.01)
    try:
        yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join()


@contextmanager
def _browser() -> Iterator[Any]:
    from playwright.sync_api import sync_playwright

    program = next(filter(None, map(shutil.which, _CHROMIUM)), None)
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=program, timeout=PATIENCE_MS)
        yield browser
        browser.close()


if __name__ == "__main__":
    raise SystemExit(main())
