"""Writes the outputs of BERT's layers for each line of a file."""

from official_bert import commands

if __name__ == "__main__":
    commands.run("extract_features")
