"""The part of `tpu_compile.py` that runs the TPU compiler.

`tpu_compile.py` runs this program with a Python that has jax and libtpu, on the
HLO module of a step. The program prints the compiler's report as JSON.
"""

import json
import math
import os
import re
import sys
import time
from collections.abc import Iterator

# libtpu must neither query a Google server for the machine nor lock a chip.
os.environ["TPU_SKIP_MDS_QUERY"] = "1"
os.environ["ALLOW_MULTIPLE_LIBTPU_LOAD"] = "1"
os.environ["TPU_ACCELERATOR_TYPE"] = "v5litepod-4"
os.environ["TPU_WORKER_HOSTNAMES"] = "localhost"

import jax
from jax._src import compiler
from jax._src.interpreters import mlir
from jax._src.lib import _jax
from jax._src.lib.mlir import ir
from jax.experimental import topologies

TOPOLOGY = "v5e:2x2"  # The smallest one; one of its four cores is used.

_COPY = re.compile(r"\bmhlo\.copy (%\S+)")
_RANDOM = re.compile(
    r"%(\S+), (%\S+) = stablehlo\.rng_bit_generator (%\S+), algorithm = PHILOX"
    r" : \(tensor<3xui64>\) -> \(tensor<3xui64>, (\S+)\)"
)
# The state of libtpu's generator has two numbers; the state of Philox has
# three.
_TPU_RANDOM = """\
%two_\\1 = stablehlo.slice \\3 [0:2] : (tensor<3xui64>) -> tensor<2xui64>
%third_\\1 = stablehlo.slice \\3 [2:3] : (tensor<3xui64>) -> tensor<1xui64>
%next_\\1, \\2 = stablehlo.rng_bit_generator %two_\\1, algorithm = DEFAULT : \
(tensor<2xui64>) -> (tensor<2xui64>, \\4)
%\\1 = stablehlo.concatenate %next_\\1, %third_\\1, dim = 0 : \
(tensor<2xui64>, tensor<1xui64>) -> tensor<3xui64>"""


def for_tpu(text: str) -> str:
    """Adapts a module that TensorFlow lowered for a CPU to a TPU.

    libtpu does not support `mhlo.copy`, the identity. TensorFlow chooses the
    generator of random bits by device: Philox on CPUs and GPUs, the compiler's
    default elsewhere. On TPUs, this default is the generator of the chip.

    Args:
        text: StableHLO.
    """
    text = _COPY.sub(r"stablehlo.optimization_barrier \1", text)
    text = _RANDOM.sub(_TPU_RANDOM, text)
    assert "PHILOX" not in text
    return text


def compile_module(hlo: bytes) -> dict[str, float | str]:
    """Compiles for one core.

    Args:
        hlo: A serialized `HloModuleProto`.

    Returns:
        The sizes of the compiled program in bytes: `arguments`, `outputs`,
        `aliased` (outputs that replace arguments, counted in both),
        `temporaries` and `code`; the floating-point `operations`; the
        `traffic` of the memory outside of the chip, in bytes; and the `seconds`
        of the compilation. If it fails, only `error`.
    """
    start = time.perf_counter()
    device = topologies.get_topology_desc(
        platform="tpu", topology_name=TOPOLOGY
    ).devices[0]
    options = compiler.get_compile_options(
        num_replicas=1, num_partitions=1, device_assignment=[[0]]
    )
    with mlir.make_ir_context():
        lowered = ir.Module.parse(_jax.mlir.hlo_to_stablehlo(hlo))
        module = ir.Module.parse(for_tpu(lowered.operation.get_asm()))
        try:
            compiled = device.client.compile(
                module,
                executable_devices=_jax.DeviceList((device,)),
                compile_options=options,
            )
        except jax.errors.JaxRuntimeError as error:
            return {"error": str(error)}
    memory = compiled.get_compiled_memory_stats()
    text = compiled.hlo_modules()[0].to_string()
    return {
        "arguments": memory.argument_size_in_bytes,
        "outputs": memory.output_size_in_bytes,
        "aliased": memory.alias_size_in_bytes,
        "temporaries": memory.temp_size_in_bytes,
        "code": memory.generated_code_size_in_bytes,
        "operations": compiled.cost_analysis()["flops"],
        "traffic": sum(traffic(text)),
        "seconds": time.perf_counter() - start,
    }


_INSTRUCTION = re.compile(
    r"\s+(?:ROOT )?(%\S+) = (.*?) ([a-z\-]+)\((.*?)\)(?:,|$)"
)
_ARRAY = re.compile(r"\b(pred|bf16|[suf]\d+)\[([\d,]*)\](?:\{([^}]*)\})?")
_FREE = ("parameter", "constant", "bitcast", "get-tuple-element", "tuple")


def traffic(text: str) -> Iterator[int]:
    """Yields the bytes that each instruction reads from or writes to memory.

    Arrays in separate memory spaces, `S(1)` and so on, are on the chip. An
    instruction that reads a part of an array counts as reading all of it,
    except for copies to and from the chip.

    Args:
        text: The compiled HLO.
    """
    types: dict[str, str] = {}
    for line in text[text.index("\nENTRY") :].splitlines():
        match = _INSTRUCTION.match(line)
        if not match:
            continue
        name, kind, operation, operands = match.groups()
        types[name] = kind
        if operation in _FREE or operation.endswith("-done"):
            continue
        if operation.endswith("-start"):
            # (source, destination, semaphore)
            source, target = _ARRAY.findall(kind)[:2]
            sides = [part for part in (source, target) if "S(" not in part[2]]
            yield len(sides) * min(_bytes(source), _bytes(target))
            continue
        reads = [types.get(x, "") for x in re.findall(r"%[^\s,()]+", operands)]
        for array in _ARRAY.findall(" ".join([kind, *reads])):
            if "S(" not in array[2]:
                yield _bytes(array)


def _bytes(array: tuple[str, str, str]) -> int:
    kind, shape, _ = array
    bits = 8 if kind == "pred" else int(kind.lstrip("bsuf"))
    sizes = map(int, filter(None, shape.split(",")))
    return math.prod(sizes) * bits // 8


if __name__ == "__main__":
    with open(sys.argv[1], "rb") as hlo_file:
        print(json.dumps(compile_module(hlo_file.read())))
