"""Predicts new examples, one per line, with a trained model."""

from official_bert import commands

if __name__ == "__main__":
    commands.run("predict")
