# serve.py without TensorFlow, for models exported for OpenVINO. In a clone:
#
#   docker build --file docker/server.Dockerfile --tag official_bert_server .
#   docker run --rm --init --publish 127.0.0.1:8000:8000 \
#     --volume "/tmp/sst2_output/export_openvino/1:/model:ro" official_bert_server
#
# compose.yaml does both. More flags of serve.py can follow the last argument.
FROM python:3.12-slim

COPY docker/requirements.txt /src/docker/
RUN pip install --no-cache-dir --requirement /src/docker/requirements.txt
COPY . /src
RUN pip install --no-cache-dir --no-deps /src

USER 65534
EXPOSE 8000
HEALTHCHECK --start-period=60s CMD ["python", "-c", \
  "import urllib.request as r; r.urlopen('http://127.0.0.1:8000/health')"]
ENTRYPOINT ["official_bert", "serve", "--host=0.0.0.0", "--model_dir=/model"]
