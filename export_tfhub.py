"""Exports BERT as TF Hub modules, which others can load and fine-tune."""

from official_bert import commands

if __name__ == "__main__":
    commands.run("export_tfhub")
