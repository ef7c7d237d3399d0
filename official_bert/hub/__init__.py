"""TF Hub modules as trainable Keras layers."""

from official_bert.hub.hub_encoder import HubEncoder

__all__ = ["HubEncoder"]
