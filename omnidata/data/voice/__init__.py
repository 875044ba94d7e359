"""Instructions as speech: WAV files under the names by which `-T voice=DIR` looks for them.

`docs/voice.md` says what synthetic speech means for the paper's Table 5.
"""

from omnidata.data.voice.command import Command
from omnidata.data.voice.engine import Voice, VoiceError
from omnidata.data.voice.espeak import Espeak
from omnidata.data.voice.render import Rendering, render

__all__ = ["Command", "Espeak", "Rendering", "Voice", "VoiceError", "render"]
