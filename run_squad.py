"""Fine-tunes BERT to answer questions about passages: SQuAD 1.1 and 2.0."""

from official_bert import commands

if __name__ == "__main__":
    commands.run("run_squad")
