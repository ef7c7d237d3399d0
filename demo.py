"""Shows in a few minutes what BERT does, and the commands that do it."""

from official_bert import commands

if __name__ == "__main__":
    commands.run("demo")
