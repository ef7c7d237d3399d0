r"""Answers HTTP requests with the predictions of a fine-tuned model.

  python serve.py --model_dir=/tmp/sst2_output/

  curl http://127.0.0.1:8000/predict -H "Content-Type: application/json" \
    -d '{"instances": ["A film to remember.", "Too long."]}'

Each instance has the form of a line of JSON Lines for predict.py. The response
has the predictions in the order of the instances:

  {"predictions": [{"label": "1", "probabilities": {"0": 0.1, "1": 0.9}}, ...]}

/health responds with status 200 when the model is loaded. Ctrl-C and SIGTERM
end the server after it has responded to the requests that it received.
"""

from official_bert.options import Serve


def main(options: Serve) -> None:
    """Serves the model until the process receives a signal."""
    options = options.resolve()
    from official_bert.inference import server

    server.run(options)
