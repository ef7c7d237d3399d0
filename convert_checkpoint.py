"""Converts a model between TF1, Hugging Face, KerasHub and Model Garden."""

from official_bert import commands

if __name__ == "__main__":
    commands.run("convert_checkpoint")
