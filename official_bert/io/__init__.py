"""Files, tables, JSON, progress bars, signals, threads, processes."""
