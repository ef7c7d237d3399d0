"""Pre-trains BERT with masked LM and next sentence prediction."""

from official_bert import commands

if __name__ == "__main__":
    commands.run("run_pretraining")
