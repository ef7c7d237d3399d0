"""Models by name and by file, and their weights."""
