/* Entry points of the shared library: arrays of states, one after the other, no memory of earlier calls. */
#ifndef SARRUS_HOST_H
#define SARRUS_HOST_H

#define SR_EXPORT __attribute__((visibility("default")))

/* input k of state i is at in[k] + i * stride[k]; order: t, q, v, u, f. report: 5 numbers for each state. */
SR_EXPORT void sarrus_accelerate(long count, const real *const *in, const long *stride, const real *p,
                                 const real *active, const real *rowdata, real tolerance, real fast_pivot, int mode,
                                 real *vdot, real *lam, real *report) {
  const sr_options options = {tolerance, fast_pivot, mode};
  real kept[SR_DIM(SR_K)];
  for (int i = 0; i < SR_K; i++) kept[i] = active[sr_kept[i]];
  for (long i = 0; i < count; i++) {
    sr_report r;
    sr_accelerate(in[0] + i * stride[0], in[1] + i * stride[1], in[2] + i * stride[2], in[3] + i * stride[3],
                  in[4] + i * stride[4], p, kept, rowdata, &options, vdot + i * SR_NV, lam + i * SR_M, &r);
    real *out = report + 5 * i;
    out[0] = r.rank, out[1] = r.path, out[2] = r.accepted, out[3] = r.rejected, out[4] = r.inertia;
  }
}

#endif
