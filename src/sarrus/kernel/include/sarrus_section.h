/* Motion in reduced quasi-velocities v_r (sheet 6), with moving constraints too.

     M = W W',   w = W' v,   Lambda = A W^-T,   w = V v_r + w_n,   Lambda V = 0,  V'V = 1,   Lambda w_n = a,  V'w_n = 0.
   V is the polar section about the basis U at the beginning of the step, smooth in the configuration:
     V = N S^-1,   N = P U,   S = (U'P U)^1/2,   P the projector on the null space of Lambda.
   With M v' = b + A' lambda follows w' = W^-1 b + Wd'v + Lambda' lambda, and as V' Lambda' = 0
     v_r' = V'(W^-1 b + Wd'v) + Vd'w,   Vd'w = S^-1 (U'Pd w - Sd v_r),   S Sd + Sd S = U'Pd U,
   which is u_r - Gr v_r without Christoffel symbols, and holds where constraints move. The rows chosen are
   Lambda' = Y R with Y'Y = 1; with D = R^-T Lambdad the rate of the projector is
     Pd x = -(Y D P x + P D'Y'x),   and Lambdad x = Ad W^-T x - Lambda F'x,  F = W^-1 Wd.

   Needs from the generated part: SR_NV, SR_NU, SR_K and the functions
     sr_section_terms (t, q, p, on) -> M (dense), A (one row after the other), a,
     sr_section_rates (t, q, v, u, p, on) -> b = B u - h, Md, Ad. */
#ifndef SARRUS_SECTION_H
#define SARRUS_SECTION_H

#include "sarrus_quasi.h"
#include "sarrus_algebra.h"

enum { SR_CHOLESKY, SR_ROOT, SR_INNOVATION }; /* square roots W of M; the last is the first with coordinates reversed */

#define SR_STEEPEST 1e-4 /* least eigenvalue of U'P U: of a right angle it would be zero */

/* matrices made of columns have these one after the other */
typedef struct {
  real factor;                                     /* which W */
  real W[SR_DIM(SR_NV * SR_NV)], root[SR_DIM(SR_NV)]; /* lower triangle; or eigenvectors of M and roots of its eigenvalues */
  real Y[SR_DIM(SR_NV * SR_K)], R[SR_DIM(SR_K * SR_K)];
  real U[SR_DIM(SR_NV * SR_NV)], V[SR_DIM(SR_NV * SR_NV)];
  real E[SR_DIM(SR_NV * SR_K)];                       /* Y'U, columns of length SR_K */
  real T[SR_DIM(SR_NV * SR_NV)], s[SR_DIM(SR_NV)];    /* S = T diag(s) T' */
  real wn[SR_DIM(SR_NV)], en[SR_DIM(SR_K)];           /* w_n and Y'w_n */
  int order[SR_DIM(SR_K)], rank, free;
} sr_section;

SR_EXPORT long sarrus_section_size(void) { return (long)sizeof(sr_section); }

/* --- W --------------------------------------------------------------------------------------------------------------- */

SR_FN void sr_reverse(real *x, int n) {
  for (int i = 0; i < n / 2; i++) {
    const real y = x[i];
    x[i] = x[n - 1 - i], x[n - 1 - i] = y;
  }
}

SR_FN int sr_is_reversed(const sr_section *x) { return (int)x->factor == SR_INNOVATION; }
SR_FN int sr_is_root(const sr_section *x) { return (int)x->factor == SR_ROOT; }

/* y = X y for X = U diag(d) U' with the eigenvectors of M: d = root to the power -1 or 1 */
SR_FN void sr_spectral(const sr_section *x, int power, real *y) {
  enum { n = SR_NV };
  real c[SR_DIM(SR_NV)];
  for (int j = 0; j < n; j++) {
    c[j] = 0;
    for (int i = 0; i < n; i++) c[j] += x->W[i * n + j] * y[i];
    c[j] = power > 0 ? c[j] * x->root[j] : c[j] / x->root[j];
  }
  sr_times(x->W, c, y, n);
}

/* y = W^-1 y, y = W^-T y, y = W' y */
SR_FN void sr_by_root(const sr_section *x, real *y) {
  if (sr_is_root(x)) sr_spectral(x, -1, y);
  else sr_forward(x->W, y, SR_NV);
}

SR_FN void sr_from_root(const sr_section *x, real *y) {
  if (sr_is_root(x)) sr_spectral(x, -1, y);
  else sr_backward(x->W, y, SR_NV);
}

SR_FN void sr_to_root(const sr_section *x, real *y) {
  if (sr_is_root(x)) {
    sr_spectral(x, 1, y);
    return;
  }
  for (int i = 0; i < SR_NV; i++) { /* entries above are not needed any more */
    real s = 0;
    for (int k = i; k < SR_NV; k++) s += x->W[k * SR_NV + i] * y[k];
    y[i] = s;
  }
}

/* the factor of M in place of M; its smallest pivot, not positive if there is none */
SR_FN real sr_root_of(sr_section *x) {
  enum { n = SR_NV };
  if (!sr_is_root(x)) return sr_cholesky(x->W, n);
  real E[SR_DIM(SR_NV * SR_NV)], least = (real)INFINITY;
  for (int i = 0; i < n * n; i++) E[i] = x->W[i];
  sr_jacobi(E, x->W, n);
  for (int i = 0; i < n; i++) {
    if (!(E[i * n + i] >= least)) least = E[i * n + i];
    x->root[i] = SR_MATH(sqrt)(E[i * n + i]);
  }
  return least;
}

/* F = W^-1 Wd from Md in place: tril(L^-1 Md L^-T) with half the diagonal, or from W Wd + Wd W = Md */
SR_FN void sr_turning(const sr_section *x, real *F) {
  enum { n = SR_NV };
  real c[SR_DIM(SR_NV)];
  for (int side = 0; side < 2; side++) { /* rows, then columns */
    for (int i = 0; i < n; i++) {
      for (int k = 0; k < n; k++) c[k] = side ? F[k * n + i] : F[i * n + k];
      if (sr_is_root(x)) {
        real y[SR_DIM(SR_NV)];
        for (int k = 0; k < n; k++) y[k] = c[k];
        for (int j = 0; j < n; j++) {
          c[j] = 0;
          for (int k = 0; k < n; k++) c[j] += x->W[k * n + j] * y[k];
        }
      } else {
        sr_forward(x->W, c, n);
      }
      for (int k = 0; k < n; k++) *(side ? F + k * n + i : F + i * n + k) = c[k];
    }
  }
  if (!sr_is_root(x)) {
    for (int i = 0; i < n; i++) {
      F[i * n + i] /= 2;
      for (int k = i + 1; k < n; k++) F[i * n + k] = 0;
    }
    return;
  }
  for (int i = 0; i < n; i++)
    for (int k = 0; k < n; k++) F[i * n + k] /= x->root[i] * (x->root[i] + x->root[k]);
  for (int side = 0; side < 2; side++) /* back from the eigenvectors */
    for (int i = 0; i < n; i++) {
      for (int k = 0; k < n; k++) c[k] = side ? F[k * n + i] : F[i * n + k];
      for (int j = 0; j < n; j++) *(side ? F + j * n + i : F + i * n + j) = sr_inner(x->W + j * n, c, n);
    }
}

/* y = F' c */
SR_FN void sr_turned(const real *F, const real *c, real *y) {
  for (int j = 0; j < SR_NV; j++) y[j] = 0;
  for (int i = 0; i < SR_NV; i++)
    for (int j = 0; j < SR_NV; j++) y[j] += F[i * SR_NV + j] * c[i];
}

/* --- the basis ----------------------------------------------------------------------------------------------------- */

/* c = R^-T c on the rows chosen */
SR_FN void sr_by_rows(const sr_section *x, real *c) {
  for (int i = 0; i < x->rank; i++) {
    for (int k = 0; k < i; k++) c[i] -= x->R[k * SR_K + i] * c[k];
    c[i] /= x->R[i * SR_K + i];
  }
}

/* any orthonormal basis of the null space becomes the one to cling to */
SR_FN void sr_section_begin(sr_section *x) {
  enum { n = SR_NV };
  real R[SR_DIM(SR_NV * SR_NV)], least, rest;
  int order[SR_DIM(SR_NV)];
  x->free = n - x->rank;
  for (int j = 0; j < n; j++)
    for (int i = 0; i < n; i++) {
      real s = i == j;
      for (int k = 0; k < x->rank; k++) s -= x->Y[k * n + i] * x->Y[k * n + j];
      x->U[j * n + i] = s;
    }
  sr_basis(x->U, n, n, x->free, 0, order, R, &least, &rest);
}

/* V = N S^-1; 0 if the null space has turned too far, and V is not orthonormal but finite */
SR_FN int sr_section_align(sr_section *x) {
  enum { n = SR_NV };
  const int k = x->free;
  int near = 1;
  real G[SR_DIM(SR_NV * SR_NV)], N[SR_DIM(SR_NV * SR_NV)], c[SR_DIM(SR_NV)];
  for (int j = 0; j < k; j++) {
    for (int i = 0; i < n; i++) N[j * n + i] = x->U[j * n + i];
    for (int i = 0; i < x->rank; i++) {
      const real e = x->E[j * SR_K + i] = sr_inner(x->Y + i * n, x->U + j * n, n);
      for (int l = 0; l < n; l++) N[j * n + l] -= e * x->Y[i * n + l];
    }
  }
  for (int i = 0; i < k; i++)
    for (int j = 0; j <= i; j++) G[i * k + j] = G[j * k + i] = sr_inner(N + i * n, N + j * n, n);
  sr_jacobi(G, x->T, k);
  for (int i = 0; i < k; i++) {
    const real square = G[i * k + i];
    if (square <= SR_STEEPEST) near = 0;
    x->s[i] = SR_MATH(sqrt)(square <= SR_STEEPEST ? SR_STEEPEST : square);
  }
  for (int l = 0; l < n; l++) { /* V = N T diag(1/s) T', one row after the other */
    for (int i = 0; i < k; i++) {
      c[i] = 0;
      for (int j = 0; j < k; j++) c[i] += N[j * n + l] * x->T[j * k + i];
      c[i] /= x->s[i];
    }
    for (int j = 0; j < k; j++) x->V[j * n + l] = sr_inner(x->T + j * k, c, k);
  }
  return near;
}

static int sr_section_locate(const real *t, const real *q, const sr_setup *setup, int fresh, void *memory,
                             sr_report *report) {
  enum { n = SR_NV, K = SR_K };
  sr_section *x = (sr_section *)memory;
  const real *scale = setup->rowdata + 2 * K;
  real a[SR_DIM(SR_K)], least, rest;
  sr_section_terms(t, q, setup->p, setup->active, x->W, x->Y, a);
  if (sr_is_reversed(x)) {
    sr_reverse(x->W, n * n);
    for (int i = 0; i < K; i++) sr_reverse(x->Y + i * n, n);
  }
  report->inertia = sr_root_of(x);
  for (int i = 0; i < K; i++) {
    for (int l = 0; l < n; l++) x->Y[i * n + l] *= scale[i];
    sr_by_root(x, x->Y + i * n);
  }
  int most = setup->options.max_rank >= 0 && setup->options.max_rank < K ? (int)setup->options.max_rank : K;
  if (!fresh && n - x->free < most) most = n - x->free;
  x->rank = sr_basis(x->Y, n, K, most, fresh ? setup->options.tolerance : (real)1e-13, x->order, x->R, &least, &rest);
  report->rank = x->rank, report->path = 1, report->rejected = rest;
  report->accepted = x->rank && (fresh || x->rank == n - x->free) ? least : 0;
  for (int i = 0; i < x->rank; i++) x->en[i] = scale[x->order[i]] * a[x->order[i]];
  sr_by_rows(x, x->en);
  for (int l = 0; l < n; l++) x->wn[l] = 0;
  for (int i = 0; i < x->rank; i++)
    for (int l = 0; l < n; l++) x->wn[l] += x->en[i] * x->Y[i * n + l];
  if (fresh) sr_section_begin(x);
  const int near = sr_section_align(x);
  if (!near) report->accepted = 0;
  return near;
}

/* --- between v and v_r, and the rate of v_r ----------------------------------------------------------------------- */

/* v_r = V' W' v */
static void sr_section_reduce(const void *memory, const real *v, real *reduced) {
  const sr_section *x = (const sr_section *)memory;
  real w[SR_DIM(SR_NV)];
  for (int i = 0; i < SR_NV; i++) w[i] = v[i], reduced[i] = 0;
  if (sr_is_reversed(x)) sr_reverse(w, SR_NV);
  sr_to_root(x, w);
  for (int j = 0; j < x->free; j++) reduced[j] = sr_inner(x->V + j * SR_NV, w, SR_NV);
}

/* v = W^-T (V v_r + w_n) */
static void sr_section_spread(const void *memory, const real *reduced, int moving, real *v) {
  const sr_section *x = (const sr_section *)memory;
  for (int i = 0; i < SR_NV; i++) v[i] = moving ? x->wn[i] : 0;
  for (int j = 0; j < x->free; j++)
    for (int i = 0; i < SR_NV; i++) v[i] += reduced[j] * x->V[j * SR_NV + i];
  sr_from_root(x, v);
  if (sr_is_reversed(x)) sr_reverse(v, SR_NV);
}

/* -S^-1 (E'D V + Sd) v_r, what the turning of the section adds to v_r'; d: columns of D V */
SR_FN void sr_section_turn(const sr_section *x, const real *d, const real *reduced, real *rate) {
  const int k = x->free;
  real B[SR_DIM(SR_NV * SR_NV)], C[SR_DIM(SR_NV * SR_NV)], y[SR_DIM(SR_NV)], z[SR_DIM(SR_NV)];
  for (int i = 0; i < k; i++)
    for (int j = 0; j < k; j++) B[i * k + j] = sr_inner(x->E + i * SR_K, d + j * SR_K, x->rank);
  for (int i = 0; i < k; i++) /* C = B T, B = T'C, y = T'v_r */
    for (int j = 0; j < k; j++) {
      C[i * k + j] = 0;
      for (int l = 0; l < k; l++) C[i * k + j] += B[i * k + l] * x->T[l * k + j];
    }
  for (int i = 0; i < k; i++) {
    y[i] = 0;
    for (int l = 0; l < k; l++) y[i] += x->T[l * k + i] * reduced[l];
    for (int j = 0; j < k; j++) {
      B[i * k + j] = 0;
      for (int l = 0; l < k; l++) B[i * k + j] += x->T[l * k + i] * C[l * k + j];
    }
  }
  for (int i = 0; i < k; i++) {
    z[i] = 0;
    for (int j = 0; j < k; j++) {
      const real rate_of_S = -(B[i * k + j] * x->s[j] + x->s[i] * B[j * k + i]) / (x->s[i] + x->s[j]);
      z[i] -= (B[i * k + j] + rate_of_S) * y[j] / x->s[i];
    }
  }
  for (int j = 0; j < k; j++) rate[j] += sr_inner(x->T + j * k, z, k);
}

static void sr_section_rate(const real *t, const real *q, const real *v, const real *u, const sr_setup *setup,
                            const void *memory, real *rate, sr_report *report) {
  enum { n = SR_NV, K = SR_K };
  const sr_section *x = (const sr_section *)memory;
  const real *scale = setup->rowdata + 2 * K;
  real b[SR_DIM(SR_NV)], F[SR_DIM(SR_NV * SR_NV)], Ad[SR_DIM(SR_K * SR_NV)], d[SR_DIM(SR_NV * SR_K)];
  real w[SR_DIM(SR_NV)], pull[SR_DIM(SR_NV)], turned[SR_DIM(SR_NV)], reduced[SR_DIM(SR_NV)], sum = 0;
  sr_section_rates(t, q, v, u, setup->p, setup->active, b, F, Ad);
  for (int i = 0; i < n; i++) w[i] = v[i], rate[i] = 0;
  if (sr_is_reversed(x)) {
    sr_reverse(b, n), sr_reverse(F, n * n), sr_reverse(w, n);
    for (int i = 0; i < K; i++) sr_reverse(Ad + i * n, n);
  }
  sr_turning(x, F);
  sr_to_root(x, w);
  sr_turned(F, w, pull); /* Wd'v */
  sr_by_root(x, b);
  for (int i = 0; i < n; i++) pull[i] += b[i];
  for (int j = 0; j < x->free; j++) {
    const real *V = x->V + j * n;
    real z[SR_DIM(SR_NV)], *D = d + j * K;
    for (int i = 0; i < n; i++) z[i] = V[i];
    sr_from_root(x, z);
    sr_turned(F, V, turned);
    for (int i = 0; i < x->rank; i++) D[i] = scale[x->order[i]] * sr_inner(Ad + x->order[i] * n, z, n);
    sr_by_rows(x, D);
    for (int i = 0; i < x->rank; i++) D[i] -= sr_inner(x->Y + i * n, turned, n);
    reduced[j] = sr_inner(V, w, n);
    rate[j] = sr_inner(V, pull, n) - sr_inner(D, x->en, x->rank);
  }
  sr_section_turn(x, d, reduced, rate);
  for (int j = 0; j < x->free; j++) sum += rate[j];
  if (!(sum - sum == 0)) report->inertia = (real)NAN;
}

SR_EXPORT const sr_quasi sarrus_quasi = {sr_section_locate, sr_section_reduce, sr_section_spread, sr_section_rate};

#endif
