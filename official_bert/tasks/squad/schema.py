"""What a record of SQuAD holds."""

from official_bert.inputs.records import Feature, Schema, text_schema


def schema(max_seq_length: int, *, is_training: bool) -> Schema:
    """Returns the features of a window."""
    single = ["start_positions", "end_positions", "is_impossible"]
    return {
        "unique_ids": Feature(1),
        **text_schema(max_seq_length),
        **(dict.fromkeys(single, Feature(1)) if is_training else {}),
    }
