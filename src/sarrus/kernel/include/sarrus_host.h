/* Entry point of the shared library: arrays of states, one after the other, no memory of earlier calls. */
#ifndef SARRUS_HOST_H
#define SARRUS_HOST_H

#define SR_EXPORT __attribute__((visibility("default")))

/* input k of state i is at in[k] + i * stride[k]; order: t, q, v, u, f. report: 5 numbers for each state. */
typedef struct {
  long count;
  const real *in[5];
  long stride[5];
  const real *p, *active, *rowdata;
  real tolerance, fast_pivot;
  long mode;
  real *work, *vdot, *lam, *report;
} sr_call;

SR_EXPORT void sarrus_accelerate(const sr_call *c) {
  const sr_options options = {c->tolerance, c->fast_pivot, (int)c->mode};
  real kept[SR_DIM(SR_K)];
  for (int i = 0; i < SR_K; i++) kept[i] = c->active[sr_kept[i]];
  for (long i = 0; i < c->count; i++) {
    const real *in[5];
    for (int k = 0; k < 5; k++) in[k] = c->in[k] + i * c->stride[k];
    sr_report r;
    sr_accelerate(in[0], in[1], in[2], in[3], in[4], c->p, kept, c->rowdata, &options, c->work,
                  c->vdot + i * SR_NV, c->lam + i * SR_M, &r);
    real *out = c->report + 5 * i;
    out[0] = r.rank, out[1] = r.path, out[2] = r.accepted, out[3] = r.rejected, out[4] = r.inertia;
  }
}

#endif
