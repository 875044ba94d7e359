"""Where pytest collects: the links at the top level show rooms of the package, not packages."""

collect_ignore = ["loaders", "metrics", "adapters"]
