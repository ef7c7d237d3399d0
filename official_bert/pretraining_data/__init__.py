"""Text to instances for masked LM and next sentence: appendix A.2, A.1."""
