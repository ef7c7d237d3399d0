"""The measured models, by their names in Turc et al., 2019."""

from official_bert.config import BertConfig

SIZES = {
    name: BertConfig(
        vocab_size=30522,
        hidden_size=hidden_size,
        num_hidden_layers=num_layers,
        num_attention_heads=hidden_size // 64,
        intermediate_size=4 * hidden_size,
        type_vocab_size=2,
    )
    for name, num_layers, hidden_size in [
        ("tiny", 2, 128),
        ("mini", 4, 256),
        ("small", 4, 512),
        ("base", 12, 768),
        ("large", 24, 1024),
    ]
}
