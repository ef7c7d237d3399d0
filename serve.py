"""Answers HTTP requests with the predictions of a fine-tuned model."""

from official_bert import commands

if __name__ == "__main__":
    commands.run("serve")
