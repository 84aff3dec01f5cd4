/* The formulations of dynamics/formulations as right-hand sides, one short function each; numbers refer to the equation
   sheet. Every one takes a point, M v' = b + A' lambda with A v' = g, and gives v'.

   Needs from the generated part: sizes SR_NQ, SR_NV, SR_K, SR_M, the table sr_kept[], the functions
     sr_form_terms (t, q, v, u, f, p, on) -> M (dense), A (dense, one row after the other), b = B u + f - h, gamma,
     sr_form_place (t, q, p, on) -> Phi, a.
   Which formulation, with which options, follows the row data of the setup: SR_FORM_OPTIONS numbers, and then W^-1/2
   if there is a metric (sheet 2.8). */
#ifndef SARRUS_FORM_H
#define SARRUS_FORM_H

#include "sarrus_types.h"
#include "sarrus_lu.h"
#include "sarrus_algebra.h"

enum {
  SR_PROJECTION, SR_SYMMETRIC, SR_SCALED, SR_VIRTUAL_MASS, SR_QUASI_VELOCITY, SR_NULL_SPACE, SR_GENERALISED,
  SR_MULTIPLIER, SR_GAUSS, SR_REGULARISED
};
enum { SR_FORM_KIND, SR_FORM_WEIGHT, SR_FORM_TIME, SR_FORM_SHARE, SR_FORM_METRIC, SR_FORM_OPTIONS };

typedef struct {
  const real *t, *q, *v, *p, *on, *options;
  real M[SR_DIM(SR_NV * SR_NV)], L[SR_DIM(SR_NV * SR_NV)], b[SR_DIM(SR_NV)];
  real A[SR_DIM(SR_K * SR_NV)], g[SR_DIM(SR_K)];          /* rows divided by their references */
  real Y[SR_DIM(SR_NV * SR_K)], R[SR_DIM(SR_K * SR_K)];   /* L^-1 A' P = Y R, Y'Y = 1; columns of Y one after the other */
  real X[SR_DIM(SR_K * SR_K)], T[SR_DIM(SR_K * SR_K)];    /* R' P = X T, X'X = 1 */
  int order[SR_DIM(SR_K)], turn[SR_DIM(SR_K)], rank;
  const real *scale;
} sr_point;

/* --- a point ---------------------------------------------------------------------------------------------------- */

/* M^-1 x in place */
SR_FN void sr_by_mass(const sr_point *x, real *y) {
  sr_forward(x->L, y, SR_NV);
  sr_backward(x->L, y, SR_NV);
}

/* s of Y' w = s, what the rows ask of w = L' v': the best fit where they contradict each other */
SR_FN void sr_wanted(const sr_point *x, real *s) {
  real c[SR_DIM(SR_K)];
  for (int i = 0; i < x->rank; i++) {
    c[i] = 0;
    for (int k = 0; k < SR_K; k++) c[i] += x->X[i * SR_K + k] * x->g[x->order[k]];
  }
  for (int i = x->rank - 1; i >= 0; i--) {
    for (int k = i + 1; k < x->rank; k++) c[i] -= x->T[i * x->rank + k] * c[k];
    c[i] /= x->T[i * x->rank + i];
  }
  for (int i = 0; i < x->rank; i++) s[x->turn[i]] = c[i];
}

/* multipliers of least norm for a constraint force L y */
SR_FN void sr_multipliers(const sr_point *x, const real *y, real *lam) {
  real c[SR_DIM(SR_K)];
  for (int i = 0; i < SR_M; i++) lam[i] = 0;
  for (int i = 0; i < x->rank; i++) {
    c[i] = sr_inner(x->Y + x->turn[i] * SR_NV, y, SR_NV);
    for (int k = 0; k < i; k++) c[i] -= x->T[k * x->rank + i] * c[k];
    c[i] /= x->T[i * x->rank + i];
  }
  for (int k = 0; k < SR_K; k++) {
    real mu = 0;
    for (int i = 0; i < x->rank; i++) mu += x->X[i * SR_K + k] * c[i];
    lam[sr_kept[x->order[k]]] = x->scale[x->order[k]] * mu;
  }
}

/* the same equations in the coordinates W^1/2 v */
SR_FN void sr_measure(sr_point *x) {
  enum { n = SR_NV };
  const real *root = x->options + SR_FORM_OPTIONS;
  real work[SR_DIM(SR_NV * SR_NV)], line[SR_DIM(SR_NV)];
  for (int i = 0; i < n; i++) sr_times(root, x->M + i * n, work + i * n, n);
  for (int i = 0; i < n; i++) {
    for (int k = 0; k < n; k++) line[k] = work[k * n + i];
    sr_times(root, line, x->M + i * n, n);
  }
  for (int i = 0; i < SR_K; i++) {
    sr_times(root, x->A + i * n, line, n);
    for (int k = 0; k < n; k++) x->A[i * n + k] = line[k];
  }
  sr_times(root, x->b, line, n);
  for (int k = 0; k < n; k++) x->b[k] = line[k];
}

SR_FN void sr_make_point(const real *t, const real *q, const real *v, const real *u, const real *f, const sr_setup *s,
                         sr_point *x, sr_report *report) {
  enum { n = SR_NV, K = SR_K };
  real gamma[SR_DIM(SR_K)], least, rest;
  x->t = t, x->q = q, x->v = v, x->p = s->p, x->on = s->active, x->scale = s->rowdata + 2 * K;
  x->options = s->rowdata + 3 * K;
  sr_form_terms(t, q, v, u, f, s->p, s->active, x->M, x->A, x->b, gamma);
  if (x->options[SR_FORM_METRIC] != 0) sr_measure(x);
  for (int i = 0; i < n * n; i++) x->L[i] = x->M[i];
  report->inertia = sr_cholesky(x->L, n);
  for (int i = 0; i < K; i++) {
    x->g[i] = gamma[i] * x->scale[i];
    for (int k = 0; k < n; k++) x->Y[i * n + k] = x->A[i * n + k] *= x->scale[i];
    sr_forward(x->L, x->Y + i * n, n);
  }
  const int most = s->options.max_rank >= 0 && s->options.max_rank < K ? (int)s->options.max_rank : K;
  x->rank = sr_basis(x->Y, n, K, most, s->options.tolerance, x->order, x->R, &least, &rest);
  report->rank = x->rank, report->path = 1, report->rejected = rest, report->accepted = x->rank ? least : 0;
  for (int i = 0; i < x->rank; i++)
    for (int k = 0; k < K; k++) x->X[i * K + k] = x->R[i * K + k];
  sr_basis(x->X, K, x->rank, x->rank, 0, x->turn, x->T, &least, &rest);
}

/* --- first and fourth paper: projectors -------------------------------------------------------------------------- */

/* V, an orthonormal basis of the range of A', and the normal acceleration an = Q v' (2.1, 2.3) */
SR_FN void sr_normal(const sr_point *x, real *V, real *an) {
  enum { n = SR_NV };
  real s[SR_DIM(SR_K)], T[SR_DIM(SR_K * SR_K)], c[SR_DIM(SR_K)], least, rest;
  int order[SR_DIM(SR_K)];
  const int r = x->rank;
  for (int j = 0; j < r; j++)
    for (int i = 0; i < n; i++) V[j * n + i] = sr_inner(x->L + i * n, x->Y + j * n, i + 1);
  sr_basis(V, n, r, r, 0, order, T, &least, &rest);
  sr_wanted(x, s);
  for (int i = 0; i < n; i++) an[i] = 0;
  for (int j = 0; j < r; j++) {
    c[j] = s[order[j]];
    for (int k = 0; k < j; k++) c[j] -= T[k * r + j] * c[k];
    c[j] /= T[j * r + j];
    for (int i = 0; i < n; i++) an[i] += c[j] * V[j * n + i];
  }
}

/* y = P y */
SR_FN void sr_tangent(const real *V, int r, real *y) {
  for (int j = 0; j < r; j++) {
    const real c = sr_inner(V + j * SR_NV, y, SR_NV);
    for (int i = 0; i < SR_NV; i++) y[i] -= c * V[j * SR_NV + i];
  }
}

/* PM, and the mean of the nonzero eigenvalues of PMP, which is within the interval of best condition (3) */
SR_FN real sr_projected_mass(const sr_point *x, const real *V, real *PM) {
  enum { n = SR_NV };
  real trace = 0, column[SR_DIM(SR_NV)];
  for (int j = 0; j < n; j++) {
    for (int i = 0; i < n; i++) column[i] = x->M[j * n + i];
    sr_tangent(V, x->rank, column);
    for (int i = 0; i < n; i++) PM[i * n + j] = column[i];
    trace += column[j];
  }
  return x->rank < n ? trace / (n - x->rank) : x->M[0];
}

/* Mc v' = P b + M an, Mc = M + PM - MP   (2.4 (2)) */
SR_FN int sr_form_projection(const sr_point *x, real *vdot) {
  enum { n = SR_NV };
  real V[SR_DIM(SR_NV * SR_K)], an[SR_DIM(SR_NV)], PM[SR_DIM(SR_NV * SR_NV)], Mc[SR_DIM(SR_NV * SR_NV)];
  int swap[SR_DIM(SR_NV)];
  sr_normal(x, V, an);
  sr_projected_mass(x, V, PM);
  for (int i = 0; i < n; i++)
    for (int j = 0; j < n; j++) Mc[i * n + j] = x->M[i * n + j] + PM[i * n + j] - PM[j * n + i];
  sr_times(x->M, an, vdot, n);
  real b[SR_DIM(SR_NV)];
  for (int i = 0; i < n; i++) b[i] = x->b[i];
  sr_tangent(V, x->rank, b);
  for (int i = 0; i < n; i++) vdot[i] += b[i];
  if (!sr_lu(Mc, swap, n)) return 0;
  sr_lu_solve(Mc, swap, n, vdot);
  return 1;
}

/* S = PMP + mu Q; rows of PM are projected once more */
SR_FN void sr_both_sides(const real *V, int r, const real *PM, real mu, real *S) {
  enum { n = SR_NV };
  for (int i = 0; i < n; i++) {
    for (int j = 0; j < n; j++) S[i * n + j] = PM[i * n + j];
    sr_tangent(V, r, S + i * n);
  }
  for (int k = 0; k < r; k++)
    for (int i = 0; i < n; i++)
      for (int j = 0; j < n; j++) S[i * n + j] += mu * V[k * n + i] * V[k * n + j];
}

/* Mp v' = P b + (Q - P) M an, Mp = PMP + QMQ   (2.4 (3)); QMQ = M - PM - MP + PMP */
SR_FN int sr_form_symmetric(const sr_point *x, real *vdot) {
  enum { n = SR_NV };
  real V[SR_DIM(SR_NV * SR_K)], an[SR_DIM(SR_NV)], PM[SR_DIM(SR_NV * SR_NV)], Mp[SR_DIM(SR_NV * SR_NV)];
  real pull[SR_DIM(SR_NV)], both[SR_DIM(SR_NV)];
  sr_normal(x, V, an);
  sr_projected_mass(x, V, PM);
  sr_both_sides(V, x->rank, PM, 0, Mp);
  for (int i = 0; i < n; i++)
    for (int j = 0; j < n; j++) Mp[i * n + j] = 2 * Mp[i * n + j] + x->M[i * n + j] - PM[i * n + j] - PM[j * n + i];
  sr_times(x->M, an, pull, n);
  for (int i = 0; i < n; i++) both[i] = x->b[i] - 2 * pull[i];
  sr_tangent(V, x->rank, both);
  for (int i = 0; i < n; i++) vdot[i] = both[i] + pull[i]; /* P b + (1 - 2P) M an */
  if (!(sr_cholesky(Mp, n) > 0)) return 0;
  sr_forward(Mp, vdot, n);
  sr_backward(Mp, vdot, n);
  return 1;
}

/* Mpp v' = P b + gamma an, Mpp = PM + gamma Q   (2.4 (4)); weight = 0: the mean inertia of the free directions */
SR_FN int sr_form_scaled(const sr_point *x, real weight, real *vdot) {
  enum { n = SR_NV };
  real V[SR_DIM(SR_NV * SR_K)], an[SR_DIM(SR_NV)], PM[SR_DIM(SR_NV * SR_NV)];
  int swap[SR_DIM(SR_NV)];
  sr_normal(x, V, an);
  const real mean = sr_projected_mass(x, V, PM), gamma = weight != 0 ? weight : mean;
  for (int k = 0; k < x->rank; k++)
    for (int i = 0; i < n; i++)
      for (int j = 0; j < n; j++) PM[i * n + j] += gamma * V[k * n + i] * V[k * n + j];
  for (int i = 0; i < n; i++) vdot[i] = x->b[i];
  sr_tangent(V, x->rank, vdot);
  for (int i = 0; i < n; i++) vdot[i] += gamma * an[i];
  if (!sr_lu(PM, swap, n)) return 0;
  sr_lu_solve(PM, swap, n, vdot);
  return 1;
}

/* Mb v' = P (b - M an) + mu an, Mb = PMP + mu Q   (2.4 (5)); mass = 0: the mean inertia of the free directions */
SR_FN int sr_form_virtual_mass(const sr_point *x, real mass, real *vdot) {
  enum { n = SR_NV };
  real V[SR_DIM(SR_NV * SR_K)], an[SR_DIM(SR_NV)], PM[SR_DIM(SR_NV * SR_NV)], Mb[SR_DIM(SR_NV * SR_NV)];
  sr_normal(x, V, an);
  const real mean = sr_projected_mass(x, V, PM), mu = mass != 0 ? mass : mean;
  sr_both_sides(V, x->rank, PM, mu, Mb);
  sr_times(x->M, an, vdot, n);
  for (int i = 0; i < n; i++) vdot[i] = x->b[i] - vdot[i];
  sr_tangent(V, x->rank, vdot);
  for (int i = 0; i < n; i++) vdot[i] += mu * an[i];
  if (!(sr_cholesky(Mb, n) > 0)) return 0;
  sr_forward(Mb, vdot, n);
  sr_backward(Mb, vdot, n);
  return 1;
}

/* --- second and third paper: the free directions alone ----------------------------------------------------------- */

/* v' = Z Z'(b - M an) + an, Z Z' = L^-T (1 - Y Y') L^-1   (2.4 (9), 6) */
SR_FN int sr_form_quasi_velocity(const sr_point *x, real *vdot) {
  enum { n = SR_NV };
  real V[SR_DIM(SR_NV * SR_K)], an[SR_DIM(SR_NV)];
  sr_normal(x, V, an);
  sr_times(x->M, an, vdot, n);
  for (int i = 0; i < n; i++) vdot[i] = x->b[i] - vdot[i];
  sr_forward(x->L, vdot, n);
  sr_tangent(x->Y, x->rank, vdot);
  sr_backward(x->L, vdot, n);
  for (int i = 0; i < n; i++) vdot[i] += an[i];
  return 1;
}

/* C'M C p' = C'(b - M ap), v' = C p' + ap, C = Xp - Yp (A Yp)^-1 A Xp   (2.4 (8), 7); Gauss-Jordan with full pivoting
   of the rows chosen says which coordinates depend on the others, and how */
SR_FN int sr_form_null_space(const sr_point *x, real *vdot) {
  enum { n = SR_NV };
  real G[SR_DIM(SR_K * (SR_NV + 1))], C[SR_DIM(SR_NV * SR_NV)], S[SR_DIM(SR_NV * SR_NV)], Mc[SR_DIM(SR_NV)];
  real ap[SR_DIM(SR_NV)], rest[SR_DIM(SR_NV)], p[SR_DIM(SR_NV)];
  int of[SR_DIM(SR_NV)], used[SR_DIM(SR_K)]; /* of: row that gives this coordinate, or -1 if it is free */
  const int r = x->rank, w = n + 1, k = n - r;
  for (int i = 0; i < r; i++) {
    used[i] = 0;
    for (int j = 0; j < n; j++) G[i * w + j] = x->A[x->order[i] * n + j];
    G[i * w + n] = x->g[x->order[i]];
  }
  for (int j = 0; j < n; j++) of[j] = -1, ap[j] = 0;
  for (int step = 0; step < r; step++) {
    int row = -1, col = 0;
    real most = 0;
    for (int i = 0; i < r; i++)
      for (int j = 0; j < n; j++)
        if (!used[i] && of[j] < 0 && SR_MATH(fabs)(G[i * w + j]) > most) most = SR_MATH(fabs)(G[i * w + j]), row = i, col = j;
    if (row < 0) return 0;
    used[row] = 1, of[col] = row;
    const real pivot = G[row * w + col];
    for (int j = 0; j < w; j++) G[row * w + j] /= pivot;
    for (int i = 0; i < r; i++) {
      const real c = G[i * w + col];
      if (i != row)
        for (int j = 0; j < w; j++) G[i * w + j] -= c * G[row * w + j];
    }
  }
  for (int j = 0; j < n; j++)
    if (of[j] >= 0) ap[j] = G[of[j] * w + n];
  for (int j = 0, c = 0; j < n; j++) /* columns of C one after the other */
    if (of[j] < 0) {
      for (int i = 0; i < n; i++) C[c * n + i] = of[i] >= 0 ? -G[of[i] * w + j] : i == j;
      c++;
    }
  sr_times(x->M, ap, rest, n);
  for (int i = 0; i < n; i++) rest[i] = x->b[i] - rest[i];
  for (int a = 0; a < k; a++) {
    sr_times(x->M, C + a * n, Mc, n);
    for (int b = 0; b < k; b++) S[a * k + b] = sr_inner(C + b * n, Mc, n);
    p[a] = sr_inner(C + a * n, rest, n);
  }
  if (k > 0 && !(sr_cholesky(S, k) > 0)) return 0;
  sr_forward(S, p, k);
  sr_backward(S, p, k);
  for (int i = 0; i < n; i++) {
    vdot[i] = ap[i];
    for (int a = 0; a < k; a++) vdot[i] += C[a * n + i] * p[a];
  }
  return 1;
}

/* (A M^-1 A') mu = rhs on the rows chosen; W is its Cholesky factor, ready for more; 0 if singular */
SR_FN int sr_row_inertia(const sr_point *x, real *W) {
  enum { n = SR_NV };
  const int r = x->rank;
  real y[SR_DIM(SR_NV)];
  for (int i = 0; i < r; i++) {
    for (int k = 0; k < n; k++) y[k] = x->A[x->order[i] * n + k];
    sr_by_mass(x, y);
    for (int j = 0; j < r; j++) W[i * r + j] = sr_inner(x->A + x->order[j] * n, y, n);
  }
  return r == 0 || sr_cholesky(W, r) > 0;
}

/* v' = Theta M^-1 b + Phibar g, Phibar = M^-1 A'(A M^-1 A')^-1, Theta = 1 - Phibar A   (2.4 (7)) */
SR_FN int sr_form_generalised(const sr_point *x, real *vdot) {
  enum { n = SR_NV };
  const int r = x->rank;
  real W[SR_DIM(SR_K * SR_K)], c[SR_DIM(SR_K)], y[SR_DIM(SR_NV)];
  if (!sr_row_inertia(x, W)) return 0;
  for (int k = 0; k < n; k++) vdot[k] = x->b[k], y[k] = 0;
  sr_by_mass(x, vdot);
  for (int i = 0; i < r; i++) c[i] = x->g[x->order[i]] - sr_inner(x->A + x->order[i] * n, vdot, n);
  sr_forward(W, c, r);
  sr_backward(W, c, r);
  for (int i = 0; i < r; i++)
    for (int k = 0; k < n; k++) y[k] += c[i] * x->A[x->order[i] * n + k];
  sr_by_mass(x, y);
  for (int k = 0; k < n; k++) vdot[k] += y[k];
  return 1;
}

/* --- third and fifth paper: multipliers first -------------------------------------------------------------------- */

/* M v' = b + A' lambda, lambda = -(A M^-1 A')^-1 (A M^-1 b - g) on the rows chosen   (2.4 (10), 10) */
SR_FN int sr_form_multiplier(const sr_point *x, real *vdot) {
  enum { n = SR_NV };
  const int r = x->rank;
  real W[SR_DIM(SR_K * SR_K)], lam[SR_DIM(SR_K)], free[SR_DIM(SR_NV)];
  if (!sr_row_inertia(x, W)) return 0;
  for (int k = 0; k < n; k++) vdot[k] = free[k] = x->b[k];
  sr_by_mass(x, free);
  for (int i = 0; i < r; i++) lam[i] = x->g[x->order[i]] - sr_inner(x->A + x->order[i] * n, free, n);
  sr_forward(W, lam, r);
  sr_backward(W, lam, r);
  for (int i = 0; i < r; i++)
    for (int k = 0; k < n; k++) vdot[k] += lam[i] * x->A[x->order[i] * n + k];
  sr_by_mass(x, vdot);
  return 1;
}

/* least (v' - a)'M(v' - a), a = M^-1 b, with A v' = g: v' = a + M^-1/2 (A M^-1/2)^+ (g - A a) */
SR_FN int sr_form_gauss(const sr_point *x, real *vdot) {
  enum { n = SR_NV };
  real E[SR_DIM(SR_NV * SR_NV)], U[SR_DIM(SR_NV * SR_NV)], root[SR_DIM(SR_NV * SR_NV)], least, rest;
  real F[SR_DIM(SR_NV * SR_K)], T[SR_DIM(SR_K * SR_K)], y[SR_DIM(SR_NV)], c[SR_DIM(SR_K)];
  int turn[SR_DIM(SR_K)];
  const int r = x->rank;
  for (int i = 0; i < n * n; i++) E[i] = x->M[i];
  sr_jacobi(E, U, n);
  for (int i = 0; i < n; i++)
    for (int j = 0; j < n; j++) {
      root[i * n + j] = 0;
      for (int k = 0; k < n; k++) root[i * n + j] += U[i * n + k] * U[j * n + k] / SR_MATH(sqrt)(E[k * n + k]);
    }
  sr_times(root, x->b, y, n);
  sr_times(root, y, vdot, n);
  for (int i = 0; i < r; i++) sr_times(root, x->A + x->order[i] * n, F + i * n, n);
  sr_basis(F, n, r, r, 0, turn, T, &least, &rest);
  for (int k = 0; k < n; k++) y[k] = 0;
  for (int i = 0; i < r; i++) {
    const int row = x->order[turn[i]];
    c[i] = x->g[row] - sr_inner(x->A + row * n, vdot, n);
    for (int k = 0; k < i; k++) c[i] -= T[k * r + i] * c[k];
    c[i] /= T[i * r + i];
    for (int k = 0; k < n; k++) y[k] += c[i] * F[i * n + k];
  }
  for (int i = 0; i < n; i++) vdot[i] += sr_inner(root + i * n, y, n);
  return 1;
}

/* lambda = -(Wc^2 + eps)^-1 Wc [A M^-1 b - g + 2/h (A v - a) + 2/h^2 Phi], Wc = A M^-1 A', all rows   (10);
   share = 0: eps is (1e-4 times the largest eigenvalue of Wc)^2 */
SR_FN int sr_form_regularised(const sr_point *x, real h, real share, real *vdot) {
  enum { n = SR_NV, K = SR_K };
  real E[SR_DIM(SR_K * SR_K)], U[SR_DIM(SR_K * SR_K)], phi[SR_DIM(SR_K)], a[SR_DIM(SR_K)], w[SR_DIM(SR_K)];
  real free[SR_DIM(SR_NV)], y[SR_DIM(SR_NV)], largest = 0;
  sr_form_place(x->t, x->q, x->p, x->on, phi, a);
  for (int k = 0; k < n; k++) vdot[k] = free[k] = x->b[k];
  sr_by_mass(x, free);
  for (int i = 0; i < K; i++) {
    for (int k = 0; k < n; k++) y[k] = x->A[i * n + k];
    const real slip = sr_inner(y, x->v, n) - x->scale[i] * a[i];
    w[i] = sr_inner(y, free, n) - x->g[i] + 2 / h * slip + 2 / (h * h) * x->scale[i] * phi[i];
    sr_by_mass(x, y);
    for (int j = 0; j < K; j++) E[i * K + j] = sr_inner(x->A + j * n, y, n);
  }
  sr_jacobi(E, U, K);
  for (int i = 0; i < K; i++)
    if (E[i * K + i] > largest) largest = E[i * K + i];
  const real eps = share > 0 ? share : (real)1e-8 * largest * largest;
  for (int j = 0; j < K; j++) {
    real c = 0;
    for (int i = 0; i < K; i++) c += U[i * K + j] * w[i];
    const real s = E[j * K + j];
    c *= largest > 0 ? -s / (s * s + eps) : 0;
    for (int i = 0; i < K; i++)
      for (int k = 0; k < n; k++) vdot[k] += c * U[i * K + j] * x->A[i * n + k];
  }
  sr_by_mass(x, vdot);
  return 1;
}

/* --- what the integrators call (as sarrus_state) ------------------------------------------------------------------ */

SR_FN int sr_formulate(const sr_point *x, real *vdot) {
  const real *o = x->options;
  switch ((int)o[SR_FORM_KIND]) {
    case SR_PROJECTION: return sr_form_projection(x, vdot);
    case SR_SYMMETRIC: return sr_form_symmetric(x, vdot);
    case SR_SCALED: return sr_form_scaled(x, o[SR_FORM_WEIGHT], vdot);
    case SR_VIRTUAL_MASS: return sr_form_virtual_mass(x, o[SR_FORM_WEIGHT], vdot);
    case SR_QUASI_VELOCITY: return sr_form_quasi_velocity(x, vdot);
    case SR_NULL_SPACE: return sr_form_null_space(x, vdot);
    case SR_GENERALISED: return sr_form_generalised(x, vdot);
    case SR_GAUSS: return sr_form_gauss(x, vdot);
    case SR_REGULARISED: return sr_form_regularised(x, o[SR_FORM_TIME], o[SR_FORM_SHARE], vdot);
    default: return sr_form_multiplier(x, vdot);
  }
}

SR_EXPORT void sarrus_form(const real *t, const real *q, const real *v, const real *u, const real *f, const sr_setup *s,
                           real *vdot, real *lam, sr_report *report) {
  sr_point x;
  real y[SR_DIM(SR_NV)], sum = 0;
  sr_make_point(t, q, v, u, f, s, &x, report);
  if (!(report->inertia > 0) || !sr_formulate(&x, vdot)) report->inertia = (real)NAN;
  for (int k = 0; k < SR_NV; k++) sum += vdot[k];
  if (!(sum - sum == 0)) report->inertia = (real)NAN;
  sr_times(x.M, vdot, y, SR_NV);
  for (int k = 0; k < SR_NV; k++) y[k] -= x.b[k];
  sr_forward(x.L, y, SR_NV);
  sr_multipliers(&x, y, lam);
  if (x.options[SR_FORM_METRIC] != 0) {
    sr_times(x.options + SR_FORM_OPTIONS, vdot, y, SR_NV);
    for (int k = 0; k < SR_NV; k++) vdot[k] = y[k];
  }
  /* regular everywhere: there is no singular position to look out for */
  if ((int)x.options[SR_FORM_KIND] == SR_REGULARISED) report->accepted = 1;
}

#endif
