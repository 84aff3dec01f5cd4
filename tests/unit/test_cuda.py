"""The generated C of a machine is valid CUDA device code, in single and in double precision."""

import shutil
import subprocess

import pytest

import sarrus as sr
from sarrus.dynamics.compile import _derive
from sarrus.kernel.compiler import INCLUDE

KERNEL = """
extern "C" __global__ void accelerate_all(long count, const real *t, const real *q, const real *v, const real *u,
                                          const real *f, const real *p, const real *active, const real *rowdata,
                                          sr_options options, real *work, real *vdot, real *lam,
                                          sr_report *reports) {
  long i = blockIdx.x * (long)blockDim.x + threadIdx.x;
  if (i >= count) return;
  const sr_setup setup = {p, active, rowdata, options, work + i * SR_WORK};
  sr_accelerate(t + i, q + i * SR_NQ, v + i * SR_NV, u + i * SR_NU, f + i * SR_NV, &setup,
                vdot + i * SR_NV, lam + i * SR_M, reports + i);
}
"""


@pytest.mark.skipif(shutil.which("nvcc") is None, reason="no nvcc on PATH: device code cannot be compiled here")
@pytest.mark.parametrize("real", ["float", "double"])
@pytest.mark.parametrize("name", ["parallelogram", "rolling_disc"])  # redundant rows; quaternion, nonholonomic rows
def test_machines_compile_as_device_code(name, real, tmp_path):
    source = tmp_path / f"{name}.cu"
    source.write_text(_derive(sr.library.build(name).finalize())["source"] + KERNEL)
    call = ["nvcc", "-x", "cu", "-c", "-arch=sm_90", "-Werror", "all-warnings", f"-I{INCLUDE}", str(source)]
    call += ["-o", str(tmp_path / "machine.o"), *(["-DSARRUS_FLOAT"] if real == "float" else [])]
    done = subprocess.run(call, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    symbols = (tmp_path / "machine.o").read_bytes()
    assert b"accelerate_all" in symbols
    assert b"sarrus_accelerate" not in symbols  # the host's entry point stays out
