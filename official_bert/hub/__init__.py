"""Modules of the TF Hub, ours and others', as Keras layers that learn."""

from official_bert.hub.encoder import HubEncoder

__all__ = ["HubEncoder"]
