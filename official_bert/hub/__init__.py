"""Modules of the TF Hub, ours and others', as Keras layers that learn."""

from official_bert.hub.hub_encoder import HubEncoder

__all__ = ["HubEncoder"]
