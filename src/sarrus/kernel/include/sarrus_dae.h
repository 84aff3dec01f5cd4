/* Integrators for F(t, y, y') = 0 of index up to 3: Radau IIA of order 5, and generalized-alpha for the index-3 form.

   y = (q, v, rest) with SR_NQ, SR_NV and SR_N - SR_NQ - SR_NV entries. The generated part gives sr_equations (F) and
   sr_derivatives (dF/dy + c dF/dy', one column after the other); rows that are switched off only say lambda = 0. With
   SR_SPLIT the form is that of sarrus_split.h.

   What is tested for accuracy are positions and velocities. Multipliers and accelerations stay out of the test: an index-2
   (3) variable is one (two) powers of h less accurate, so that a test on them stops the integration where they grow; in the
   index-3 form the velocities are of index 2, and their error is taken times h (Hairer, Lubich & Roche; sheet 10). */
#ifndef SARRUS_DAE_H
#define SARRUS_DAE_H

#include "sarrus_lu.h"

enum { SR_DAE_MORE, SR_DAE_DONE, SR_DAE_TOO_SMALL, SR_DAE_TOO_MANY, SR_DAE_CALL_FAILED, SR_DAE_NO_CONVERGENCE };

typedef struct {
  long (*law)(const real *, const real *, const real *, const real *, real *); /* (t, q, v, p, u), or null */
  const real *p, *on, *scale;              /* parameters; flags and scales of the rows */
  const real *atol, *rtol, *power;         /* of each entry of y: tolerance atol + rtol |y|, 0 if untested; powers of h */
  real *u, *y, *yp, *rows;                 /* rows: (t, q, v) */
  double *memory;
  long *split;                             /* SR_SPLIT: which coordinates depend on others, and whether that is known */
  real t, h, t_end, max_step, fixed, pace;
  long row_count, row_room, chunk, max_steps, started;
  long steps, rejected, evaluations, jacobians, factorisations, failed;
} sr_dae;

/* what is kept from step to step, in the caller's memory */
typedef struct {
  real fy[SR_N * SR_N], fp[SR_N * SR_N]; /* row major */
  real lu[SR_N * SR_N], re[SR_N * SR_N], im[SR_N * SR_N];
  real z[3][SR_N], h_factored, h_last, rate;
  real a_old[SR_NV], vdot[SR_NV];
  int swap[SR_N], cswap[SR_N], fresh, known, have_z;
} sr_dae_memory;

SR_EXPORT long sarrus_dae_size(void) { return (long)sizeof(sr_dae); }
SR_EXPORT long sarrus_dae_memory_size(void) { return (long)sizeof(sr_dae_memory); }

SR_EXPORT long sarrus_residual(sr_dae *d, const real *t, const real *y, const real *yp, real *out) {
  d->evaluations++;
  if (d->law && d->law(t, y, y + SR_NQ, d->p, d->u)) return d->failed = 1;
#if SR_SPLIT
  sr_split_equations(d->split, t, y, yp, d->u, d->p, d->on, d->scale, out);
#else
  sr_equations(t, y, yp, d->u, d->p, d->on, d->scale, out);
#endif
  return 0;
}

/* one column after the other */
SR_EXPORT void sarrus_jacobian(sr_dae *d, const real *t, const real *y, const real *yp, const real *c, real *out) {
  d->jacobians++;
#if SR_SPLIT
  sr_split_derivatives(d->split, t, y, yp, c, d->u, d->p, d->on, d->scale, out);
#else
  sr_derivatives(t, y, yp, c, d->u, d->p, d->on, d->scale, out);
#endif
}

/* dF/dy and dF/dy' at a place, row major */
SR_FN void sr_dae_parts(sr_dae *d, sr_dae_memory *w, real t, const real *y, const real *yp) {
  const real zero = 0, one = 1;
  sarrus_jacobian(d, &t, y, yp, &zero, w->re);
  sarrus_jacobian(d, &t, y, yp, &one, w->im);
  d->jacobians--;
  for (int i = 0; i < SR_N; i++)
    for (int j = 0; j < SR_N; j++) {
      w->fy[i * SR_N + j] = w->re[j * SR_N + i];
      w->fp[i * SR_N + j] = w->im[j * SR_N + i] - w->re[j * SR_N + i];
    }
  w->h_factored = 0;
}

SR_FN void sr_dae_weights(const sr_dae *d, real h, const real *y, real *weight) {
  const real small = h * d->pace < 1 ? h * d->pace : 1;
  for (int i = 0; i < SR_N; i++)
    weight[i] = d->atol[i] > 0 ? pow(small, d->power[i]) / (d->atol[i] + d->rtol[i] * fabs(y[i])) : 0;
}

SR_FN real sr_dae_norm(const real *y, const real *weight) {
  real s = 0;
  int count = 0;
  for (int i = 0; i < SR_N; i++) s += y[i] * weight[i] * (y[i] * weight[i]), count += weight[i] > 0;
  return count ? sqrt(s / count) : 0;
}

SR_FN void sr_dae_row(sr_dae *d) {
  real *row = d->rows + d->row_count++ * (1 + SR_NQ + SR_NV);
  row[0] = d->t;
  for (int i = 0; i < SR_NQ + SR_NV; i++) row[1 + i] = d->y[i];
}

/* unit quaternions */
SR_FN void sr_dae_normalise(real *q) {
  for (int k = 0; k < SR_TURNS; k++) {
    real *a = q + sr_turn_q[k], s = 0;
    for (int i = 0; i < 4; i++) s += a[i] * a[i];
    for (int i = 0; i < 4; i++) a[i] /= sqrt(s);
  }
}

/* --- Radau IIA ---------------------------------------------------------------------------------------------------- */

SR_FN int sr_dae_factor(sr_dae *d, sr_dae_memory *w, real h) {
  const real s = SR_RADAU_REAL / h, p = SR_RADAU_RE / h, q = SR_RADAU_IM / h;
  for (int i = 0; i < SR_N * SR_N; i++) {
    w->lu[i] = w->fy[i] + s * w->fp[i];
    w->re[i] = w->fy[i] + p * w->fp[i];
    w->im[i] = q * w->fp[i];
  }
  d->factorisations++;
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

/* Newton on F(t_i, y0 + Z_i, Y'_i) = 0, Y' = A^-1 Z / h, in W = T^-1 Z; 0 converged, 1 not, 2 a call failed */
SR_FN int sr_dae_newton(sr_dae *d, sr_dae_memory *w, real h, real target, real z[3][SR_N]) {
  real s[3][SR_N], y[SR_N], yp[3][SR_N], f[3][SR_N], r[3][SR_N], weight[SR_N], before = 0;
  const real g = SR_RADAU_REAL / h, p = SR_RADAU_RE / h, q = SR_RADAU_IM / h;
  sr_dae_weights(d, h, d->y, weight);
  for (int i = 0; i < 3; i++)
    for (int j = 0; j < SR_N; j++)
      s[i][j] = sr_radau_ti[i][0] * z[0][j] + sr_radau_ti[i][1] * z[1][j] + sr_radau_ti[i][2] * z[2][j];
  for (int pass = 0; pass < 12; pass++) {
    for (int j = 0; j < SR_N; j++) {
      const real a = g * s[0][j], b = p * s[1][j] - q * s[2][j], c = q * s[1][j] + p * s[2][j];
      for (int i = 0; i < 3; i++) yp[i][j] = sr_radau_t[i][0] * a + sr_radau_t[i][1] * b + sr_radau_t[i][2] * c;
    }
    for (int i = 0; i < 3; i++) {
      const real t = d->t + sr_radau_c[i] * h;
      for (int j = 0; j < SR_N; j++) y[j] = d->y[j] + z[i][j];
      if (sarrus_residual(d, &t, y, yp[i], f[i])) return 2;
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
    if (!(size < 1e30)) return 1;
    const real rate = pass > 0 && before > 0 ? size / before : 0;
    if (pass > 0) w->rate = rate;
    if (size <= 1e-14 || (pass > 0 && rate < 1 && size * rate / (1 - rate) <= target)) return 0;
    if (pass > 1 && rate >= 0.99) return size <= target ? 0 : 1;
    before = size;
  }
  return 1;
}

/* one attempt; *error in units of the tolerance */
SR_FN int sr_dae_radau_step(sr_dae *d, sr_dae_memory *w, real h, real *error, real z[3][SR_N]) {
  real e[SR_N], f[SR_N], weight[SR_N], end[SR_N];
  int code = 1;
  for (int attempt = 0; attempt < 2 && code == 1; attempt++) {
    if (!w->known || (attempt > 0 && !w->fresh)) {
      sr_dae_parts(d, w, d->t, d->y, d->yp);
      w->known = w->fresh = 1;
    } else if (attempt > 0) {
      break;
    }
    if (w->h_factored != h && !sr_dae_factor(d, w, h)) return 1;
    sr_dae_guess(w, h, z);
    code = sr_dae_newton(d, w, h, 1e-3, z);
    if (code == 1) w->have_z = 0;
  }
  if (code) return code;
  /* dF/dy' (y0' + e.Z / h), y0' being the slope known minus what is wrong with it; algebraic rows hold at both ends */
  for (int j = 0; j < SR_N; j++) end[j] = d->y[j] + z[2][j];
  if (sarrus_residual(d, &d->t, d->y, d->yp, f)) return 2;
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
  sr_dae_weights(d, h, end, weight);
  *error = sr_dae_norm(e, weight);
  return 0;
}

SR_EXPORT long sarrus_dae_radau(sr_dae *d) {
  sr_dae_memory *w = (sr_dae_memory *)d->memory;
  if (!d->started) {
    w->known = w->have_z = 0;
    d->started = 1;
    sr_dae_row(d);
  }
  int rejected = 0;
  const real floor = 1e-14 * (fabs(d->t) + d->t_end - d->t);
  for (long n = 0; n < d->chunk && d->row_count < d->row_room;) {
    if (d->t >= d->t_end) return SR_DAE_DONE;
    if (d->steps >= d->max_steps) return SR_DAE_TOO_MANY;
    const real left = d->t_end - d->t;
    real h = d->h < d->max_step ? d->h : d->max_step, z[3][SR_N], error = 1e300;
    h = h * 1.01 >= left ? left : h;
    const int code = sr_dae_radau_step(d, w, h, &error, z);
    if (code == 2) return SR_DAE_CALL_FAILED;
    if (code || !(error <= 1)) {
      const real f = code || !(error < 1e30) ? 0.25 : 0.9 * pow(error, -0.25);
      d->h = h * (f < 0.1 ? 0.1 : f);
      d->rejected++;
      rejected = 1;
      if (code) w->known = 0;
      if (d->h < floor) return code ? SR_DAE_NO_CONVERGENCE : SR_DAE_TOO_SMALL;
      continue;
    }
    for (int j = 0; j < SR_N; j++) {
      for (int i = 0; i < 3; i++) w->z[i][j] = z[i][j];
      d->y[j] += z[2][j];
    }
    sr_dae_normalise(d->y);
    for (int i = 0; i < SR_NQ + SR_NV; i++) { /* the slope at the end, for the next step */
      d->yp[i] = 0;
      for (int k = 0; k < 3; k++) d->yp[i] += sr_radau_last[k] * z[k][i] / h;
    }
    w->h_last = h, w->have_z = 1, w->fresh = 0;
    if (w->rate > 0.02) w->known = 0;
    real f = 0.9 * pow(error > 1e-10 ? error : 1e-10, -0.25);
    f = f > 5 ? 5 : (f < 0.2 ? 0.2 : f);
    if (rejected && f > 1) f = 1;
    rejected = 0;
    d->t = h == left ? d->t_end : d->t + h;
    if (f < 1 || f > 1.2 || h != d->h) d->h = h * f; /* else the factors are still good */
    d->steps++, n++;
    sr_dae_row(d);
  }
  return d->t >= d->t_end ? SR_DAE_DONE : SR_DAE_MORE;
}

/* --- generalized-alpha (Chung & Hulbert; on quaternions as Arnold & Bruels 2007), for the index-3 form -------------- */

#if SR_ALPHA
SR_FN int sr_dae_alpha_step(sr_dae *d, sr_dae_memory *w, real h) {
  enum { m = SR_N - SR_NQ - SR_NV, n = SR_NV + m };
  const real rho = 0.8, am = (2 * rho - 1) / (rho + 1), af = rho / (rho + 1);
  const real gamma = 0.5 + af - am, beta = (gamma + 0.5) * (gamma + 0.5) / 4;
  const real b1 = (1 - am) / (h * h * beta * (1 - af)), g1 = gamma / (h * beta), t = d->t + h;
  real a[SR_NV], vdot[SR_NV], delta[SR_NV], y[SR_N], yp[SR_N], f[SR_N], r[n], last = 1e300;
  for (int i = 0; i < SR_NV; i++) {
    vdot[i] = w->vdot[i];
    a[i] = ((1 - af) * vdot[i] + af * w->vdot[i] - am * w->a_old[i]) / (1 - am);
    delta[i] = h * d->y[SR_NQ + i] + h * h * ((0.5 - beta) * w->a_old[i] + beta * a[i]);
    y[SR_NQ + i] = d->y[SR_NQ + i] + h * ((1 - gamma) * w->a_old[i] + gamma * a[i]);
  }
  for (int i = 0; i < m; i++) y[SR_NQ + SR_NV + i] = d->y[SR_NQ + SR_NV + i];
  for (int i = 0; i < SR_N; i++) yp[i] = 0;
  for (int pass = 0; pass < 25; pass++) {
    sr_retract(d->y, delta, y);
    for (int i = 0; i < SR_NV; i++) yp[SR_NQ + i] = vdot[i];
    if (sarrus_residual(d, &t, y, yp, f)) return 2;
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
      d->factorisations++;
      if (!sr_lu(w->lu, w->swap, n)) return 1;
    }
    for (int i = 0; i < n; i++) r[i] = -f[SR_NQ + i];
    sr_lu_solve(w->lu, w->swap, n, r);
    real size = 0;
    for (int i = 0; i < SR_NV; i++) {
      delta[i] += r[i], y[SR_NQ + i] += g1 * r[i], vdot[i] += b1 * r[i];
      const real part = fabs(r[i]) / d->atol[sr_q_of[i]];
      if (!(part <= size)) size = part;
    }
    for (int i = 0; i < m; i++) y[SR_NQ + SR_NV + i] += r[SR_NV + i] / (h * h);
    if (!(size < 1e30)) return 1;
    if (size < 1e-4 || (pass > 3 && size < 1 && size > 0.5 * last)) { /* 1e-4 of the tolerance, or rounding */
      sr_retract(d->y, delta, y);
      for (int i = 0; i < SR_NV; i++) {
        w->a_old[i] = ((1 - af) * vdot[i] + af * w->vdot[i] - am * w->a_old[i]) / (1 - am);
        w->vdot[i] = vdot[i];
      }
      for (int i = 0; i < SR_N; i++) d->y[i] = y[i];
      return 0;
    }
    last = size;
  }
  return 1;
}

SR_EXPORT long sarrus_dae_alpha(sr_dae *d) {
  sr_dae_memory *w = (sr_dae_memory *)d->memory;
  if (!d->started) {
    for (int i = 0; i < SR_NV; i++) w->vdot[i] = w->a_old[i] = d->yp[SR_NQ + i];
    d->started = 1;
    sr_dae_row(d);
  }
  for (long n = 0; n < d->chunk && d->row_count < d->row_room; n++) {
    const real left = d->t_end - d->t;
    if (!(left > 0)) return SR_DAE_DONE;
    if (d->steps >= d->max_steps) return SR_DAE_TOO_MANY;
    const int final = d->fixed * (1 + 1e-9) >= left;
    const int code = sr_dae_alpha_step(d, w, final ? left : d->fixed);
    if (code) return code == 2 ? SR_DAE_CALL_FAILED : SR_DAE_NO_CONVERGENCE;
    d->t = final ? d->t_end : d->t + d->fixed;
    d->steps++;
    sr_dae_row(d);
  }
  return d->t >= d->t_end ? SR_DAE_DONE : SR_DAE_MORE;
}
#endif

#endif
