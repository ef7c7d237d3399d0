"""Writes a web page with the attention of all heads of BERT."""

from official_bert import commands

if __name__ == "__main__":
    commands.run("visualize_attention")
