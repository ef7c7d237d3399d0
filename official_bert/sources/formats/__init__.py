"""The formats of models: files and weights of one format side by side."""
