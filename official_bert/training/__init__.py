"""Training: devices, the step, the loop, pre-training and fine-tuning."""
