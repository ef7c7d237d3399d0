"""Moving weights: devices, the step, the loop, and what drives them."""
