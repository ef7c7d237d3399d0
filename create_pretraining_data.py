"""Creates TFRecord files with masked instances for pre-training."""

from official_bert import commands

if __name__ == "__main__":
    commands.run("create_pretraining_data")
