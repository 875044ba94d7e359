"""The subtasks of the sample pool, with the resources and the actions of each.

Resources are kinds in snake_case, as in OmniBench's appendix C: a kind that ends with `_path` is a
file, whose name is the parameter of that name; any other is a state.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product

from omnidata.synth.pool.screens import (
    DAYS,
    DISHES,
    FILTERS,
    LANGUAGES,
    PEOPLE,
    STEMS,
    TOPICS,
    WINDOWS,
    Listed,
)


@dataclass(frozen=True, slots=True)
class Ask:
    """A button that opens a dialog, the text typed there, and OK."""

    button: str
    question: str
    value: str


@dataclass(frozen=True, slots=True)
class Press:
    """A button that acts at once, and what the status bar says then."""

    button: str
    says: str


@dataclass(frozen=True, slots=True)
class Pick:
    """An entry of the list; scrolled to where it is out of sight."""

    entry: str
    double: bool = False


@dataclass(frozen=True, slots=True)
class Keys:
    """A shortcut in pywinauto's notation, and what the status bar says then."""

    keys: str
    says: str


Act = Ask | Press | Pick | Keys


@dataclass(frozen=True, slots=True)
class Recipe:
    """A subtask.

    Attributes:
        app: of the subtask.
        template: the instruction with parameters.
        inputs, outputs: kinds of resources.
        acts: after the app was opened.
        intents: keys of `INTENTS`.
    """

    app: str
    template: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    acts: tuple[Act, ...]
    intents: tuple[str, ...]


INTENTS: Mapping[str, str] = {
    "talk": "Prepare an illustrated slide deck for a talk",
    "report": "Write a report with a figure and a table",
    "data": "Turn downloaded data into a chart for the others",
    "video": "Cut a short video with music",
    "letter": "Answer colleagues and file what they sent",
    "dinner": "Plan a dinner and tell the guests",
    "foreign": "Bring a text into another language and pass it on",
    "archive": "Collect material and pack it for the archive",
    "manual": "Document a programme with pictures of its windows",
    "script": "Let a script make the figures of a report",
    "gallery": "Prepare pictures for a gallery",
    "week": "Plan the week and share the plan",
}
"""Purposes of tasks, by key."""


def _open(kind: str) -> Ask:
    return Ask("Open", "File to open", f"{{{kind}}}")


_SLIDES = (
    Recipe("Slidora", "Create a new slide deck '{deck_path}'", (), ("deck_path",),
           (Ask("New", "Name of the deck", "{deck_path}"),), ("talk", "data", "gallery", "week")),
    Recipe("Slidora", "Insert the image '{img_path}' into the slide deck '{deck_path}'",
           ("deck_path", "img_path"), ("deck_path",),
           (_open("deck_path"), Ask("Insert", "Image to insert", "{img_path}")),
           ("talk", "data", "gallery")),
    Recipe("Slidora", "Paste the text from the clipboard into the title of '{deck_path}'",
           ("text_in_clipboard", "deck_path"), ("deck_path",),
           (_open("deck_path"), Press("Paste", "Pasted a title"), Keys("^s", "Saved")),
           ("talk", "week")),
    Recipe("Slidora", "Paste the table from the clipboard onto the last slide of '{deck_path}'",
           ("table_in_clipboard", "deck_path"), ("deck_path",),
           (_open("deck_path"), Keys("{END}", "Last slide"), Press("Paste", "Pasted a table")),
           ("data",)),
    Recipe("Slidora", "Add the speaker note 'Thank {name}' to '{deck_path}'",
           ("deck_path",), ("deck_path",),
           (_open("deck_path"), Ask("Notes", "Speaker note", "Thank {name}")), ("talk", "gallery")),
    Recipe("Slidora", "Export the slide deck '{deck_path}' as '{pdf_path}'",
           ("deck_path",), ("pdf_path",),
           (_open("deck_path"), Ask("Export", "Name of the PDF", "{pdf_path}")),
           ("talk", "data", "archive", "gallery")),
)  # fmt: skip

_PAGES = (
    Recipe("Pagewell", "Create a new document '{doc_path}'", (), ("doc_path",),
           (Ask("New", "Name of the document", "{doc_path}"),),
           ("report", "foreign", "manual", "script", "letter")),
    Recipe("Pagewell", "Insert the picture '{img_path}' into the document '{doc_path}'",
           ("doc_path", "img_path"), ("doc_path",),
           (_open("doc_path"), Ask("Insert", "Picture to insert", "{img_path}")),
           ("report", "manual", "script", "dinner")),
    Recipe("Pagewell", "Paste the text from the clipboard at the end of '{doc_path}'",
           ("text_in_clipboard", "doc_path"), ("doc_path",),
           (_open("doc_path"), Keys("^{END}", "End of text"), Press("Paste", "Pasted a text")),
           ("report", "foreign", "letter", "dinner")),
    Recipe("Pagewell", "Paste the table from the clipboard into the document '{doc_path}'",
           ("table_in_clipboard", "doc_path"), ("doc_path",),
           (_open("doc_path"), Press("Paste", "Pasted a table")), ("report", "script")),
    Recipe("Pagewell", "Paste the image from the clipboard into the document '{doc_path}'",
           ("image_in_clipboard", "doc_path"), ("doc_path",),
           (_open("doc_path"), Press("Paste", "Pasted an image")), ("manual",)),
    Recipe("Pagewell", "Set the headings of '{doc_path}' in the style 'Bold'",
           ("doc_path",), ("doc_path",),
           (_open("doc_path"), Ask("Style", "Style of headings", "Bold")),
           ("report", "manual", "foreign")),
    Recipe("Pagewell", "Export the document '{doc_path}' as '{pdf_path}'",
           ("doc_path",), ("pdf_path",),
           (_open("doc_path"), Ask("Export", "Name of the PDF", "{pdf_path}")),
           ("report", "manual", "script", "archive", "foreign")),
    Recipe("Pagewell", "Copy the summary of the document '{doc_path}' to the clipboard",
           ("doc_path",), ("text_in_clipboard",),
           (_open("doc_path"), Keys("^a", "Selected all"), Keys("^c", "Copied")),
           ("foreign", "week")),
)  # fmt: skip

_GRIDS = (
    Recipe("Gridley", "Create a new table '{sheet_path}'", (), ("sheet_path",),
           (Ask("New", "Name of the table", "{sheet_path}"),), ("week", "dinner")),
    Recipe("Gridley", "Open the data '{csv_path}' and keep them as the table '{sheet_path}'",
           ("csv_path",), ("sheet_path",),
           (_open("csv_path"), Ask("New", "Name of the table", "{sheet_path}")),
           ("data", "script", "report")),
    Recipe("Gridley", "Sort the table '{sheet_path}' by its first column",
           ("sheet_path",), ("sheet_path",),
           (_open("sheet_path"), Press("Sort", "Sorted"), Keys("^s", "Saved")),
           ("data", "report", "week")),
    Recipe("Gridley", "Add a row with totals to the table '{sheet_path}'",
           ("sheet_path",), ("sheet_path",), (_open("sheet_path"), Press("Total", "Added totals")),
           ("data", "script", "dinner")),
    Recipe("Gridley", "Copy all of the table '{sheet_path}' to the clipboard",
           ("sheet_path",), ("table_in_clipboard",),
           (_open("sheet_path"), Keys("^a", "Selected all"), Press("Copy", "Copied a table")),
           ("data", "report", "script")),
    Recipe("Gridley", "Save a chart of the table '{sheet_path}' as '{img_path}'",
           ("sheet_path",), ("img_path",),
           (_open("sheet_path"), Ask("Chart", "Name of the picture", "{img_path}")),
           ("data", "report", "script")),
)  # fmt: skip

_PICTURES = (
    Recipe("Pixelry", "Apply the filter '{filter_name}' to '{img_path}'",
           ("img_path",), ("img_path",),
           (_open("img_path"), Ask("Filter", "Name of the filter", "{filter_name}")),
           ("talk", "gallery", "manual")),
    Recipe("Pixelry", "Crop the picture '{img_path}' to a square", ("img_path",), ("img_path",),
           (_open("img_path"), Ask("Crop", "Proportion", "1:1")), ("gallery", "talk", "dinner")),
    Recipe("Pixelry", "Write the caption 'By {name}' onto '{img_path}'",
           ("img_path",), ("img_path",),
           (_open("img_path"), Ask("Caption", "Caption", "By {name}")), ("gallery", "archive")),
    Recipe("Pixelry", "Copy the picture '{img_path}' to the clipboard",
           ("img_path",), ("image_in_clipboard",),
           (_open("img_path"), Press("Copy", "Copied an image")), ("manual", "gallery")),
    Recipe("Reelsmith", "Make the video '{video_path}' out of the picture '{img_path}'",
           ("img_path",), ("video_path",),
           (Ask("Slides", "Picture", "{img_path}"),
            Ask("Render", "Name of the video", "{video_path}")),
           ("video", "gallery")),
    Recipe("Reelsmith", "Lay the song '{audio_path}' under the video '{video_path}'",
           ("video_path", "audio_path"), ("video_path",),
           (_open("video_path"), Ask("Music", "Song", "{audio_path}")), ("video", "manual")),
    Recipe("Reelsmith", "Trim the video '{video_path}' to thirty seconds",
           ("video_path",), ("video_path",),
           (_open("video_path"), Ask("Trim", "Length in seconds", "30")),
           ("video", "manual", "archive")),
    Recipe("Reelsmith", "Save the sound of the video '{video_path}' as '{audio_path}'",
           ("video_path",), ("audio_path",),
           (_open("video_path"), Ask("Sound", "Name of the sound", "{audio_path}")), ("archive",)),
    Recipe("Tunebox", "Play the song '{audio_path}' in a loop", ("audio_path",), (),
           (_open("audio_path"), Press("Loop", "Loop is on"), Press("Play", "Playing")),
           ("video", "dinner", "archive")),
    Recipe("Tunebox", "Play the video '{video_path}'", ("video_path",), (),
           (_open("video_path"), Press("Play", "Playing")), ("video", "manual")),
    Recipe("Tunebox", "Rate the video '{video_path}' with five stars", ("video_path",), (),
           (_open("video_path"), Ask("Rate", "Stars", "5")), ("video",)),
    Recipe("Snaplet", "Save a screenshot of the window '{window}' as '{img_path}'",
           (), ("img_path",),
           (Pick("{window}"), Press("Shot", "Captured"),
            Ask("Save", "Name of the picture", "{img_path}")),
           ("manual", "talk", "archive", "report")),
    Recipe("Snaplet", "Record the window '{window}' as the video '{video_path}'",
           (), ("video_path",),
           (Pick("{window}"), Ask("Record", "Name of the video", "{video_path}")),
           ("manual", "video")),
    Recipe("Snaplet", "Copy a screenshot of the window '{window}' to the clipboard",
           (), ("image_in_clipboard",), (Pick("{window}"), Press("Clip", "Copied an image")),
           ("manual",)),
)  # fmt: skip


def _send(kind: str, noun: str, intents: tuple[str, ...]) -> Recipe:
    return Recipe(
        "Postling",
        f"Send the {noun} '{{{kind}}}' to {{name}}",
        (kind,),
        (),
        (
            Ask("New", "Recipient", "{name}"),
            Ask("Attach", "File to attach", f"{{{kind}}}"),
            Press("Send", "Sent"),
        ),
        intents,
    )


_PEOPLE = (
    _send("deck_path", "slide deck", ("talk", "week", "data")),
    _send("doc_path", "document", ("letter", "foreign", "dinner")),
    _send("pdf_path", "PDF", ("report", "talk", "manual", "script", "foreign", "data")),
    _send("zip_path", "archive", ("archive", "gallery", "letter")),
    _send("video_path", "video", ("video",)),
    _send("img_path", "picture", ("gallery", "dinner", "data")),
    Recipe("Postling", "Save the image from the mail of {name} as '{img_path}'", (), ("img_path",),
           (Pick("{name}", double=True), Ask("Save", "Name of the picture", "{img_path}")),
           ("talk", "letter", "gallery", "video", "archive")),
    Recipe("Postling", "Copy the text of the mail of {name} to the clipboard",
           (), ("text_in_clipboard",),
           (Pick("{name}", double=True), Press("Copy", "Copied a text")),
           ("letter", "foreign", "week", "talk")),
    Recipe("Postling", "Save the table from the mail of {name} as '{sheet_path}'",
           (), ("sheet_path",),
           (Pick("{name}", double=True), Ask("Save", "Name of the table", "{sheet_path}")),
           ("letter", "report", "week")),
    Recipe("Cabinet", "Open the folder of '{text_path}' and copy its contents to the clipboard",
           ("text_path",), ("text_in_clipboard",),
           (Ask("Go", "Path", "{text_path}"), Press("Copy", "Copied a text")),
           ("report", "foreign", "archive", "talk")),
    Recipe("Cabinet", "Copy '{pdf_path}' to the memory stick and eject it",
           ("pdf_path", "memory_stick_mounted"), (),
           (Ask("Go", "Path", "{pdf_path}"), Press("Eject", "Ejected")), ("archive", "report")),
    Recipe("Packrat", "Pack the PDF '{pdf_path}' into the archive '{zip_path}'",
           ("pdf_path",), ("zip_path",),
           (Ask("Create", "Name of the archive", "{zip_path}"),
            Ask("Add", "File to add", "{pdf_path}")),
           ("archive", "letter")),
    Recipe("Packrat", "Pack the picture '{img_path}' into the archive '{zip_path}'",
           ("img_path",), ("zip_path",),
           (Ask("Create", "Name of the archive", "{zip_path}"),
            Ask("Add", "File to add", "{img_path}")),
           ("gallery", "letter")),
    Recipe("Packrat", "Add the video '{video_path}' to the archive '{zip_path}'",
           ("video_path", "zip_path"), ("zip_path",),
           (Ask("Add", "Archive", "{zip_path}"), Ask("Add", "File to add", "{video_path}")),
           ("archive",)),
)  # fmt: skip

_WORDS = (
    Recipe("Wordhop", "Translate the text in the clipboard into {language}",
           ("text_in_clipboard",), ("text_in_clipboard",),
           (Press("Paste", "Pasted"), Ask("Translate", "Language", "{language}"),
            Press("Copy", "Copied a text")), ("foreign", "letter", "dinner")),
    Recipe("Wordhop", "Translate the document '{doc_path}' into {language}",
           ("doc_path",), ("doc_path",),
           (_open("doc_path"), Ask("Translate", "Language", "{language}")),
           ("foreign", "letter", "report")),
    Recipe("Jotwell", "Copy the note about {topic} to the clipboard", (), ("text_in_clipboard",),
           (Pick("{topic}"), Press("Copy", "Copied a text")),
           ("talk", "report", "week", "foreign")),
    Recipe("Jotwell", "Paste the text from the clipboard into a new note about {topic}",
           ("text_in_clipboard",), (),
           (Ask("New", "Name of the note", "{topic}"), Press("Paste", "Pasted a text")),
           ("letter", "foreign", "week", "dinner")),
    Recipe("Jotwell", "Attach the picture '{img_path}' to the note about {topic}",
           ("img_path",), (), (Pick("{topic}"), Ask("Attach", "File to attach", "{img_path}")),
           ("gallery", "archive")),
    Recipe("Tickoff", "Add the task 'Read about {topic}'", (), ("todo_in_list",),
           (Ask("Add", "New task", "Read about {topic}"),), ("week", "letter", "dinner")),
    Recipe("Tickoff", "Make the new task due on {day}", ("todo_in_list",), ("todo_in_list",),
           (Ask("Due", "Day", "{day}"),), ("week", "letter", "dinner")),
    Recipe("Tickoff", "Mark the new task as important", ("todo_in_list",), (),
           (Press("Star", "Marked"),), ("week", "dinner")),
    Recipe("Webway", "Download a picture of {topic} as '{img_path}'", (), ("img_path",),
           (Pick("{topic}"), Ask("Picture", "Name of the picture", "{img_path}")),
           ("talk", "gallery", "report", "video")),
    Recipe("Webway", "Copy the summary of the article about {topic} to the clipboard",
           (), ("text_in_clipboard",), (Pick("{topic}"), Press("Summary", "Copied a text")),
           ("report", "talk", "foreign")),
    Recipe("Webway", "Download the data about {topic} as '{csv_path}'", (), ("csv_path",),
           (Pick("{topic}"), Ask("Data", "Name of the data", "{csv_path}")),
           ("data", "report")),
    Recipe("Webway", "Download a song about {topic} as '{audio_path}'", (), ("audio_path",),
           (Pick("{topic}"), Ask("Song", "Name of the song", "{audio_path}")),
           ("video", "dinner", "archive")),
    Recipe("Codewright", "Open the script '{script_path}'",
           ("script_path",), ("script_in_processing",), (_open("script_path"),), ("script",)),
    Recipe("Codewright", "Format the open script", ("script_in_processing",),
           ("script_in_processing",), (Press("Format", "Formatted"),), ("script",)),
    Recipe("Codewright", "Run the open script and let it write '{csv_path}'",
           ("script_in_processing",), ("csv_path",),
           (Ask("Run", "Output", "{csv_path}"),), ("script",)),
    Recipe("Codewright", "Deploy the open script", ("script_in_processing", "vpn_connected"), (),
           (Press("Deploy", "Deployed"),), ("script",)),
    Recipe("Larder", "Copy the shopping list of the {dish} to the clipboard",
           (), ("text_in_clipboard",), (Pick("{dish}"), Press("Shopping", "Copied a text")),
           ("dinner", "week")),
    Recipe("Larder", "Export the recipe of the {dish} as the document '{doc_path}'",
           (), ("doc_path",),
           (Pick("{dish}"), Ask("Export", "Name of the document", "{doc_path}")), ("dinner",)),
    Recipe("Larder", "Save the photo of the {dish} as '{img_path}'", (), ("img_path",),
           (Pick("{dish}"), Ask("Photo", "Name of the picture", "{img_path}")),
           ("dinner", "gallery")),
)  # fmt: skip

RECIPES: tuple[Recipe, ...] = (*_SLIDES, *_PAGES, *_GRIDS, *_PICTURES, *_PEOPLE, *_WORDS)
"""All of them; two need a resource that none provides: a memory stick, a tunnel."""


# What the places of the sample pool's templates stand for, by seed.

FILES: Mapping[str, tuple[str, int]] = {
    "deck_path": (".deck", 3),
    "doc_path": (".page", 3),
    "sheet_path": (".grid", 3),
    "img_path": (".png", 4),
    "pdf_path": (".pdf", 2),
    "zip_path": (".zip", 2),
    "audio_path": (".wav", 2),
    "video_path": (".mp4", 2),
    "csv_path": (".csv", 2),
    "script_path": (".code", 2),
    "text_path": (".txt", 2),
}
"""Kinds of files, their endings, and how many of each there are."""

_VALUE_WORDS: Mapping[str, Sequence[str]] = {
    "name": PEOPLE,
    "topic": TOPICS,
    "dish": DISHES,
    "window": WINDOWS,
    "filter_name": FILTERS,
    "day": DAYS,
    "language": LANGUAGES,
}
_LISTS: Mapping[Listed, Sequence[str]] = {
    "people": PEOPLE,
    "topics": TOPICS,
    "dishes": DISHES,
    "windows": WINDOWS,
    "files": ("Archive", "Downloads", "Pictures", "Shared", "Work"),
    "none": (),
}
_MOST = 6


class Values:
    """The words of the pool of a seed."""

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._files = {
            kind: [f"D:\\work\\{stem}{ending}" for stem in self._rng(kind).sample(STEMS, count)]
            for kind, (ending, count) in FILES.items()
        }

    def entries(self, listed: Listed) -> list[str]:
        """Return the entries of a window's list, shuffled."""
        return self._rng(f"list of {listed}").sample(_LISTS[listed], len(_LISTS[listed]))

    def bindings(self, template: str, places: Sequence[str]) -> list[dict[str, str]]:
        """Return bindings of a template: every combination of its files, at most `_MOST` of them.

        All subtasks of a pool have the same files, so that their bindings can agree; other words
        are drawn anew for each.
        """
        rng = self._rng(template)
        files = [place for place in places if place in FILES]
        combinations = list(product(*(self._files[place] for place in files)))
        if not files:
            combinations *= 2
        if len(combinations) > _MOST:
            combinations = sorted(rng.sample(combinations, _MOST))
        found: list[dict[str, str]] = []
        for names in combinations:
            chosen = dict(zip(files, names, strict=True))
            binding = {
                place: chosen.get(place) or rng.choice(_VALUE_WORDS[place]) for place in places
            }
            if binding not in found:
                found.append(binding)
        return found

    def _rng(self, what: str) -> random.Random:
        return random.Random(f"{self._seed}/{what}")
