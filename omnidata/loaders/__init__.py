"""Files -> steps -> datasets: one file per source, and the one writer of episode trees."""

if not __name__.startswith("omnidata."):
    raise ImportError("import omnidata.loaders: the top-level name only shows where the room is")
