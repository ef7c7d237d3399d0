"""Makes the modules in `data/` importable, as for the commands there."""

import pathlib
import sys

sys.path.append(str(pathlib.Path(__file__).resolve().parents[2] / "data"))
