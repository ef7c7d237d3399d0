"""The format of Hugging Face transformers."""
