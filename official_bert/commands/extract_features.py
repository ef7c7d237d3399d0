r"""Writes the outputs of BERT's layers for each line of a file.

  echo "Who was Jim Henson ? ||| Jim Henson was a puppeteer" > /tmp/input.txt

  python extract_features.py \
    --input_file=/tmp/input.txt --output_file=/tmp/output.jsonl \
    --model=uncased_L-12_H-768_A-12 \
    --layers=-1,-2,-3,-4 --max_seq_length=128 --batch_size=8

  {"linex_index": 0, "features": [{"token": "[CLS]", "layers":
  [{"index": -1, "values": [...]}, ...]}, ...]}

Without --model, the command uses bert_tiny_demo, which needs no network.

--pooling=mean writes one vector per line and layer. With it,
--output_file=/tmp/output.npy writes one array of all lines. For a model of
sentence-transformers, the default is that model's pooling.
"""

from official_bert.options import ExtractFeatures, cli


def main(options: ExtractFeatures) -> None:
    """Writes the vectors of all lines."""
    options = options.resolve()
    with cli.quiet_imports():
        from official_bert.inference import feature_extraction

    options.download_weights()
    feature_extraction.run(options)
