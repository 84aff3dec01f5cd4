/* Radau IIA with three stages, order 5 (Hairer & Wanner, Solving ODEs II, IV.8), for the motion y = (delta, v).

   The stages Z_i = h sum_j a_ij f(y0 + Z_j) are solved by a simplified Newton iteration in W = T^-1 Z, which splits it
   into one real and one complex system with the matrix s - J, s = mu / h. Its first half is delta' = v, so it shrinks to
     (s^2 - s a_v - a_q) x = r_2 + (s - a_v) r_1,   and then s x - r_1 for the velocities,
   with the exact derivatives a_q, a_v of the constrained acceleration: one solve of the saddle point for each column of
     M a_q - A' l_q = -d(M a - b - A' l)/dq,   A a_q = -d(A a - gamma)/dq   (a and l held on the right; likewise a_v). */
#ifndef SARRUS_RADAU_H
#define SARRUS_RADAU_H

#include "sarrus_lu.h"

/* what is kept from step to step, in the caller's memory */
typedef struct {
  real aq[SR_DIM(SR_NV * SR_NV)], av[SR_DIM(SR_NV * SR_NV)]; /* row major */
  real lu[SR_DIM(SR_NV * SR_NV)], re[SR_DIM(SR_NV * SR_NV)], im[SR_DIM(SR_NV * SR_NV)];
  real rq[SR_DIM((SR_NV + SR_K) * SR_NV)], rv[SR_DIM((SR_NV + SR_K) * SR_NV)];
  real rhs[SR_DIM(SR_NV * SR_NV)], side[SR_DIM(SR_K * SR_NV)], out[SR_DIM(SR_NV * SR_NV)], mult[SR_DIM(SR_K * SR_NV)];
  real z[3][SR_DIM(SR_NY2)]; /* stages of the last accepted step, for the next guess */
  real h_factored, h_last, contraction;
  int swap[SR_DIM(SR_NV)], cswap[SR_DIM(SR_NV)];
  int fresh, known, have_z;
} sr_radau;

SR_EXPORT long sarrus_radau_size(void) { return (long)sizeof(sr_radau); }

/* columns of a_q (or a_v): one solve of the saddle point for each column of r = (dynamics; constraints) */
SR_FN int sr_derivative(sr_motion *m, sr_radau *w, const real *r, real *a) {
  sr_report report;
  for (int j = 0; j < SR_NV; j++) {
    for (int i = 0; i < SR_NV; i++) w->rhs[j * SR_NV + i] = -r[j * (SR_NV + SR_K) + i];
    for (int i = 0; i < SR_K; i++) w->side[j * SR_K + i] = -r[j * (SR_NV + SR_K) + SR_NV + i];
  }
  m->linear(&m->t, m->q, m->v, &m->setup, SR_NV, w->rhs, w->side, w->out, w->mult, &report);
  for (int i = 0; i < SR_NV; i++)
    for (int j = 0; j < SR_NV; j++) a[i * SR_NV + j] = w->out[j * SR_NV + i];
  return report.inertia > 0;
}

SR_FN int sr_jacobian(sr_motion *m, sr_radau *w) {
  real a[SR_DIM(SR_NV)], lam[SR_DIM(SR_M)];
  if (sr_acceleration(m, m->t, m->q, m->v, &m->setup, a, lam) < 0) return m->failed ? SR_CALL_FAILED : SR_NOT_FINITE;
  m->jacobian(&m->t, m->q, m->v, m->u, a, lam, m->setup.p, m->setup.active, w->rq, w->rv);
  w->fresh = w->known = 1;
  w->h_factored = 0;
  return sr_derivative(m, w, w->rq, w->aq) && sr_derivative(m, w, w->rv, w->av) ? 0 : SR_NOT_FINITE;
}

SR_FN int sr_radau_factor(sr_motion *m, sr_radau *w, real h) {
  const real s = SR_RADAU_REAL / h, p = SR_RADAU_RE / h, q = SR_RADAU_IM / h;
  for (int i = 0; i < SR_NV; i++)
    for (int j = 0; j < SR_NV; j++) {
      const int k = i * SR_NV + j, one = i == j;
      w->lu[k] = s * s * one - s * w->av[k] - w->aq[k];
      w->re[k] = (p * p - q * q) * one - p * w->av[k] - w->aq[k];
      w->im[k] = 2 * p * q * one - q * w->av[k];
    }
  m->factorisations++;
  w->h_factored = h;
  return sr_lu(w->lu, w->swap, SR_NV) && sr_complex_lu(w->re, w->im, w->cswap, SR_NV);
}

/* (s - J) x = r for s = mu/h real, in place */
SR_FN void sr_radau_real(const sr_radau *w, real s, real *r) {
  real x[SR_DIM(SR_NV)];
  for (int i = 0; i < SR_NV; i++) {
    x[i] = r[SR_NV + i] + s * r[i];
    for (int j = 0; j < SR_NV; j++) x[i] -= w->av[i * SR_NV + j] * r[j];
  }
  sr_lu_solve(w->lu, w->swap, SR_NV, x);
  for (int i = 0; i < SR_NV; i++) r[SR_NV + i] = s * x[i] - r[i], r[i] = x[i];
}

SR_FN void sr_radau_complex(const sr_radau *w, real p, real q, real *r, real *c) {
  real x[SR_DIM(SR_NV)], y[SR_DIM(SR_NV)];
  for (int i = 0; i < SR_NV; i++) {
    x[i] = r[SR_NV + i] + p * r[i] - q * c[i];
    y[i] = c[SR_NV + i] + p * c[i] + q * r[i];
    for (int j = 0; j < SR_NV; j++) {
      x[i] -= w->av[i * SR_NV + j] * r[j];
      y[i] -= w->av[i * SR_NV + j] * c[j];
    }
  }
  sr_complex_solve(w->re, w->im, w->cswap, SR_NV, x, y);
  for (int i = 0; i < SR_NV; i++) {
    r[SR_NV + i] = p * x[i] - q * y[i] - r[i];
    c[SR_NV + i] = p * y[i] + q * x[i] - c[i];
    r[i] = x[i], c[i] = y[i];
  }
}

/* first guess of the stages: the polynomial of the last step, continued */
SR_FN void sr_radau_guess(const sr_radau *w, real h, real z[3][SR_DIM(SR_NY2)]) {
  for (int j = 0; j < SR_NY2; j++) {
    for (int i = 0; i < 3; i++) z[i][j] = 0;
    if (!w->have_z) continue;
    for (int i = 0; i < 3; i++) {
      const real s = 1 + sr_radau_c[i] * h / w->h_last;
      real value = 0;
      for (int k = 0; k < 3; k++) { /* Lagrange through 0 and the three nodes; it vanishes at 0 */
        real l = s / sr_radau_c[k];
        for (int o = 0; o < 3; o++)
          if (o != k) l *= (s - sr_radau_c[o]) / (sr_radau_c[k] - sr_radau_c[o]);
        value += l * w->z[k][j];
      }
      z[i][j] = value - w->z[2][j];
    }
  }
}

/* Newton on the stages; 0 converged, SR_GO_ON + 1000 if not, else a failure */
SR_FN int sr_radau_newton(sr_motion *m, sr_radau *w, sr_trial *x, real h, real z[3][SR_DIM(SR_NY2)]) {
  real s[3][SR_DIM(SR_NY2)], y[SR_DIM(SR_NY2)], f[3][SR_DIM(SR_NY2)], weight[SR_DIM(SR_NY2)], before = 0;
  sr_weights(m, h, m->v, m->v, weight);
  /* in tolerances: small enough for the order of the collocation to show, but not below rounding */
  const real target = m->rtol < 1e-10 ? 1e-15 / m->rtol : 1e-5;
  for (int i = 0; i < 3; i++)
    for (int j = 0; j < SR_NY2; j++) s[i][j] = sr_radau_ti[i][0] * z[0][j] + sr_radau_ti[i][1] * z[1][j] + sr_radau_ti[i][2] * z[2][j];
  for (int pass = 0; pass < 12; pass++) {
    for (int i = 0; i < 3; i++) {
      for (int j = 0; j < SR_NY2; j++) y[j] = x->y0[j] + z[i][j];
      const real support = sr_slope(m, m->t + sr_radau_c[i] * h, y, f[i]);
      if (support < 0) return m->failed ? SR_CALL_FAILED : SR_NOT_FINITE;
      sr_weigh(x, support, m->t + sr_radau_c[i] * h, y);
    }
    real d[3][SR_DIM(SR_NY2)], size = 0;
    const real real_s = SR_RADAU_REAL / h, p = SR_RADAU_RE / h, q = SR_RADAU_IM / h;
    for (int j = 0; j < SR_NY2; j++) {
      real t[3];
      for (int i = 0; i < 3; i++) t[i] = sr_radau_ti[i][0] * f[0][j] + sr_radau_ti[i][1] * f[1][j] + sr_radau_ti[i][2] * f[2][j];
      d[0][j] = t[0] - real_s * s[0][j];
      d[1][j] = t[1] - p * s[1][j] + q * s[2][j];
      d[2][j] = t[2] - p * s[2][j] - q * s[1][j];
    }
    sr_radau_real(w, real_s, d[0]);
    sr_radau_complex(w, p, q, d[1], d[2]);
    for (int i = 0; i < 3; i++) {
      const real n = sr_norm(d[i], weight);
      size += n * n / 3;
      for (int j = 0; j < SR_NY2; j++) s[i][j] += d[i][j];
    }
    for (int i = 0; i < 3; i++)
      for (int j = 0; j < SR_NY2; j++) z[i][j] = sr_radau_t[i][0] * s[0][j] + sr_radau_t[i][1] * s[1][j] + sr_radau_t[i][2] * s[2][j];
    size = sqrt(size);
    if (!(size < 1e30)) return SR_GO_ON + 1000;
    const real rate = pass > 0 && before > 0 ? size / before : 0;
    if (pass > 0) w->contraction = rate;
    if (size <= 1e-14 || (pass > 0 && rate < 1 && size * rate / (1 - rate) <= target)) return 0;
    if (pass > 1 && rate >= 0.99) return size <= 1e-2 ? 0 : SR_GO_ON + 1000;
    before = size;
  }
  return SR_GO_ON + 1000;
}

SR_FN int sr_step_radau(sr_motion *m, real h, sr_trial *x) {
  sr_radau *w = (sr_radau *)m->memory;
  real z[3][SR_DIM(SR_NY2)], e[SR_DIM(SR_NY2)], weight[SR_DIM(SR_NY2)], y[SR_DIM(SR_NY2)], f[SR_DIM(SR_NY2)];
  int code = SR_GO_ON + 1000;
  if (!m->has_old) w->have_z = w->known = 0;
  for (int attempt = 0; attempt < 2 && code == SR_GO_ON + 1000; attempt++) {
    if (!w->known || (attempt > 0 && !w->fresh)) {
      const int failed = sr_jacobian(m, w);
      if (failed) return failed;
    } else if (attempt > 0) {
      break;
    }
    if (w->h_factored != h && !sr_radau_factor(m, w, h)) return SR_NOT_FINITE;
    sr_radau_guess(w, h, z);
    code = sr_radau_newton(m, w, x, h, z);
    if (code == SR_NOT_FINITE && w->have_z) { /* a guess that led astray */
      w->have_z = 0;
      code = SR_GO_ON + 1000;
    }
  }
  if (code == SR_GO_ON + 1000) {
    w->have_z = 0;
    return SR_NO_CONVERGENCE;
  }
  if (code) return code;
  for (int j = 0; j < SR_NY2; j++) {
    x->y1[j] = x->y0[j] + z[2][j];
    f[j] = (SR_RADAU_E1 * z[0][j] + SR_RADAU_E2 * z[1][j] + SR_RADAU_E3 * z[2][j]) / h;
    e[j] = x->k[0][j] + f[j];
  }
  sr_weights(m, h, m->v, x->y1 + SR_NV, weight);
  sr_radau_real(w, SR_RADAU_REAL / h, e);
  x->error = sr_norm(e, weight);
  if (x->error >= 1 && (!m->has_old || m->rejected_last)) { /* stiff parts of the estimate are filtered once more */
    for (int j = 0; j < SR_NY2; j++) y[j] = x->y0[j] + e[j];
    if (sr_slope(m, m->t, y, e) < 0) return m->failed ? SR_CALL_FAILED : SR_NOT_FINITE;
    for (int j = 0; j < SR_NY2; j++) e[j] += f[j];
    sr_radau_real(w, SR_RADAU_REAL / h, e);
    x->error = sr_norm(e, weight);
  }
  if (x->error <= 1) {
    for (int i = 0; i < 3; i++)
      for (int j = 0; j < SR_NY2; j++) w->z[i][j] = z[i][j];
    w->h_last = h, w->have_z = 1;
    w->fresh = 0;
    if (w->contraction > 0.02) w->known = 0; /* the derivatives have changed too much: new ones for the next step */
  }
  return 0;
}

#endif
