"""What stands before a local model: a conversation's media are decoded and become its tensors."""

from __future__ import annotations

from typing import Any

from omnidata.adapters.capabilities import Capabilities
from omnidata.adapters.hf import checkpoint
from omnidata.adapters.hf.decoded import Decoded, Decoder
from omnidata.adapters.hf.inputs import Inputs
from omnidata.adapters.hf.options import LocalOptions
from omnidata.adapters.walk import Line, Turn
from omnidata.errors import MediaError
from omnidata.types import Conversation


class Senses:
    """Evaluation and training read a checkpoint's prompts through one of these.

    Args:
        path: a folder, or the name of a model that transformers finds.
        options: of the model.

    Attributes:
        kind: the checkpoint's `model_type`.
        family: what is known of that type.
        capabilities: what the model takes.
        processor: of the checkpoint.
        inputs: makes the tensors.

    Raises:
        PlatformError: the libraries of the extra `local` are missing or do not load.
        UsageError: there is no such checkpoint, nobody knows its type, or an option is not for it.
    """

    def __init__(self, path: str, options: LocalOptions) -> None:
        """Read the configuration and the processor, not the weights."""
        self.kind, self.family = checkpoint.recognise(path, options)
        native = options.video == "native" and "video" in self.family.accepts
        self.capabilities = Capabilities(
            video="native" if native else "frames",
            frames=options.frames,
            frame_times=options.frame_times,
            max_images=options.max_images,
            image_size=options.image_size,
            degrade=options.degrade,
        )
        self.processor: Any = checkpoint.load_processor(path, options)
        self.inputs = Inputs(self.processor, options)
        rate = checkpoint.sampling_rate(self.processor)
        self._decoder = Decoder(self.capabilities, self.family, rate=rate, fps=options.fps)

    def decode(
        self, conversation: Conversation, sample_id: str
    ) -> tuple[list[Turn[Decoded]], Line]:
        """The messages with their media as arrays, and the receipt.

        Raises:
            MediaError: a medium cannot be read, or a text holds what the processor would take for
                one.
            UsageError: the model cannot take the conversation, and `degrade` is off.
        """
        turns, receipt = self._decoder.decode(conversation)
        if forged := self.inputs.forged(turns):
            raise MediaError(
                f"a text of the prompt holds {forged}, which stands for a medium",
                where=sample_id,
                expected="texts without the placeholders of the model",
                remedy="leave the step out with --exclude",
                fault="refused",
            )
        return turns, dict(receipt)
