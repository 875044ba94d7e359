"""Pure functions: (target, prediction) -> verdict -> table; no I/O."""

if not __name__.startswith("omnidata."):
    raise ImportError("import omnidata.metrics: the top-level name only shows where the room is")
