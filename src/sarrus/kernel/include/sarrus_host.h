/* Entry points of the shared library. Arrays of states go one after the other, with no memory of earlier calls. */
#ifndef SARRUS_HOST_H
#define SARRUS_HOST_H


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
  real kept[SR_DIM(SR_K)];
  for (int i = 0; i < SR_K; i++) kept[i] = c->active[sr_kept[i]];
  const sr_setup setup = {c->p, kept, c->rowdata, {c->tolerance, c->fast_pivot, c->mode, -1}, c->work};
  for (long i = 0; i < c->count; i++) {
    const real *in[5];
    for (int k = 0; k < 5; k++) in[k] = c->in[k] + i * c->stride[k];
    sr_report r;
    sr_accelerate(in[0], in[1], in[2], in[3], in[4], &setup, c->vdot + i * SR_NV, c->lam + i * SR_M, &r);
    real *out = c->report + 5 * i;
    out[0] = r.rank, out[1] = r.path, out[2] = r.accepted, out[3] = r.rejected, out[4] = r.inertia;
  }
}

/* How far the first state of a call is from its constraints: for each row Phi, A v - a and |A| |v| + |a|, rows that are
   off or identically zero as zeros; then v' M v. out: 3 times SR_M numbers and one. */
SR_EXPORT void sarrus_residuals(const sr_call *c, real *out) {
  const real *v = c->in[2];
  real kept[SR_DIM(SR_K)], mass[SR_DIM(SR_NM)], jac[SR_DIM(SR_NA)], phi[SR_DIM(SR_K)], a[SR_DIM(SR_K)];
  for (int i = 0; i < SR_K; i++) kept[i] = c->active[sr_kept[i]];
  for (int i = 0; i <= 3 * SR_M; i++) out[i] = 0;
  sr_place(c->in[0], c->in[1], c->p, kept, mass, jac, phi, a);
  real *rate = out + SR_M, *size = rate + SR_M, *square = size + SR_M;
  for (int i = 0; i < SR_K; i++) {
    const int row = sr_kept[i];
    out[row] = phi[i], rate[row] = -a[i], size[row] = fabs(a[i]);
  }
  for (int e = 0; e < SR_NA; e++) {
    const int row = sr_kept[sr_a_row[e]];
    const real part = jac[e] * v[sr_a_col[e]];
    rate[row] += part, size[row] += fabs(part);
  }
  for (int e = 0; e < SR_NM; e++) {
    const int i = sr_m_row[e], j = sr_m_col[e];
    *square += (i == j ? 1 : 2) * v[i] * mass[e] * v[j];
  }
}

/* The scaled rows in the mass metric at the first state of a call, D^-1/2 L^-1 A' diag(1 / reference) with M = L D L': their
   singular values are those by which rank is decided. out: SR_K rows of SR_NV numbers. */
SR_EXPORT void sarrus_rows(const sr_call *c, real *out) {
  real kept[SR_DIM(SR_K)], mass[SR_DIM(SR_NM)], jac[SR_DIM(SR_NA)], phi[SR_DIM(SR_K)], a[SR_DIM(SR_K)];
  real lower[SR_DIM(SR_NL)], dinv[SR_DIM(SR_NV)], y[SR_DIM(SR_NY)], z[SR_DIM(SR_NV)], zero[SR_DIM(SR_NV)];
  for (int i = 0; i < SR_K; i++) kept[i] = c->active[sr_kept[i]];
  for (int k = 0; k < SR_NV; k++) zero[k] = 0;
  for (int i = 0; i < SR_K * SR_NV; i++) out[i] = 0;
  sr_place(c->in[0], c->in[1], c->p, kept, mass, jac, phi, a);
  sr_factor(mass, jac, zero, lower, dinv, y, z);
  for (int e = 0; e < SR_NY; e++) {
    const int k = sr_y_row[e], i = sr_y_col[e];
    out[i * SR_NV + k] = sqrt(dinv[k]) * y[e] * c->rowdata[2 * SR_K + i];
  }
}

/* what the integrators call, one state at a time (sarrus_motion.h takes their addresses) */
SR_EXPORT void sarrus_state(const real *t, const real *q, const real *v, const real *u, const real *f,
                            const sr_setup *s, real *vdot, real *lam, sr_report *report) {
  sr_accelerate(t, q, v, u, f, s, vdot, lam, report);
}

SR_EXPORT void sarrus_correct(const real *t, const real *q, const real *v, const sr_setup *s, real *phi, real *rate,
                              real *dq, real *dv, sr_report *report) {
  sr_correct(t, q, v, s, phi, rate, dq, dv, report);
}

SR_EXPORT void sarrus_select(const real *t, const real *q, const sr_setup *s, real *chosen, sr_report *report) {
  sr_select(t, q, s, chosen, report);
}

SR_EXPORT void sarrus_linear(const real *t, const real *q, const real *v, const sr_setup *s, long count, const real *b,
                             const real *gamma, real *x, real *mu, sr_report *report) {
  sr_linear(t, q, v, s, count, b, gamma, x, mu, report);
}

#endif
