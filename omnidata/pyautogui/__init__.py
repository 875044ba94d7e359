"""Calls of pyautogui as agents write them, read and never executed.

OSWorld's coordinates are pixels, AgentNet's are shares of the screen, and the functions have the
same names in both: whoever reads a dataset says which.
"""

from omnidata.pyautogui.calls import Button, Call, Code, Kind
from omnidata.pyautogui.nearest import nearest
from omnidata.pyautogui.reading import LONGEST, WORDS, read_code, read_turn
from omnidata.pyautogui.spelling import spelled

__all__ = [
    "LONGEST",
    "WORDS",
    "Button",
    "Call",
    "Code",
    "Kind",
    "nearest",
    "read_code",
    "read_turn",
    "spelled",
]
