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


def make_steps(folder: Path, lengths: Sequence[int] = (3, 2, 4)) -> list[Step]:
    """Episodes A, B, ... of these lengths; no two media are equal."""
    return [
        step
        for number, length in enumerate(lengths)
        for step in make_episode(folder, chr(65 + number), length, number)
    ]


def make_episode(folder: Path, name: str, length: int, seed: int) -> list[Step]:
    actions = [Action("tap", (Point(float(n + 1), float(seed), "px"),)) for n in range(length)]
    for index in range(length):
        write_media(folder, f"{name}{index}", np.random.default_rng((seed, index)))
    return [
        make_step(
            name,
            index,
            actions,
            {
                "screenshot": MediaRef("image", folder, f"{name}{index}.png"),
                "history_screenshot": MediaRef("image", folder, f"{name}{index - 2}.png")
                if index >= 2
                else None,
                "video": MediaRef("video", folder, f"{name}{index}.mp4"),
                "audio": MediaRef("audio", folder, f"{name}{index}.wav"),
            },
        )
        for index in range(length)
    ]


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


def write_media(folder: Path, stem: str, rng: np.random.Generator) -> None:
    screen = np.kron(rng.integers(0, 255, (8, 6, 3)), np.ones((8, 8, 1))).astype(np.uint8)
    Image.fromarray(screen).save(folder / f"{stem}.png")
    clip = [np.roll(screen, 4 * number, axis=0) for number in range(FRAMES)]
    (folder / f"{stem}.mp4").write_bytes(encode_mp4(clip, fps=10))
    (folder / f"{stem}.wav").write_bytes(encode_wav(rng.normal(0, 0.1, SAMPLES)))
