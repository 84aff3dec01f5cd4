/* Explicit Runge-Kutta steps in y = (delta, v) or (delta, v_r); coefficients in the tables that kernel/tableaux.py prints. */
#ifndef SARRUS_EXPLICIT_H
#define SARRUS_EXPLICIT_H

enum { SR_MOST = 16 }; /* stages of the largest method, with those of its dense output */

/* What is controlled is the error of one step; errors of many steps add up, and the motion itself spreads them. By these
   factors each step is made better than asked for, so that with any method the error at the end of the reference motions
   (tests/simulation/test_references.py) stays below about 50 rtol. Radau's estimate is of order 3 and needs none. */
#define SR_STRICT8 10
#define SR_STRICT5 50

/* one attempted step */
typedef struct sr_trial {
  real k[SR_MOST][SR_DIM(SR_NY2)];
  real y0[SR_DIM(SR_NY2)], y1[SR_DIM(SR_NY2)];
  real error;       /* in units of the tolerance; 0 for fixed steps */
  real weakest;     /* smallest support of the rows met on the way ... */
  real where;       /* ... when */
  real there[SR_DIM(SR_NY2)]; /* ... and at which y */
} sr_trial;

/* y0 + h sum_j a[j] k[j] */
SR_FN void sr_combine(const sr_trial *x, real h, const real *a, int count, real *out) {
  for (int i = 0; i < SR_NY2; i++) out[i] = x->y0[i];
  for (int j = 0; j < count; j++)
    if (a[j] != 0) {
      const real f = h * a[j];
      for (int i = 0; i < SR_NY2; i++) out[i] += f * x->k[j][i];
    }
}

/* note where the rows carry least */
SR_FN void sr_weigh(sr_trial *x, real support, real t, const real *y) {
  if (!(support < x->weakest)) return;
  x->weakest = support, x->where = t;
  for (int i = 0; i < SR_NY2; i++) x->there[i] = y[i];
}

SR_FN int sr_begin(sr_motion *m, sr_trial *x) {
  const int failed = sr_here(m, x->y0, x->k[0]);
  x->error = 0;
  x->weakest = (real)INFINITY;
  sr_weigh(x, m->s, m->t, x->y0);
  return failed;
}

/* error weights of a step to y1 that carried reduced quasi-velocities, and its errors as those of (delta, v) */
SR_FN void sr_reduced_errors(const sr_motion *m, const sr_trial *x, real h, real *w, real *e, real *more) {
  real y[SR_DIM(SR_NY2)];
  for (int i = 0; i < SR_NY2; i++) y[i] = x->y1[i];
  sr_in_velocities(m, y, 1);
  sr_weights(m, h, m->v, y + SR_NV, w);
  sr_in_velocities(m, e, 0);
  if (more) sr_in_velocities(m, more, 0);
}

/* stages first ... last - 1 of a table whose row i starts at a + i * width; 0, or why it failed */
SR_FN int sr_stages(sr_motion *m, sr_trial *x, real h, const real *a, const real *c, int width, int first, int last) {
  real y[SR_DIM(SR_NY2)];
  for (int i = first; i < last; i++) {
    sr_combine(x, h, a + i * width, i, y);
    const real s = sr_slope(m, m->t + c[i] * h, y, x->k[i]);
    if (s < 0) return m->failed ? SR_CALL_FAILED : SR_NOT_FINITE;
    sr_weigh(x, s, m->t + c[i] * h, y);
  }
  return 0;
}

SR_FN int sr_step_dop853(sr_motion *m, real h, sr_trial *x) {
  const int failed = sr_stages(m, x, h, &sr_dop853_a[0][0], sr_dop853_c, 16, 1, 12);
  if (failed) return failed;
  real e3[SR_DIM(SR_NY2)], e5[SR_DIM(SR_NY2)], w[SR_DIM(SR_NY2)];
  sr_combine(x, h, sr_dop853_b, 12, x->y1);
  for (int i = 0; i < SR_NY2; i++) {
    e3[i] = e5[i] = 0;
    for (int j = 0; j < 12; j++) e3[i] += sr_dop853_e3[j] * x->k[j][i], e5[i] += sr_dop853_e5[j] * x->k[j][i];
  }
  sr_weights(m, h, m->v, x->y1 + SR_NV, w);
  if (SR_QUASI) sr_reduced_errors(m, x, h, w, e3, e5);
  const real n3 = sr_norm(e3, w), n5 = sr_norm(e5, w), under = sqrt(n5 * n5 + 0.01 * n3 * n3);
  x->error = under > 0 ? SR_STRICT8 * h * n5 * n5 / under : 0;
  return 0;
}

SR_FN int sr_step_dopri5(sr_motion *m, real h, sr_trial *x) {
  int failed = sr_stages(m, x, h, &sr_dopri5_a[0][0], sr_dopri5_c, 7, 1, 7);
  if (failed) return failed;
  real e[SR_DIM(SR_NY2)], w[SR_DIM(SR_NY2)];
  sr_combine(x, h, sr_dopri5_a[6], 6, x->y1);
  for (int i = 0; i < SR_NY2; i++) {
    e[i] = 0;
    for (int j = 0; j < 7; j++) e[i] += h * sr_dopri5_e[j] * x->k[j][i];
  }
  sr_weights(m, h, m->v, x->y1 + SR_NV, w);
  if (SR_QUASI) sr_reduced_errors(m, x, h, w, e, 0);
  x->error = SR_STRICT5 * sr_norm(e, w);
  return 0;
}

SR_FN int sr_step_rk4(sr_motion *m, real h, sr_trial *x) {
  const int failed = sr_stages(m, x, h, &sr_rk4_a[0][0], sr_rk4_c, 4, 1, 4);
  if (failed) return failed;
  sr_combine(x, h, sr_rk4_b, 4, x->y1);
  return 0;
}

/* semi-implicit Euler: the new velocity moves the configuration */
SR_FN int sr_step_euler(sr_motion *m, real h, sr_trial *x) {
  real y[SR_DIM(SR_NY2)];
  for (int i = 0; i < SR_NV; i++) y[SR_NV + i] = x->y1[SR_NV + i] = x->y0[SR_NV + i] + h * x->k[0][SR_NV + i];
  if (SR_QUASI) sr_in_velocities(m, y, 1);
  for (int i = 0; i < SR_NV; i++) x->y1[i] = h * y[SR_NV + i];
  return 0;
}

/* the interpolant of order 7 that goes with Dormand-Prince 8: three further stages, then Hairer's nested form */
SR_FN int sr_dense_dop853(sr_motion *m, real h, sr_trial *x, const real *f1, sr_dense *d) {
  for (int i = 0; i < SR_NY2; i++) x->k[12][i] = f1[i];
  const int failed = sr_stages(m, x, h, &sr_dop853_a[0][0], sr_dop853_c, 16, 13, 16);
  if (failed) return failed;
  for (int i = 0; i < SR_NY2; i++) {
    const real dy = x->y1[i] - x->y0[i];
    d->more[0][i] = dy;
    d->more[1][i] = h * x->k[0][i] - dy;
    d->more[2][i] = 2 * dy - h * (f1[i] + x->k[0][i]);
    for (int r = 0; r < 4; r++) {
      real s = 0;
      for (int j = 0; j < 16; j++) s += sr_dop853_d[r][j] * x->k[j][i];
      d->more[3 + r][i] = h * s;
    }
  }
  return 0;
}

#endif
