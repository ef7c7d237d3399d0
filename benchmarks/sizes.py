"""The measured models, by their names in Turc et al., 2019."""

from official_bert.config import RELEASED

SIZES = {
    "tiny": RELEASED["uncased_L-2_H-128_A-2"],
    "mini": RELEASED["uncased_L-4_H-256_A-4"],
    "small": RELEASED["uncased_L-4_H-512_A-8"],
    "base": RELEASED["uncased_L-12_H-768_A-12"],
    "large": RELEASED["uncased_L-24_H-1024_A-16"],
}
