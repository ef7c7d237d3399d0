"""Fine-tunes BERT on a task, evaluates it, and predicts the test set."""

from official_bert import commands

if __name__ == "__main__":
    commands.run("run_classifier")
