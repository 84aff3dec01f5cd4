/* Constrained acceleration of one state: the generated fast path, and the rank-revealing solve behind it.

   Needs from the generated part: SR_NQ, SR_NV, SR_NU, SR_NP, SR_M (all rows), SR_K (rows that can be nonzero), the
   numbers of stored entries SR_NM (M), SR_NA (A), SR_NL (L), SR_NY (Y), tables sr_kept[], sr_y_row[], sr_y_col[], and
   functions sr_terms, sr_fast, sr_factor, sr_finish (see symbolic/stages.py).

   In the mass metric, with the rows scaled by fixed references d (columns of Ys have norm about 1):
     Ys = D^-1/2 Y diag(d),   Ys P = Q R,   R = [T 0] Z'   (complete orthogonal decomposition)
     x  = (I - Pi) z + (Ys')^+ g,   Ys mu = x - z with least |mu|,   lambda = diag(d) mu.                          */
#ifndef SARRUS_SOLVE_H
#define SARRUS_SOLVE_H

#include "sarrus_types.h"

SR_FN real sr_dot(const real *a, const real *b, int n) {
  real s = 0;
  for (int i = 0; i < n; i++) s += a[i] * b[i];
  return s;
}

/* smallest singular value of the upper triangle R (column major, leading dimension ld) by inverse iteration: never
   below the true one; the start is grown by choosing signs, so a few passes come within about one per cent */
SR_FN real sr_smallest(const real *R, int ld, int r) {
  real x[SR_DIM(SR_K)], inverse[SR_DIM(SR_K)];
  for (int i = 0; i < r; i++) inverse[i] = 1 / R[i * ld + i];
  for (int i = 0; i < r; i++) { /* R' y = +-1 */
    real s = 0;
    for (int k = 0; k < i; k++) s += R[i * ld + k] * x[k];
    x[i] = (s > 0 ? -1 - s : 1 - s) * inverse[i];
  }
  real square = 0;
  for (int pass = 0; pass < 8; pass++) {
    const real before = sr_dot(x, x, r), last = square;
    for (int i = r - 1; i >= 0; i--) { /* R x = y */
      for (int k = i + 1; k < r; k++) x[i] -= R[k * ld + i] * x[k];
      x[i] *= inverse[i];
    }
    const real after = sr_dot(x, x, r), shrink = 1 / SR_MATH(sqrt)(after);
    square = before / after;
    if (SR_MATH(fabs)(square - last) <= (real)0.01 * square) break;
    for (int i = 0; i < r; i++) { /* R' y = x, brought back to length 1 */
      x[i] *= shrink;
      for (int k = 0; k < i; k++) x[i] -= R[i * ld + k] * x[k];
      x[i] *= inverse[i];
    }
  }
  return SR_MATH(sqrt)(square);
}

/* reflect v so that all but its first entry vanish; returns beta of I - beta w w', w left in v, first entry in *head */
SR_FN real sr_reflector(real *v, int n, real *head) {
  real norm2 = sr_dot(v + 1, v + 1, n - 1), x0 = v[0];
  if (norm2 == 0) {
    *head = x0;
    v[0] = 1;
    return 0;
  }
  real length = SR_MATH(sqrt)(x0 * x0 + norm2);
  *head = x0 > 0 ? -length : length;
  v[0] = x0 - *head;
  return 2 / (v[0] * v[0] + norm2);
}

/* lambda and x = D^-1 (z + Y lambda) by pivoted QR and complete orthogonal decomposition */
SR_FN void sr_robust(const real *SR_RESTRICT dinv, const real *SR_RESTRICT y, const real *SR_RESTRICT z,
                     const real *SR_RESTRICT gamma, const real *SR_RESTRICT scale, const sr_options *options,
                     real *SR_RESTRICT work, real *SR_RESTRICT lam, real *SR_RESTRICT x, int *order,
                     sr_report *report) {
  enum { n = SR_NV, m = SR_K };
  const real tol = options->tolerance;
  real *Y = work, *R = work + n * m; /* the two large arrays; the caller's, so that no stack overflows */
  real root[SR_DIM(n)], c[SR_DIM(n)], g[SR_DIM(m)], mu[SR_DIM(m)], beta[SR_DIM(m)];
  real diagonal[SR_DIM(m)], zeta[SR_DIM(m)];
  for (int k = 0; k < n; k++) root[k] = SR_MATH(sqrt)(dinv[k]);
  for (int k = 0; k < n; k++) c[k] = root[k] * z[k];
  for (int i = 0; i < n * m; i++) Y[i] = 0;
  for (int e = 0; e < SR_NY; e++) Y[sr_y_col[e] * n + sr_y_row[e]] = root[sr_y_row[e]] * y[e] * scale[sr_y_col[e]];
  for (int j = 0; j < m; j++) order[j] = j;

  /* Householder QR, largest remaining column first; c becomes Q'z. Below the diagonal: the reflectors. */
  int r = 0, steps = 0, limit = n < m ? n : m;
  if (options->max_rank >= 0 && options->max_rank < limit) limit = (int)options->max_rank;
  real rest = 0;
  for (; r <= limit; r++) {
    int best = -1;
    real largest = 0;
    rest = 0;
    for (int j = r; j < m; j++) {
      real s = r < n ? sr_dot(Y + j * n + r, Y + j * n + r, n - r) : 0;
      rest += s;
      if (s > largest) largest = s, best = j;
    }
    if (r == limit || !(largest > tol * tol)) break;
    steps = r + 1;
    for (int i = 0; i < n; i++) {
      real swap = Y[r * n + i];
      Y[r * n + i] = Y[best * n + i];
      Y[best * n + i] = swap;
    }
    int label = order[r];
    order[r] = order[best];
    order[best] = label;
    real *w = Y + r * n + r;
    beta[r] = sr_reflector(w, n - r, &diagonal[r]);
    for (int j = r + 1; j < m; j++) {
      real *t = Y + j * n + r, f = beta[r] * sr_dot(w, t, n - r);
      for (int i = 0; i < n - r; i++) t[i] -= f * w[i];
    }
    real f = beta[r] * sr_dot(w, c + r, n - r);
    for (int i = 0; i < n - r; i++) c[r + i] -= f * w[i];
  }

  /* R, r x m, as its own array; a pivot may overstate the singular value, so ask again, unless it cannot do so by as
     much as to matter: sigma >= 3 pivot / sqrt(4^r + 6 r - 1) (Faddeev; Lawson & Hanson 1974, 6.31) */
  for (int j = 0; j < m; j++)
    for (int i = 0; i < r; i++) R[j * m + i] = i == j ? diagonal[i] : (i < j ? Y[j * n + i] : 0);
  real smallest = 0, power = 1;
  for (int i = 0; i < r; i++) power *= 4;
  const int sure = r > 0 && r < m && 9 * diagonal[r - 1] * diagonal[r - 1] > tol * tol * (power + 6 * r - 1);
  while (!sure && r > 0 && !((smallest = sr_smallest(R, m, r)) > tol)) {
    for (int j = r - 1; j < m; j++) rest += R[j * m + r - 1] * R[j * m + r - 1];
    r--;
  }

  /* [R11 R12] = [T 0] Z': each row's tail is folded into its diagonal entry, last row first */
  if (r < m)
    for (int i = r - 1; i >= 0; i--) {
      real norm2 = 0, head = R[i * m + i], w0 = 1;
      for (int j = r; j < m; j++) norm2 += R[j * m + i] * R[j * m + i];
      zeta[i] = 0;
      if (norm2 > 0) {
        real length = SR_MATH(sqrt)(head * head + norm2);
        real target = head > 0 ? -length : length;
        w0 = head - target;
        zeta[i] = 2 / (w0 * w0 + norm2);
        for (int k = 0; k < i; k++) { /* rows above */
          real f = w0 * R[i * m + k];
          for (int j = r; j < m; j++) f += R[j * m + i] * R[j * m + k];
          f *= zeta[i];
          R[i * m + k] -= f * w0;
          for (int j = r; j < m; j++) R[j * m + k] -= f * R[j * m + i];
        }
        R[i * m + i] = target;
      }
      diagonal[i] = w0; /* first entry of the reflector; the tail stays in row i of R12 */
    }

  if (r > 0 && r < m) smallest = sr_smallest(R, m, r); /* of T: exactly that of all accepted directions */

  /* T' s = first part of Z'P'g; in Q's axes the new x is [s, rest of Q'z] */
  for (int j = 0; j < m; j++) g[j] = scale[order[j]] * gamma[order[j]];
  if (r < m)
    for (int i = r - 1; i >= 0; i--) {
      real f = diagonal[i] * g[i];
      for (int j = r; j < m; j++) f += R[j * m + i] * g[j];
      f *= zeta[i];
      g[i] -= f * diagonal[i];
      for (int j = r; j < m; j++) g[j] -= f * R[j * m + i];
    }
  for (int i = 0; i < r; i++) {
    for (int k = 0; k < i; k++) g[i] -= R[i * m + k] * g[k];
    g[i] /= R[i * m + i];
  }
  for (int i = 0; i < r; i++) mu[i] = g[i] - c[i], c[i] = g[i];
  for (int i = r - 1; i >= 0; i--) {
    for (int k = i + 1; k < r; k++) mu[i] -= R[k * m + i] * mu[k];
    mu[i] /= R[i * m + i];
  }
  for (int j = r; j < m; j++) mu[j] = 0;
  if (r < m)
    for (int i = 0; i < r; i++) { /* Z, in the opposite order of Z' */
      real f = diagonal[i] * mu[i];
      for (int j = r; j < m; j++) f += R[j * m + i] * mu[j];
      f *= zeta[i];
      mu[i] -= f * diagonal[i];
      for (int j = r; j < m; j++) mu[j] -= f * R[j * m + i];
    }
  for (int j = 0; j < m; j++) lam[order[j]] = scale[order[j]] * mu[j];
  for (int k = steps - 1; k >= 0; k--) { /* back from Q's axes */
    const real *w = Y + k * n + k;
    real f = beta[k] * sr_dot(w, c + k, n - k);
    for (int i = 0; i < n - k; i++) c[k + i] -= f * w[i];
  }
  for (int k = 0; k < n; k++) x[k] = root[k] * c[k];
  report->rank = r;
  report->path = 1;
  report->accepted = smallest;
  report->rejected = SR_MATH(sqrt)(rest);
}

/* numbers of work space that one state needs */
#define SR_WORK (SR_NV * SR_K + SR_K * SR_K)

/* x and mu of [[M, A'], [A, 0]] (x, -mu) = (b, gamma): smallest |mu| where rows depend. Order: rows by strength, filled on
   the rank-revealing path only. */
SR_FN void sr_constrained(const real *mass, const real *jac, const real *b, const real *gamma, const sr_setup *s,
                          real *x, real *mu, int *order, sr_report *report) {
  real pivots[SR_DIM(SR_K)], inertia[SR_DIM(SR_NV)];
  int trusted = s->options.mode == 0;
  if (trusted) {
    sr_fast(mass, jac, b, gamma, s->active, s->rowdata, x, mu, pivots, inertia);
    real smallest = (real)INFINITY, rank = 0;
    for (int i = 0; i < SR_K; i++) {
      real pivot = pivots[i] * s->rowdata[SR_K + i];
      if (!(pivot >= smallest)) smallest = pivot; /* written so that a NaN is caught too */
      rank += s->active[i];
    }
    trusted = smallest >= s->options.fast_pivot;
    report->rank = rank;
    report->path = 0;
    report->accepted = SR_K > 0 ? SR_MATH(sqrt)(smallest > 0 ? smallest : 0) : 0;
    report->rejected = 0;
    report->inertia = (real)INFINITY;
    for (int k = 0; k < SR_NV; k++)
      if (!(inertia[k] >= report->inertia)) report->inertia = inertia[k];
  }
  if (!trusted) {
    real lower[SR_DIM(SR_NL)], dinv[SR_DIM(SR_NV)], y[SR_DIM(SR_NY)], z[SR_DIM(SR_NV)], w[SR_DIM(SR_NV)];
    sr_factor(mass, jac, b, lower, dinv, y, z);
    report->inertia = (real)INFINITY;
    for (int k = 0; k < SR_NV; k++)
      if (!(1 / dinv[k] >= report->inertia)) report->inertia = 1 / dinv[k];
    sr_robust(dinv, y, z, gamma, s->rowdata + 2 * SR_K, &s->options, s->work, mu, w, order, report);
    sr_finish(lower, w, x);
  }
  real sum = 0; /* a NaN anywhere makes the report say that M is not usable */
  for (int k = 0; k < SR_NV; k++) sum += x[k];
  if (sum - sum != 0) report->inertia = (real)NAN;
}

#if SR_RUBBING > 0
/* x = K^-1 x in place by elimination with pivoting; 0 unless det K > 0 (it is 1 without friction) */
SR_FN int sr_friction_solve(real *K, real *x) {
  enum { c = SR_RUBBING };
  int sign = 1;
  for (int j = 0; j < c; j++) {
    int best = j;
    for (int i = j + 1; i < c; i++)
      if (SR_MATH(fabs)(K[i * c + j]) > SR_MATH(fabs)(K[best * c + j])) best = i;
    if (!(SR_MATH(fabs)(K[best * c + j]) > (real)1e-9)) return 0;
    if (best != j) {
      sign = -sign;
      for (int k = 0; k < c; k++) {
        const real swap = K[j * c + k];
        K[j * c + k] = K[best * c + k], K[best * c + k] = swap;
      }
      const real swap = x[j];
      x[j] = x[best], x[best] = swap;
    }
    if (K[j * c + j] < 0) sign = -sign;
    for (int i = j + 1; i < c; i++) {
      const real f = K[i * c + j] / K[j * c + j];
      for (int k = j; k < c; k++) K[i * c + k] -= f * K[j * c + k];
      x[i] -= f * x[j];
    }
  }
  for (int i = c - 1; i >= 0; i--) {
    for (int k = i + 1; k < c; k++) x[i] -= K[i * c + k] * x[k];
    x[i] /= K[i * c + i];
  }
  return sign > 0;
}

/* x and mu of [[M, -(A' + D E)], [A, 0]] (x, mu) = (b, gamma): friction D N that goes with the normal forces N = E mu of the
   same instant. With mu0 of b and the columns Y of what D alone does (gamma = 0), N = (1 - E Y)^-1 E mu0 exactly. No N, or
   one of the wrong sign, belongs to det (1 - E Y) <= 0 (Painleve): inertia is then minus infinity. */
SR_FN void sr_with_friction(const real *t, const real *q, const real *v, const real *mass, const real *jac,
                            const real *b, const real *gamma, const sr_setup *s, real *x, real *mu, int *order,
                            sr_report *report) {
  enum { n = SR_NV, c = SR_RUBBING };
  real drag[SR_DIM(SR_NV * SR_RUBBING)], zero[SR_DIM(SR_K)], more[c][SR_DIM(SR_NV)], push[c][SR_DIM(SR_K)];
  real K[c * c], N[c];
  int other[SR_DIM(SR_K)], closed = 0;
  sr_report unused;
  sr_constrained(mass, jac, b, gamma, s, x, mu, order, report);
  for (int j = 0; j < c; j++) closed += s->active[sr_rubbing_row[j]] != 0;
  if (!closed || !(report->inertia > 0)) return;
  sr_drag(t, q, v, s->p, drag);
  for (int i = 0; i < SR_K; i++) zero[i] = 0;
  for (int j = 0; j < c; j++) {
    N[j] = mu[sr_rubbing_row[j]];
    if (s->active[sr_rubbing_row[j]] != 0)
      sr_constrained(mass, jac, drag + j * n, zero, s, more[j], push[j], other, &unused);
    for (int i = 0; i < c; i++)
      K[i * c + j] = (i == j) - (s->active[sr_rubbing_row[j]] != 0 ? push[j][sr_rubbing_row[i]] : 0);
  }
  if (!sr_friction_solve(K, N)) report->inertia = -(real)INFINITY;
  for (int j = 0; j < c; j++) {
    if (s->active[sr_rubbing_row[j]] == 0) continue;
    for (int k = 0; k < n; k++) x[k] += N[j] * more[j][k];
    for (int i = 0; i < SR_K; i++) mu[i] += N[j] * push[j][i];
  }
}
#endif

/* acceleration and multipliers of one state */
SR_FN void sr_accelerate(const real *t, const real *q, const real *v, const real *u, const real *f, const sr_setup *s,
                         real *vdot, real *lam, sr_report *report) {
  real mass[SR_DIM(SR_NM)], jac[SR_DIM(SR_NA)], b[SR_DIM(SR_NV)], gamma[SR_DIM(SR_K)], mu[SR_DIM(SR_K)];
  int order[SR_DIM(SR_K)];
  sr_terms(t, q, v, u, f, s->p, s->active, mass, jac, b, gamma);
#if SR_RUBBING > 0
  sr_with_friction(t, q, v, mass, jac, b, gamma, s, vdot, mu, order, report);
#else
  sr_constrained(mass, jac, b, gamma, s, vdot, mu, order, report);
#endif
  for (int i = 0; i < SR_M; i++) lam[i] = 0;
  for (int i = 0; i < SR_K; i++) lam[sr_kept[i]] = mu[i];
}

/* Residuals at a place, and the smallest moves in the mass metric that remove them to first order (sheet 2.7):
     phi = Phi(q, t),  rate = A v - a,   A dq = -phi,  A dv = -rate.   dq and dv may be null; a row that is off counts as 0. */
SR_FN void sr_correct(const real *t, const real *q, const real *v, const sr_setup *s, real *phi, real *rate, real *dq,
                      real *dv, sr_report *report) {
  real mass[SR_DIM(SR_NM)], jac[SR_DIM(SR_NA)], a[SR_DIM(SR_K)], zero[SR_DIM(SR_NV)], mu[SR_DIM(SR_K)];
  real wanted[SR_DIM(SR_K)];
  int order[SR_DIM(SR_K)];
  sr_place(t, q, s->p, s->active, mass, jac, phi, a);
  for (int k = 0; k < SR_NV; k++) zero[k] = 0;
  for (int i = 0; i < SR_K; i++) rate[i] = -a[i];
  for (int e = 0; e < SR_NA; e++) rate[sr_a_row[e]] += jac[e] * v[sr_a_col[e]];
  if (dq) {
    for (int i = 0; i < SR_K; i++) wanted[i] = -phi[i];
    sr_constrained(mass, jac, zero, wanted, s, dq, mu, order, report);
  }
  if (dv) {
    for (int i = 0; i < SR_K; i++) wanted[i] = -rate[i];
    sr_constrained(mass, jac, zero, wanted, s, dv, mu, order, report);
  }
}

/* the rows that suffice at a place: flags of a set of independent rows, as well conditioned as the pivoting finds */
SR_FN void sr_select(const real *t, const real *q, const sr_setup *s, real *chosen, sr_report *report) {
  real mass[SR_DIM(SR_NM)], jac[SR_DIM(SR_NA)], phi[SR_DIM(SR_K)], a[SR_DIM(SR_K)], zero[SR_DIM(SR_NV)];
  real x[SR_DIM(SR_NV)], mu[SR_DIM(SR_K)];
  int order[SR_DIM(SR_K)];
  sr_setup robust = *s;
  robust.options.mode = 1;
  sr_place(t, q, s->p, s->active, mass, jac, phi, a);
  for (int k = 0; k < SR_NV; k++) zero[k] = 0;
  for (int i = 0; i < SR_K; i++) chosen[i] = 0;
  sr_constrained(mass, jac, zero, a, &robust, x, mu, order, report);
  for (int i = 0; i < (int)report->rank; i++) chosen[order[i]] = 1;
}

/* [[M, A'], [A, 0]] (x, -mu) = (b, gamma) at one place for several right-hand sides, one after the other; with the velocity v,
   the friction that goes with mu as well (v may be null where there is none) */
SR_FN void sr_linear(const real *t, const real *q, const real *v, const sr_setup *s, long count, const real *b,
                     const real *gamma, real *x, real *mu, sr_report *report) {
  real mass[SR_DIM(SR_NM)], jac[SR_DIM(SR_NA)], phi[SR_DIM(SR_K)], a[SR_DIM(SR_K)];
  int order[SR_DIM(SR_K)];
  sr_place(t, q, s->p, s->active, mass, jac, phi, a);
  for (long i = 0; i < count; i++) {
#if SR_RUBBING > 0
    if (v) {
      sr_with_friction(t, q, v, mass, jac, b + i * SR_NV, gamma + i * SR_K, s, x + i * SR_NV, mu + i * SR_K, order,
                       report);
      continue;
    }
#endif
    sr_constrained(mass, jac, b + i * SR_NV, gamma + i * SR_K, s, x + i * SR_NV, mu + i * SR_K, order, report);
  }
  (void)v;
}

#endif
