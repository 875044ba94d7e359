"""What `--dry-run` prints."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from omnidata.cli import terminal
from omnidata.errors import counted


def print_preview(seen: Mapping[str, Any], as_json: bool) -> None:
    """The first conversation and the estimate (see `omnidata.run.dryrun`), on stdout."""
    if as_json:
        terminal.print_json(seen)
        return
    terminal.say(f"what {seen['model']} would get for {seen['sample_id']}:")
    for message in seen["conversation"]:
        terminal.say(f"--- {message['role']}")
        for part in message["parts"]:
            terminal.say(part["text"] if "text" in part else _medium(part))
    terminal.say("--- estimate")
    terminal.say(f"steps: {seen['steps']}, of which {seen['answered']} have an answer")
    terminal.say(f"requests: {seen['requests']}")
    terminal.say(
        f"to send: {seen['bytes']:,} bytes (as {counted(seen['prepared'], 'step')}, on average)"
    )
    tokens = seen["tokens"]
    terminal.say(
        f"tokens: {tokens['input']:,} of input, {tokens['output']:,} of output ({tokens['how']})"
    )
    if cost := seen.get("cost"):
        price = f"with prices of {cost['prices_of']}"
        terminal.say(f"cost: {cost['amount']:.2f} {cost['currency']} ({price}, for these tokens)")
    for problem in seen["unreadable"]:
        terminal.note(f"cannot be sent: {problem}")
    terminal.note("dry run: nothing was sent or written")


def _medium(part: Mapping[str, Any]) -> str:
    """One line for a medium.

    Examples:
        >>> _medium({"role": "video", "kind": "video", "path": "a/1.mp4", "as": "frames",
        ...          "mime": "image/png", "width": 720, "height": 1600, "frames": 2,
        ...          "times_s": [0.0, 1.5], "bytes": 91234})
        '[video a/1.mp4: 2 frames at 0.0, 1.5 s, image/png, 720x1600, 91,234 bytes]'
        >>> _medium({"role": "audio", "kind": "audio", "path": "a/1.wav", "dropped": "no ears"})
        '[audio a/1.wav: left out: no ears]'
    """
    said: list[str] = []
    if "dropped" in part:
        said.append(f"left out: {part['dropped']}")
    elif "frames" in part:
        times = ", ".join(map(str, part.get("times_s", ())))
        said.append(f"{counted(part['frames'], 'frame')} at {times} s")
    elif "as" in part:
        said.append(part["as"])
    if "mime" in part:
        said.append(part["mime"])
    if part.get("width"):
        said.append(f"{part['width']}x{part['height']}")
    if "scale" in part:
        said.append(f"scaled by {part['scale']:.3f}")
    if "seconds" in part:
        said.append(f"{part['seconds']:.2f} s")
    if "bytes" in part:
        said.append(f"{part['bytes']:,} bytes")
    head = " ".join(filter(None, (part.get("role") or part["kind"], part.get("path"))))
    return f"[{head}: {', '.join(said)}]" if said else f"[{head}]"
