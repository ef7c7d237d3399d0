"""Lets tests import what is in `data/`, as the commands there do themselves."""

import pathlib
import sys

sys.path.append(str(pathlib.Path(__file__).resolve().parents[2] / "data"))
