"""A few steps with real media, small enough to decode hundreds of times."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from PIL import Image

from omnidata.actions import Action, Point
from omnidata.media import encode_mp4, encode_wav
from omnidata.types import MediaRef, Step

WIDTH, HEIGHT, FRAMES, SAMPLES = 48, 64, 12, 3200


def make_steps(folder: Path) -> list[Step]:
    """Episodes A, B and C of three, two and four steps; no two media are equal."""
    found = []
    for number, (name, length) in enumerate({"A": 3, "B": 2, "C": 4}.items()):
        actions = [
            Action("tap", (Point(float(n + 1), float(number), "px"),)) for n in range(length)
        ]
        for index in range(length):
            rng = np.random.default_rng((number, index))
            screen = np.kron(rng.integers(0, 255, (8, 6, 3)), np.ones((8, 8, 1))).astype(np.uint8)
            Image.fromarray(screen).save(folder / f"{name}{index}.png")
            clip = [np.roll(screen, 4 * shift, axis=0) for shift in range(FRAMES)]
            (folder / f"{name}{index}.mp4").write_bytes(encode_mp4(clip, fps=10))
            wave = encode_wav(rng.normal(0, 0.1, SAMPLES))
            (folder / f"{name}{index}.wav").write_bytes(wave)
            past = MediaRef("image", folder, f"{name}{index - 2}.png") if index >= 2 else None
            media: dict[str, MediaRef | None] = {
                "screenshot": MediaRef("image", folder, f"{name}{index}.png"),
                "history_screenshot": past,
                "video": MediaRef("video", folder, f"{name}{index}.mp4"),
                "audio": MediaRef("audio", folder, f"{name}{index}.wav"),
            }
            found.append(make_step(name, index, actions, media))
    return found


def make_step(
    episode: str, index: int, actions: Sequence[Action], media: dict[str, MediaRef | None]
) -> Step:
    screen = (WIDTH, HEIGHT)
    return Step(
        sample_id=f"App/{episode}/{index}",
        episode_id=episode,
        step_index=index,
        num_steps=len(actions),
        instruction=f"Do {episode}",
        screen=screen,
        media=media,
        history=tuple(actions[:index]),
        history_screens=(screen,) * index,
        action=actions[index],
        tags={"app": "App", "language": "en"},
        source={"step_id": index},
    )
