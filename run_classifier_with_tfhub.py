"""Fine-tunes a TF Hub module of BERT on a task, evaluates it, and predicts."""

from official_bert import commands

if __name__ == "__main__":
    commands.run("run_classifier_with_tfhub")
