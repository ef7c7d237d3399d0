"""Learns a WordPiece vocabulary from your own text."""

from official_bert import commands

if __name__ == "__main__":
    commands.run("build_vocab")
