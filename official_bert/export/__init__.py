"""Models for others to use: TF Hub modules and serving, as SavedModels."""
