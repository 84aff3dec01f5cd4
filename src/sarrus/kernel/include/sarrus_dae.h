/* Steps of F(t, y, y') = 0 of index up to 3: Radau IIA of order 5, and generalized-alpha for the index-3 form.

   y = (q, v, rest) with SR_NQ, SR_NV and SR_N - SR_NQ - SR_NV entries. The generated part gives sr_equations (F) and
   sr_derivatives (dF/dy + c dF/dy', one column after the other); rows that are switched off only say lambda = 0. With
   SR_SPLIT the form is that of sarrus_split.h; SR_INDEX3 marks the form in which only Phi = 0 is said.

   A step starts from (q, v) of the machine with multipliers and slopes that are consistent with them, and ends in the hands
   of sarrus_run.h, as any other: that projects, looks for singular positions and events, and chooses the next length.

   What is tested for accuracy are positions and velocities. Multipliers and accelerations stay out of the test: an index-2
   (3) variable is one (two) powers of h less accurate, so that a test on them stops the integration where they grow; in the
   index-3 form the velocities are of index 2, and their error is taken times h (Hairer, Lubich & Roche; sheet 10). */
#ifndef SARRUS_DAE_H
#define SARRUS_DAE_H

#include "sarrus_lu.h"

typedef struct {
  sr_motion *motion;
  const real *scale;  /* of the rows */
  double *memory;
  long *split;        /* SR_SPLIT: which coordinates depend on others, and whether that is known */
  real *y, *yp;       /* where a step starts */
} sr_dae;

/* what is kept from step to step, in the caller's memory */
typedef struct {
  real fy[SR_N * SR_N], fp[SR_N * SR_N]; /* row major */
  real lu[SR_N * SR_N], re[SR_N * SR_N], im[SR_N * SR_N];
  real z[3][SR_N], t_last, t_known, h_factored, h_last, rate;
  real a_old[SR_DIM(SR_NV)], vdot[SR_DIM(SR_NV)], on[SR_DIM(SR_K)];
  int swap[SR_N], cswap[SR_N], known, have_z;
} sr_dae_memory;

SR_EXPORT long sarrus_dae_size(void) { return (long)sizeof(sr_dae); }
SR_EXPORT long sarrus_dae_memory_size(void) { return (long)sizeof(sr_dae_memory); }

SR_EXPORT long sarrus_residual(sr_dae *d, const real *t, const real *y, const real *yp, real *out) {
  sr_motion *m = d->motion;
  m->evaluations++;
  sr_input(m, *t, y, y + SR_NQ);
  if (m->failed) return 1;
#if SR_SPLIT
  sr_split_equations(d->split, t, y, yp, m->u, m->setup.p, m->chosen, d->scale, out);
#else
  sr_equations(t, y, yp, m->u, m->setup.p, m->chosen, d->scale, out);
#endif
  return 0;
}

/* one column after the other */
SR_EXPORT void sarrus_jacobian(sr_dae *d, const real *t, const real *y, const real *yp, const real *c, real *out) {
  const sr_motion *m = d->motion;
#if SR_SPLIT
  sr_split_derivatives(d->split, t, y, yp, c, m->u, m->setup.p, m->chosen, d->scale, out);
#else
  sr_derivatives(t, y, yp, c, m->u, m->setup.p, m->chosen, d->scale, out);
#endif
}

/* y and y' at the machine's (q, v): accelerations and multipliers of the rows that are on, q' = N v; nonzero if that failed */
SR_EXPORT long sarrus_dae_start(sr_dae *d) {
  sr_motion *m = d->motion;
  real a[SR_DIM(SR_NV)], lam[SR_DIM(SR_M)], *y = d->y, *yp = d->yp;
  if (sr_acceleration(m, m->t, m->q, m->v, &m->setup, a, lam) < 0) return m->failed ? SR_CALL_FAILED : SR_NOT_FINITE;
  for (int i = 0; i < SR_N; i++) y[i] = yp[i] = 0;
  for (int i = 0; i < SR_NQ; i++) y[i] = m->q[i];
  for (int i = 0; i < SR_NV; i++) y[SR_NQ + i] = m->v[i], yp[SR_NQ + i] = a[i];
  for (int i = 0; i < SR_PLAIN; i++) yp[sr_plain_q[i]] = m->v[sr_plain_v[i]];
  for (int k = 0; k < SR_TURNS; k++) { /* a half of a times (0, w) */
    const real *b = m->q + sr_turn_q[k], *w = m->v + sr_turn_v[k];
    real *o = yp + sr_turn_q[k];
    o[0] = -(b[1] * w[0] + b[2] * w[1] + b[3] * w[2]) / 2;
    o[1] = (b[0] * w[0] + b[2] * w[2] - b[3] * w[1]) / 2;
    o[2] = (b[0] * w[1] + b[3] * w[0] - b[1] * w[2]) / 2;
    o[3] = (b[0] * w[2] + b[1] * w[1] - b[2] * w[0]) / 2;
  }
  if (SR_W_AT >= 0)
    for (int i = 0; i < SR_NV; i++) y[SR_W_AT + i] = a[i];
  if (SR_LAM_AT >= 0)
    for (int i = 0; i < SR_K; i++) y[SR_LAM_AT + i] = m->chosen[i] > 0 ? lam[sr_kept[i]] / d->scale[i] : 0;
  return 0;
}

/* loop error of the rows that are on, relative, and how well they carry: 0 if some do not */
SR_EXPORT real sarrus_dae_open(sr_dae *d, const real *t, const real *q, const real *v, real *support) {
  sr_motion *m = d->motion;
  real phi[SR_DIM(SR_K)], rate[SR_DIM(SR_K)], dv[SR_DIM(SR_NV)];
  sr_report report;
  *support = 1;
  if (SR_K == 0) return 0;
  m->correct(t, q, v, &m->setup, phi, rate, 0, dv, &report);
  *support = report.rank < m->rank ? 0 : report.accepted;
  return sr_worst(m, phi);
}

/* bring the machine's (q, v) back to its constraints */
SR_EXPORT real sarrus_dae_close(sr_dae *d) {
  sr_motion *m = d->motion;
  return sr_project(m, m->t, &m->setup, m->q, m->v);
}

/* the start of an attempt; 0, or why there is none */
SR_FN int sr_dae_begin(sr_dae *d, sr_dae_memory *w, real support, real open) {
  sr_motion *m = d->motion;
  const real part = support < m->s_ref ? support / m->s_ref : 1;
  int same = m->has_old;
  for (int i = 0; i < SR_K; i++) same &= w->on[i] == m->chosen[i], w->on[i] = m->chosen[i];
  if (!same) w->known = 0;
  if (!same || fabs(w->t_last - m->t) > 1e-9 * fabs(w->h_last)) w->have_z = 0;
  if (m->correction == SR_FREE && open > SR_OPEN * part * part) return SR_LOST; /* or it would lose its branch unnoticed */
  return (int)sarrus_dae_start(d);
}

/* delta from the configuration q to that of y, whose quaternions need not be of unit length */
SR_FN void sr_dae_shift(const real *q, const real *y, real *delta) {
  for (int i = 0; i < SR_PLAIN; i++) delta[sr_plain_v[i]] = y[sr_plain_q[i]] - q[sr_plain_q[i]];
  for (int k = 0; k < SR_TURNS; k++) {
    const real *a = q + sr_turn_q[k], *b = y + sr_turn_q[k];
    const real w = a[0] * b[0] + a[1] * b[1] + a[2] * b[2] + a[3] * b[3];
    const real r[3] = {a[0] * b[1] - a[1] * b[0] - a[2] * b[3] + a[3] * b[2],
                       a[0] * b[2] + a[1] * b[3] - a[2] * b[0] - a[3] * b[1],
                       a[0] * b[3] - a[1] * b[2] + a[2] * b[1] - a[3] * b[0]};
    const real sine = sqrt(r[0] * r[0] + r[1] * r[1] + r[2] * r[2]);
    const real f = sine > 1e-8 * w ? 2 * atan2(sine, w) / sine : 2 / w;
    for (int i = 0; i < 3; i++) delta[sr_turn_v[k] + i] = f * r[i];
  }
}

/* note how well the rows carry at a stage */
SR_FN void sr_dae_weigh(sr_dae *d, sr_trial *x, real t, const real *y) {
  real there[SR_DIM(SR_NY2)], support;
  if (SR_K == 0) return;
  sarrus_dae_open(d, &t, y, y + SR_NQ, &support);
  sr_dae_shift(d->motion->q, y, there);
  for (int i = 0; i < SR_NV; i++) there[SR_NV + i] = y[SR_NQ + i];
  sr_weigh(x, support, t, there);
}

/* dF/dy and dF/dy' at a place, row major */
SR_FN void sr_dae_parts(sr_dae *d, sr_dae_memory *w, real t, const real *y, const real *yp) {
  const real zero = 0, one = 1;
  sarrus_jacobian(d, &t, y, yp, &zero, w->re);
  sarrus_jacobian(d, &t, y, yp, &one, w->im);
  for (int i = 0; i < SR_N; i++)
    for (int j = 0; j < SR_N; j++) {
      w->fy[i * SR_N + j] = w->re[j * SR_N + i];
      w->fp[i * SR_N + j] = w->im[j * SR_N + i] - w->re[j * SR_N + i];
    }
  w->h_factored = 0;
}

/* of y, from those of the motion's step, those of speeds times a factor; a unit quaternion is off by half of an angle */
SR_FN void sr_dae_weights(const sr_dae *d, real h, const real *v0, const real *v1, real power, real *weight) {
  real w[SR_DIM(SR_NY2)];
  sr_weights(d->motion, h, v0, v1, w);
  for (int i = 0; i < SR_N; i++) weight[i] = 0;
  for (int i = 0; i < SR_PLAIN; i++) weight[sr_plain_q[i]] = w[sr_plain_v[i]];
  for (int k = 0; k < SR_TURNS; k++) {
    const real *a = w + sr_turn_v[k], most = a[0] > a[1] ? a[0] : a[1];
    for (int i = 0; i < 4; i++) weight[sr_turn_q[k] + i] = 2 * (most > a[2] ? most : a[2]);
  }
  for (int i = 0; i < SR_NV; i++) weight[SR_NQ + i] = w[SR_NV + i] * power;
}

SR_FN real sr_dae_norm(const real *y, const real *weight) {
  real s = 0;
  int count = 0;
  for (int i = 0; i < SR_N; i++) s += y[i] * weight[i] * (y[i] * weight[i]), count += weight[i] > 0;
  return count ? sqrt(s / count) : 0;
}

/* --- Radau IIA ---------------------------------------------------------------------------------------------------- */

SR_FN int sr_dae_factor(sr_dae *d, sr_dae_memory *w, real h) {
  const real s = SR_RADAU_REAL / h, p = SR_RADAU_RE / h, q = SR_RADAU_IM / h;
  for (int i = 0; i < SR_N * SR_N; i++) {
    w->lu[i] = w->fy[i] + s * w->fp[i];
    w->re[i] = w->fy[i] + p * w->fp[i];
    w->im[i] = q * w->fp[i];
  }
  d->motion->factorisations++;
  w->h_factored = h;
  return sr_lu(w->lu, w->swap, SR_N) && sr_complex_lu(w->re, w->im, w->cswap, SR_N);
}

/* first guess of the stages: the polynomial of the last step, continued */
SR_FN void sr_dae_guess(const sr_dae_memory *w, real h, real z[3][SR_N]) {
  for (int j = 0; j < SR_N; j++)
    for (int i = 0; i < 3; i++) {
      z[i][j] = 0;
      if (!w->have_z) continue;
      const real s = 1 + sr_radau_c[i] * h / w->h_last;
      for (int k = 0; k < 3; k++) {
        real l = s / sr_radau_c[k];
        for (int o = 0; o < 3; o++)
          if (o != k) l *= (s - sr_radau_c[o]) / (sr_radau_c[k] - sr_radau_c[o]);
        z[i][j] += l * w->z[k][j];
      }
      z[i][j] -= w->z[2][j];
    }
}

/* Newton on F(t_i, y0 + Z_i, Y'_i) = 0, Y' = A^-1 Z / h, in W = T^-1 Z; 0, or why not */
SR_FN int sr_dae_newton(sr_dae *d, sr_dae_memory *w, real h, real target, real z[3][SR_N]) {
  real s[3][SR_N], y[SR_N], yp[3][SR_N], f[3][SR_N], r[3][SR_N], weight[SR_N], before = 0;
  const real g = SR_RADAU_REAL / h, p = SR_RADAU_RE / h, q = SR_RADAU_IM / h;
  sr_dae_weights(d, h, d->y + SR_NQ, d->y + SR_NQ, 1, weight);
  for (int i = 0; i < 3; i++)
    for (int j = 0; j < SR_N; j++)
      s[i][j] = sr_radau_ti[i][0] * z[0][j] + sr_radau_ti[i][1] * z[1][j] + sr_radau_ti[i][2] * z[2][j];
  for (int pass = 0; pass < 12; pass++) {
    for (int j = 0; j < SR_N; j++) {
      const real a = g * s[0][j], b = p * s[1][j] - q * s[2][j], c = q * s[1][j] + p * s[2][j];
      for (int i = 0; i < 3; i++) yp[i][j] = sr_radau_t[i][0] * a + sr_radau_t[i][1] * b + sr_radau_t[i][2] * c;
    }
    for (int i = 0; i < 3; i++) {
      const real t = d->motion->t + sr_radau_c[i] * h;
      for (int j = 0; j < SR_N; j++) y[j] = d->y[j] + z[i][j];
      if (sarrus_residual(d, &t, y, yp[i], f[i])) return SR_CALL_FAILED;
    }
    for (int i = 0; i < 3; i++)
      for (int j = 0; j < SR_N; j++)
        r[i][j] = -(sr_radau_ti[i][0] * f[0][j] + sr_radau_ti[i][1] * f[1][j] + sr_radau_ti[i][2] * f[2][j]);
    sr_lu_solve(w->lu, w->swap, SR_N, r[0]);
    sr_complex_solve(w->re, w->im, w->cswap, SR_N, r[1], r[2]);
    real size = 0;
    for (int i = 0; i < 3; i++) {
      const real n = sr_dae_norm(r[i], weight);
      size += n * n / 3;
      for (int j = 0; j < SR_N; j++) s[i][j] += r[i][j];
    }
    size = sqrt(size);
    for (int i = 0; i < 3; i++)
      for (int j = 0; j < SR_N; j++)
        z[i][j] = sr_radau_t[i][0] * s[0][j] + sr_radau_t[i][1] * s[1][j] + sr_radau_t[i][2] * s[2][j];
    if (!(size < 1e30)) return SR_NO_CONVERGENCE;
    const real rate = pass > 0 && before > 0 ? size / before : 0;
    if (pass > 0) w->rate = rate;
    if (size <= 1e-14 || (pass > 0 && rate < 1 && size * rate / (1 - rate) <= target)) return 0;
    if (pass > 1 && rate >= 0.99) return size <= 1e-2 ? 0 : SR_NO_CONVERGENCE;
    before = size;
  }
  return SR_NO_CONVERGENCE;
}

SR_EXPORT int sarrus_dae_radau(sr_motion *m, real h, sr_trial *x) {
  sr_dae *d = (sr_dae *)m->form;
  sr_dae_memory *w = (sr_dae_memory *)d->memory;
  real z[3][SR_N], e[SR_N], f[SR_N], weight[SR_N], y[SR_N];
  /* in tolerances: small enough for the order of the collocation to show, but not below rounding */
  const real target = m->rtol < 1e-10 ? 1e-15 / m->rtol : 1e-5;
  real support;
  const real open = sarrus_dae_open(d, &m->t, m->q, m->v, &support);
  if (support == 0) return sr_step_dopri5(m, h, x); /* in a singular position there are no multipliers */
  int code = sr_dae_begin(d, w, support, open);
  if (code) return code;
  code = SR_NO_CONVERGENCE;
  for (int attempt = 0; attempt < 2 && code == SR_NO_CONVERGENCE; attempt++) {
    if (!w->known || (attempt > 0 && w->t_known != m->t)) {
      sr_dae_parts(d, w, m->t, d->y, d->yp);
      w->known = 1, w->t_known = m->t;
    } else if (attempt > 0) {
      break;
    }
    if (w->h_factored != h && !sr_dae_factor(d, w, h)) return SR_NO_CONVERGENCE;
    sr_dae_guess(w, h, z);
    code = sr_dae_newton(d, w, h, target, z);
    if (code) w->have_z = 0;
  }
  if (code) return code;
  /* dF/dy' (y0' + e.Z / h), y0' being the slope at the start minus what is wrong with it; algebraic rows hold at both ends */
  if (sarrus_residual(d, &m->t, d->y, d->yp, f)) return SR_CALL_FAILED;
  for (int i = 0; i < SR_N; i++) {
    int differential = 0;
    e[i] = 0;
    for (int j = 0; j < SR_N; j++)
      if (w->fp[i * SR_N + j] != 0) {
        differential = 1;
        e[i] += w->fp[i * SR_N + j] *
                (d->yp[j] + (SR_RADAU_E1 * z[0][j] + SR_RADAU_E2 * z[1][j] + SR_RADAU_E3 * z[2][j]) / h);
      }
    e[i] = differential ? e[i] - f[i] : 0;
  }
  sr_lu_solve(w->lu, w->swap, SR_N, e);
  for (int i = 0; i < 3; i++) {
    for (int j = 0; j < SR_N; j++) y[j] = d->y[j] + z[i][j];
    sr_dae_weigh(d, x, m->t + sr_radau_c[i] * h, y);
  }
  const real pace = h * m->rate_scale;
  sr_dae_weights(d, h, m->v, y + SR_NQ, SR_INDEX3 && pace < 1 ? pace : 1, weight);
  x->error = sr_dae_norm(e, weight);
  sr_dae_shift(m->q, y, x->y1);
  for (int i = 0; i < SR_NV; i++) x->y1[SR_NV + i] = y[SR_NQ + i];
  if (x->error <= 1) {
    for (int i = 0; i < 3; i++)
      for (int j = 0; j < SR_N; j++) w->z[i][j] = z[i][j];
    w->h_last = h, w->t_last = m->t + h, w->have_z = 1;
    if (w->rate > 0.02) w->known = 0;
  }
  return 0;
}

/* --- generalized-alpha (Chung & Hulbert; on quaternions as Arnold & Bruels 2007), for the index-3 form -------------- */

#if SR_INDEX3
SR_EXPORT int sarrus_dae_alpha(sr_motion *mo, real h, sr_trial *x) {
  enum { m = SR_N - SR_NQ - SR_NV, n = SR_NV + m };
  sr_dae *d = (sr_dae *)mo->form;
  sr_dae_memory *w = (sr_dae_memory *)d->memory;
  const real rho = 0.8, am = (2 * rho - 1) / (rho + 1), af = rho / (rho + 1);
  const real gamma = 0.5 + af - am, beta = (gamma + 0.5) * (gamma + 0.5) / 4;
  const real b1 = (1 - am) / (h * h * beta * (1 - af)), g1 = gamma / (h * beta), t = mo->t + h;
  real a[SR_NV], vdot[SR_NV], delta[SR_NV], y[SR_N], yp[SR_N], f[SR_N], r[n], last = 1e300;
  real support;
  const real open = sarrus_dae_open(d, &mo->t, mo->q, mo->v, &support);
  if (support == 0) return sr_step_rk4(mo, h, x);
  const int code = sr_dae_begin(d, w, support, open);
  if (code) return code;
  if (!w->have_z)
    for (int i = 0; i < SR_NV; i++) w->vdot[i] = w->a_old[i] = d->yp[SR_NQ + i];
  for (int i = 0; i < SR_NV; i++) {
    vdot[i] = w->vdot[i];
    a[i] = ((1 - af) * vdot[i] + af * w->vdot[i] - am * w->a_old[i]) / (1 - am);
    delta[i] = h * mo->v[i] + h * h * ((0.5 - beta) * w->a_old[i] + beta * a[i]);
    y[SR_NQ + i] = mo->v[i] + h * ((1 - gamma) * w->a_old[i] + gamma * a[i]);
  }
  for (int i = 0; i < m; i++) y[SR_NQ + SR_NV + i] = d->y[SR_NQ + SR_NV + i];
  for (int i = 0; i < SR_N; i++) yp[i] = 0;
  for (int pass = 0; pass < 25; pass++) {
    sr_retract(mo->q, delta, y);
    for (int i = 0; i < SR_NV; i++) yp[SR_NQ + i] = vdot[i];
    if (sarrus_residual(d, &t, y, yp, f)) return SR_CALL_FAILED;
    if (pass % 4 == 0) { /* S = dF/dq N + g1 dF/dv + b1 dF/dv', multipliers as they are; N = -d(first rows)/dv */
      sr_dae_parts(d, w, t, y, yp);
      for (int i = 0; i < n; i++) {
        const real *fy = w->fy + (SR_NQ + i) * SR_N, *fp = w->fp + (SR_NQ + i) * SR_N;
        for (int j = 0; j < SR_NV; j++) {
          real s = g1 * fy[SR_NQ + j] + b1 * fp[SR_NQ + j];
          for (int k = 0; k < SR_NQ; k++) s -= fy[k] * w->fy[k * SR_N + SR_NQ + j];
          w->lu[i * n + j] = s;
        }
        for (int j = 0; j < m; j++) w->lu[i * n + SR_NV + j] = fy[SR_NQ + SR_NV + j] / (h * h); /* lambda h^2 */
      }
      mo->factorisations++;
      if (!sr_lu(w->lu, w->swap, n)) return SR_NO_CONVERGENCE;
    }
    for (int i = 0; i < n; i++) r[i] = -f[SR_NQ + i];
    sr_lu_solve(w->lu, w->swap, n, r);
    real size = 0;
    for (int i = 0; i < SR_NV; i++) {
      delta[i] += r[i], y[SR_NQ + i] += g1 * r[i], vdot[i] += b1 * r[i];
      const real part = fabs(r[i]) / mo->atol[i];
      if (!(part <= size)) size = part;
    }
    for (int i = 0; i < m; i++) y[SR_NQ + SR_NV + i] += r[SR_NV + i] / (h * h);
    if (!(size < 1e30)) return SR_NO_CONVERGENCE;
    if (size < 1e-4 || (pass > 3 && size < 1 && size > 0.5 * last)) { /* 1e-4 of the tolerance, or rounding */
      sr_retract(mo->q, delta, y);
      sr_dae_weigh(d, x, t, y);
      for (int i = 0; i < SR_NV; i++) {
        w->a_old[i] = ((1 - af) * vdot[i] + af * w->vdot[i] - am * w->a_old[i]) / (1 - am);
        w->vdot[i] = vdot[i];
        x->y1[i] = delta[i], x->y1[SR_NV + i] = y[SR_NQ + i];
      }
      w->h_last = h, w->t_last = t, w->have_z = 1;
      return 0;
    }
    last = size;
  }
  return SR_NO_CONVERGENCE;
}
#endif

#endif
