"""SQuAD 1.1 and 2.0: questions, and answers that stand in a paragraph."""
