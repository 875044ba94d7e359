"""Make every picture of README and docs from the demo: `make pictures`.

A picture has a source: the page that a browser shows, the text of a terminal, a figure, or the
words of a badge. `docs/pictures/sources.json` holds a hash of each source and of each picture, so
that a test finds pictures that are older than their sources.
"""

from __future__ import annotations

import io
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
PICTURES = ROOT / "docs" / "pictures"
HASHES = "sources.json"
SCHEMES = ("light", "dark")
CENTER, RANDOM = "omnidata-demo/runs/baseline-center-seed0", "runs/random"
STEP = "Chirp/C001/1"
"""An English step: a machine without other fonts shows boxes in place of Chinese."""

PREPARATION = (
    f"evaluate omnigui omnidata-demo/data --model baseline:random --out {RANDOM}",
    f"report {CENTER} --html pages",
)


@dataclass(frozen=True, slots=True)
class Screenshot:
    """A page as a browser shows it, in light and in dark.

    Attributes:
        page: a glob below the folder of pages.
        title: a text of the page that is meant.
        size: of the window, (width, height) in CSS pixels.
        until: the picture ends below this element, where the page has it.
    """

    page: str
    title: str
    size: tuple[int, int]
    until: str = ""


@dataclass(frozen=True, slots=True)
class Terminal:
    """A command and the beginning of its standard output, in light and in dark.

    Attributes:
        command: without `omnidata`.
        lines: of the output, at most.
    """

    command: str
    lines: int = 40


SCREENSHOTS = {
    "step": Screenshot("steps/*.html", f"<title>{STEP} ", (1100, 1190), until=".shots"),
    "report": Screenshot("index.html", "<title>", (1100, 800)),
}
TERMINALS = {
    "demo": Terminal("demo"),
    "compare": Terminal(f"compare {CENTER} {RANDOM}", lines=24),
}
SEEK = """() => Promise.all([...document.querySelectorAll("video")].map(
  clip => new Promise(done => {
    setTimeout(done, 5000)
    clip.addEventListener("seeked", done, {once: true})
    const seek = () => { clip.currentTime = clip.duration * 0.8 }
    if (clip.readyState > 0) seek()
    else clip.addEventListener("loadedmetadata", seek, {once: true})
  })))"""
"""A late frame of a clip says more than the first one."""
COLUMNS = 100
"""Of a terminal: pictures of one width have letters of one size."""
FIGURE = "dataset.svg"
FIGURE_COMMAND = f"info omnigui omnidata-demo/data --plot {FIGURE}"


def badges() -> dict[str, tuple[str, str]]:
    """Return name -> (label, value) of the badges, after `pyproject.toml`."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    known = [line.split(" :: ") for line in project["classifiers"]]
    versions = [parts[-1] for parts in known if parts[:-1] == ["Programming Language", "Python"]]
    versions = [version for version in versions if "." in version]
    found = {
        "licence": ("licence", project["license"]),
        "python": ("python", " | ".join(versions)),
    }
    return found | ({"typed": ("typing", "typed")} if ["Typing", "Typed"] in known else {})


def run(folder: Path, command: str) -> str:
    """Run a command of omnidata in a terminal of `COLUMNS`, and return its standard output."""
    environment = {**os.environ, "COLUMNS": str(COLUMNS), "FORCE_COLOR": "1", "HF_HUB_OFFLINE": "1"}
    environment.pop("NO_COLOR", None)
    done = subprocess.run(
        [sys.executable, "-m", "omnidata", *command.split()],
        cwd=folder,
        env=environment,
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    if done.returncode != 0:
        raise SystemExit(f"omnidata {command}: exit code {done.returncode}\n{done.stderr}")
    return done.stdout


def find_page(folder: Path, shot: Screenshot) -> Path:
    """Return the page of a screenshot."""
    pages = sorted((folder / "pages").glob(shot.page))
    return next(page for page in pages if shot.title in page.read_text(encoding="utf-8"))


def prepare(folder: Path, *, figures: bool) -> dict[str, str]:
    """Make the demo, runs, pages and figures in an empty folder; return picture -> source."""
    sources = {f"{name}.svg": ": ".join(words) for name, words in badges().items()}
    texts = {"demo": run(folder, TERMINALS["demo"].command)}
    for command in PREPARATION:
        run(folder, command)
    texts |= {
        name: run(folder, terminal.command)
        for name, terminal in TERMINALS.items()
        if name not in texts
    }
    style = (folder / "pages" / "pages.css").read_text(encoding="utf-8")
    for scheme in SCHEMES:
        for name, shot in SCREENSHOTS.items():
            page = find_page(folder, shot).read_text(encoding="utf-8")
            sources[f"{name}-{scheme}.png"] = page + style
        for name, terminal in TERMINALS.items():
            sources[f"{name}-{scheme}.svg"] = begin(terminal, texts[name])
    if figures:
        run(folder, FIGURE_COMMAND)
        sources[FIGURE] = (folder / FIGURE).read_text(encoding="utf-8")
    return sources


def begin(terminal: Terminal, text: str) -> str:
    """Return the command and the first tables of its output, as ANSI text."""
    lines = [line.rstrip() for line in text.strip().splitlines()]
    shown = lines[: terminal.lines]
    if len(lines) > terminal.lines and "" in shown:
        shown = shown[: len(shown) - 1 - shown[::-1].index("")]
    return "\n".join([f"$ omnidata {terminal.command}", "", *shown])


def draw_terminal(text: str, scheme: str) -> str:
    """Draw ANSI text as SVG, which loads no font from outside."""
    from rich.console import CONSOLE_SVG_FORMAT, Console
    from rich.terminal_theme import SVG_EXPORT_THEME, TerminalTheme
    from rich.text import Text

    light = TerminalTheme((255, 255, 255), (31, 35, 40), *_light_colours())
    body = Text.from_ansi(text)
    width = max(COLUMNS, *(line.cell_len for line in body.split()))
    console = Console(record=True, width=width, file=io.StringIO(), color_system="truecolor")
    console.print(body, no_wrap=True, crop=False)
    console.print()  # below the last line's letters
    drawn = console.export_svg(
        title="",
        theme=SVG_EXPORT_THEME if scheme == "dark" else light,
        code_format=re.sub(r"@font-face \{\{.*?\}\}\s*", "", CONSOLE_SVG_FORMAT, flags=re.S),
        unique_id="terminal",
    )
    if scheme == "light":
        drawn = drawn.replace("rgba(255,255,255,0.35)", "rgba(31,35,40,0.15)")
    return "\n".join(line.rstrip() for line in drawn.splitlines()) + "\n"


def _light_colours() -> tuple[list[tuple[int, int, int]], list[tuple[int, int, int]]]:
    """The eight colours of a terminal on white, and the bright ones."""
    names = "24292f cf222e 116329 4d2d00 0969da 8250df 1b7c83 6e7781"
    bright = "57606a a40e26 1a7f37 633c01 218bff a475f9 3192aa 8c959f"

    def read(text: str) -> list[tuple[int, int, int]]:
        return [(int(x[:2], 16), int(x[2:4], 16), int(x[4:], 16)) for x in text.split()]

    return read(names), read(bright)


def draw_badge(label: str, value: str) -> str:
    """Draw a badge as SVG."""
    left, right = 14 + 6.6 * len(label), 14 + 6.6 * len(value)
    width = left + right
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="20" role="img" '
        f'aria-label="{label}: {value}"><title>{label}: {value}</title>'
        f'<clipPath id="round"><rect width="{width:.0f}" height="20" rx="3"/></clipPath>'
        f'<g clip-path="url(#round)"><rect width="{left:.0f}" height="20" fill="#444c56"/>'
        f'<rect x="{left:.0f}" width="{right:.0f}" height="20" fill="#1f6feb"/></g>'
        '<g fill="#fff" text-anchor="middle" font-size="11" '
        'font-family="Verdana,DejaVu Sans,sans-serif">'
        f'<text x="{left / 2:.1f}" y="14">{label}</text>'
        f'<text x="{left + right / 2:.1f}" y="14">{value}</text></g></svg>\n'
    )


def photograph(folder: Path) -> Iterator[tuple[str, bytes]]:
    """Yield the name and the PNG of each screenshot."""
    from playwright.sync_api import sync_playwright

    found = shutil.which("chromium") or shutil.which("google-chrome")
    if not found:
        raise SystemExit("no browser. Fix: apt-get install chromium fonts-dejavu-core")
    arguments = ["--host-resolver-rules=MAP * ~NOTFOUND", "--hide-scrollbars"]
    arguments += ["--no-sandbox"] if os.geteuid() == 0 else []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=found, args=arguments)
        for name, shot in SCREENSHOTS.items():
            for scheme in SCHEMES:
                yield f"{name}-{scheme}.png", _photograph(browser, folder, shot, scheme)
        browser.close()


def _photograph(browser: Any, folder: Path, shot: Screenshot, scheme: str) -> bytes:
    width, height = shot.size
    page = browser.new_page(viewport={"width": width, "height": height}, color_scheme=scheme)
    page.goto(find_page(folder, shot).as_uri(), wait_until="load")
    page.evaluate(SEEK)
    page.wait_for_timeout(2000)  # the controls of a clip that has just moved show that it loads
    end = page.query_selector(shot.until) if shot.until else None
    if end:
        box = end.bounding_box()
        height = round(box["y"] + box["height"] + 24)
        page.set_viewport_size({"width": width, "height": height})
        page.wait_for_timeout(500)
    taken = page.screenshot(full_page=False)
    page.close()
    return shrink(taken)


def shrink(picture: bytes) -> bytes:
    """Return the same PNG, packed better; fewer colours would mix up those of the verdicts."""
    from PIL import Image

    out = io.BytesIO()
    Image.open(io.BytesIO(picture)).convert("RGB").save(out, "PNG", optimize=True)
    return out.getvalue()


def draw(folder: Path, sources: Mapping[str, str]) -> dict[str, bytes]:
    """Return picture -> its bytes."""
    drawn = {f"{name}.svg": draw_badge(*words).encode() for name, words in badges().items()}
    for scheme in SCHEMES:
        for name in TERMINALS:
            picture = f"{name}-{scheme}.svg"
            drawn[picture] = draw_terminal(sources[picture], scheme).encode()
    drawn[FIGURE] = sources[FIGURE].encode()
    return drawn | dict(photograph(folder))


def find_stale(sources: Mapping[str, str], pictures: Path = PICTURES) -> list[str]:
    """Return the pictures whose source changed, or that are not the ones that were made."""
    made = json.loads((pictures / HASHES).read_text(encoding="utf-8"))
    stale = [
        name
        for name, source in sources.items()
        if made.get(name, {}).get("source") != hash_of(source.encode())
        or not (pictures / name).is_file()
        or made[name]["picture"] != hash_of((pictures / name).read_bytes())
    ]
    return sorted(stale)


def hash_of(data: bytes) -> str:
    """Return the SHA-256 in hex."""
    return sha256(data).hexdigest()


def main() -> None:
    """Make all pictures and write the hashes."""
    with tempfile.TemporaryDirectory() as name:
        sources = prepare(Path(name), figures=True)
        drawn = draw(Path(name), sources)
    PICTURES.mkdir(exist_ok=True)
    for old in PICTURES.iterdir():
        old.unlink()
    for name, data in drawn.items():
        (PICTURES / name).write_bytes(data)
    hashes = {
        name: {"source": hash_of(sources[name].encode()), "picture": hash_of(data)}
        for name, data in sorted(drawn.items())
    }
    (PICTURES / HASHES).write_text(json.dumps(hashes, indent=1) + "\n", encoding="utf-8")
    size = sum(map(len, drawn.values()))
    sys.stderr.write(f"{len(drawn)} pictures, {size / 1e6:.2f} MB: {PICTURES}\n")


if __name__ == "__main__":
    main()
