"""Run directories: their files, lock, record and checkpoints."""
