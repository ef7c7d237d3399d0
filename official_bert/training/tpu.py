"""Finding and setting up a TPU."""

import functools
import socket

import tensorflow as tf
from absl import logging

from official_bert.errors import InputError

_TIMEOUT = 10  # Seconds.


@functools.cache
def connect(
    name: str | None, zone: str | None, project: str | None, num_cores: int
) -> tf.distribute.TPUStrategy:
    """Returns the strategy of a TPU, whose memory it clears.

    Args:
        name: Of a Cloud TPU, or its grpc:// address; None for this machine's.
        zone: Of a Cloud TPU, if it is not found itself.
        project: Likewise.
        num_cores: How many cores to use at most.

    Raises:
        InputError: There is none, or it does not answer.
    """
    try:
        resolver = tf.distribute.cluster_resolver.TPUClusterResolver(
            tpu=name or "local", zone=zone, project=project
        )
        if name and name != "local":
            _require_answers(resolver)
            tf.config.experimental_connect_to_cluster(resolver)
        topology = tf.tpu.experimental.initialize_tpu_system(resolver)
    # TensorFlow raises all sorts here, what its HTTP client does among them.
    except Exception as error:
        reason = str(error).partition("\n")[0][:200]
        raise InputError(
            f"--use_tpu: there must be a TPU {_where(name)}. Received: "
            f"{type(error).__name__}: {reason}. Without a TPU leave --use_tpu "
            "out. On a machine that has one, install requirements-tpu.txt; for "
            "another machine's give --tpu_name, and perhaps --tpu_zone and "
            "--gcp_project."
        ) from error
    available = topology.num_tasks * topology.num_tpus_per_task
    num_replicas = min(num_cores, available)
    logging.info("Using %d of %d TPU cores", num_replicas, available)
    if num_replicas == available:
        return tf.distribute.TPUStrategy(resolver)
    return tf.distribute.TPUStrategy(
        resolver,
        experimental_device_assignment=(
            tf.tpu.experimental.DeviceAssignment.build(
                topology, num_replicas=num_replicas
            )
        ),
    )


def _require_answers(
    resolver: tf.distribute.cluster_resolver.TPUClusterResolver,
) -> None:
    """Raises `OSError` if a host of a TPU cannot be reached.

    TensorFlow would go on trying for hours.
    """
    for host in resolver.cluster_spec().job_tasks("worker"):
        address, _, port = host.rpartition(":")
        logging.info("Connecting to %s", host)
        socket.create_connection((address, int(port)), _TIMEOUT).close()


def _where(name: str | None) -> str:
    return f"called {name!r}" if name else "on this machine"
