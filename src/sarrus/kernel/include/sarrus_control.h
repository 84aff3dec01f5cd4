/* What all controllers share: the machine split into what its constraints hold and what they leave free, and inputs
   by levels of importance.

   With M = L D L', every force is turned into x^ = D^-1/2 L^-1 x, and a velocity w into (M w)^, so that lengths are those
   of the mass metric. There the rows are S = A^' diag(d), and a pivoted QR of them, Q'S = [R; 0], splits everything:
     held:  c = B1 u - h1 + R lambda~,  lambda = diag(d) lambda~     (c from the rows' own accelerations, R'c = gamma~)
     free:  p = B2 u - h2                                            (p = Z'M v', Z = L^-T D^-1/2 Q2; sheet 6)
   with X1 and X2 the first r and the other entries of Q'X^. Singular or dependent rows are decided by the pivots.

   What rounding leaves of a number that is nothing is not taken for a number: else a task that the constraints hold, or
   a motor that moves nothing, would be served by enormous inputs. What is not finite makes the inputs not finite.

   Needs SR_NV, SR_K, SR_NU, SR_COLS (columns besides those of S), SR_BIG (largest of all dimensions), SR_SLIM (the
   smaller side of every level is at most this), SR_NS and the tables sr_s_row[], sr_s_col[] of the entries of S. */
#ifndef SARRUS_CONTROL_H
#define SARRUS_CONTROL_H

#include "sarrus_types.h"

#define SR_LEVEL_RANK ((real)1e-8) /* directions of a level weaker than this part of its strongest do not count */
/* parts of what they are made of, below which numbers are rounding: of a column near dependent rows, and of a product */
#define SR_FAINT ((real)(sizeof(real) > 4 ? 1e-10 : 1e-4))
#define SR_ROUNDING ((real)(sizeof(real) > 4 ? 1e-13 : 1e-6))

typedef struct {
  int r;                                 /* independent rows */
  int order[SR_DIM(SR_K)];               /* the rows in the order of the pivots */
  real beta[SR_DIM(SR_K)], diagonal[SR_DIM(SR_K)], c[SR_DIM(SR_K)];
  real W[SR_DIM(SR_NV * (SR_K + SR_COLS))]; /* R over the reflectors, then Q'X for each further column */
} sr_split;

/* a column after the split: entries 0 ... r-1 are held, the others free */
#define SR_COLUMN(x, k) ((x)->W + SR_NV * (SR_K + (k)))

/* four sums side by side: the processor need not wait for one before it starts the next */
SR_FN real sr_product(const real *SR_RESTRICT a, const real *SR_RESTRICT b, int n) {
  real s0 = 0, s1 = 0, s2 = 0, s3 = 0;
  int i = 0;
  for (; i + 4 <= n; i += 4) {
    s0 += a[i] * b[i];
    s1 += a[i + 1] * b[i + 1];
    s2 += a[i + 2] * b[i + 2];
    s3 += a[i + 3] * b[i + 3];
  }
  for (; i < n; i++) s0 += a[i] * b[i];
  return (s0 + s1) + (s2 + s3);
}

SR_FN void sr_reflect(const real *SR_RESTRICT w, real beta, real *SR_RESTRICT x, int n) {
  const real f = beta * sr_product(w, x, n);
  for (int i = 0; i < n; i++) x[i] -= f * w[i];
}

/* nothing in place of rounding: a column that is held altogether, or not at all */
SR_FN void sr_clean(sr_split *x, int k) {
  real *a = SR_COLUMN(x, k);
  const int r = x->r;
  const real held = sr_product(a, a, r), open = sr_product(a + r, a + r, SR_NV - r);
  const real least = SR_FAINT * SR_FAINT * (held + open);
  if (held <= least)
    for (int i = 0; i < r; i++) a[i] = 0;
  if (open <= least)
    for (int i = r; i < SR_NV; i++) a[i] = 0;
}

/* s: entries of S; gamma: scaled right-hand sides of the rows; the further columns of x->W are in place */
SR_FN void sr_split_rows(const real *s, const real *gamma, real tolerance, sr_split *x) {
  enum { n = SR_NV, m = SR_K };
  real *W = x->W, rest[SR_DIM(SR_K)], first[SR_DIM(SR_K)];
  int r = 0;
  for (int i = 0; i < n * m; i++) W[i] = 0;
  for (int e = 0; e < SR_NS; e++) W[sr_s_col[e] * n + sr_s_row[e]] = s[e];
  for (int j = 0; j < m; j++) {
    x->order[j] = j;
    first[j] = rest[j] = sr_product(W + j * n, W + j * n, n);
  }
  const real lost = sr_lost(first, m) + sr_lost(gamma, m);
  if (lost != 0) /* no row may count as dependent because it is no number */
    for (int i = 0; i < n * SR_COLS; i++) SR_COLUMN(x, 0)[i] = lost;
  for (; r < m && r < n; r++) {
    int best = r;
    for (int j = r; j < m; j++) {
      if (rest[j] < (real)1e-4 * first[j]) /* what was subtracted has eaten the digits: count again */
        first[j] = rest[j] = sr_product(W + j * n + r, W + j * n + r, n - r);
      if (rest[j] > rest[best]) best = j;
    }
    if (!(rest[best] > tolerance * tolerance)) break;
    if (best != r) {
      for (int i = 0; i < n; i++) {
        const real keep = W[r * n + i];
        W[r * n + i] = W[best * n + i];
        W[best * n + i] = keep;
      }
      const int label = x->order[r];
      x->order[r] = x->order[best], x->order[best] = label;
      rest[best] = rest[r], first[best] = first[r];
    }
    real *w = W + r * n + r;
    const real tail = sr_product(w + 1, w + 1, n - r - 1), head = w[0], length = SR_MATH(sqrt)(head * head + tail);
    x->diagonal[r] = head > 0 ? -length : length;
    w[0] = head - x->diagonal[r];
    x->beta[r] = 2 / (w[0] * w[0] + tail);
    for (int j = r + 1; j < m + SR_COLS; j++) {
      sr_reflect(w, x->beta[r], W + j * n + r, n - r);
      if (j < m) rest[j] -= W[j * n + r] * W[j * n + r];
    }
  }
  x->r = r;
  for (int k = 0; k < r; k++) { /* R'c = gamma~ by the rows of the pivots; the others depend on them */
    real sum = gamma[x->order[k]];
    for (int i = 0; i < k; i++) sum -= W[k * n + i] * x->c[i];
    x->c[k] = sum / x->diagonal[k];
  }
  for (int k = 0; k < SR_NU; k++) sr_clean(x, SR_AT_B + k);
#ifdef SR_AT_J
  for (int i = 0; i < SR_NT; i++) sr_clean(x, SR_AT_J + i);
#endif
}

/* Q'x of a column found later */
SR_FN void sr_turn_column(const sr_split *x, real *column) {
  for (int k = 0; k < x->r; k++) sr_reflect(x->W + k * SR_NV + k, x->beta[k], column + k, SR_NV - k);
}

/* entry (i, j) of R, in the order of the pivots */
SR_FN real sr_entry(const sr_split *x, int i, int j) {
  return i == j && i < x->r ? x->diagonal[i] : (i < j ? x->W[j * SR_NV + i] : 0);
}

/* --- unknowns by levels of importance -------------------------------------------------------------------------------*/
typedef struct {
  int n, left;                           /* unknowns, and how many directions are still free */
  const real *scale;                     /* unknown = scale x, |x| is to be small; null: 1 */
  real x[SR_DIM(SR_BIG)], N[SR_DIM(SR_BIG * SR_BIG)]; /* N: projector on what is free */
} sr_stack;

SR_FN void sr_start_stack(sr_stack *s, int n, const real *scale) {
  s->n = s->left = n, s->scale = scale;
  for (int i = 0; i < n; i++) {
    s->x[i] = 0;
    for (int j = 0; j < n; j++) s->N[j * n + i] = i == j;
  }
}

/* Gram-Schmidt, each direction cleaned twice: A (n x m, columns) = Q R, largest column first if there is an order to be
   noted, else as they come; the rank. R(k, j) is R[j stride + k] */
SR_FN int sr_orthonormal(real *A, int n, int m, real tolerance, real *Q, real *R, int stride, int *order) {
  int r = 0;
  for (; r < m && r < n; r++) {
    int best = r;
    real most = -1;
    if (order) {
      for (int j = 0; j < m; j++) {
        const real size = sr_product(A + j * n, A + j * n, n);
        if (size > most) most = size, best = j;
      }
      order[r] = best;
    }
    real *q = Q + r * n;
    for (int i = 0; i < n; i++) q[i] = A[best * n + i];
    for (int k = 0; k < r; k++) {
      const real f = sr_product(Q + k * n, q, n);
      for (int i = 0; i < n; i++) q[i] -= f * Q[k * n + i];
    }
    const real length = SR_MATH(sqrt)(sr_product(q, q, n));
    if (!(length > tolerance)) break;
    for (int i = 0; i < n; i++) q[i] /= length;
    for (int j = 0; j < m; j++) {
      const real f = sr_product(q, A + j * n, n);
      R[j * stride + r] = f;
      for (int i = 0; i < n; i++) A[j * n + i] -= f * q[i];
    }
  }
  return r;
}

/* Meet K x = b as well as the levels before allow, least squares; K(i, j) = K[i di + j dj] */
SR_FN void sr_level(sr_stack *s, const real *K, int di, int dj, int rows, const real *b) {
  enum { size = SR_DIM(SR_BIG * SR_SLIM), stride = SR_DIM(SR_SLIM) };
  real A[size], Q[size], R[size], T[SR_DIM(SR_SLIM * SR_SLIM)];
  real z[SR_DIM(SR_BIG)], rest[SR_DIM(SR_BIG)], strongest = 0, lost = 0;
  int order[SR_DIM(SR_BIG)];
  const int n = s->n;
  if (s->left == 0 || rows == 0) return;
  for (int i = 0; i < rows; i++) rest[i] = b[i];
  for (int j = 0; j < n; j++) {
    real square = 0;
    for (int i = 0; i < rows; i++) {
      const real k = K[i * di + j * dj] * (s->scale ? s->scale[j] : 1);
      Q[j * rows + i] = k;
      rest[i] -= k * s->x[j];
      square += k * k;
    }
    if (square > strongest) strongest = square;
    lost += square - square;
  }
  lost += sr_lost(rest, rows);
  if (lost != 0) { /* what is no number must not be taken for a direction that does not count */
    s->x[0] = lost;
    return;
  }
  for (int j = 0; j < n; j++)
    for (int i = 0; i < rows; i++) {
      real sum = 0;
      if (s->left == n)
        sum = Q[j * rows + i];
      else
        for (int k = 0; k < n; k++) sum += Q[k * rows + i] * s->N[j * n + k];
      A[j * rows + i] = sum;
    }
  const int r = sr_orthonormal(A, rows, n, SR_LEVEL_RANK * SR_MATH(sqrt)(strongest), Q, R, stride, order);
  for (int k = 0; k < r; k++) z[k] = sr_product(Q + k * rows, rest, rows);
  if (r == n) { /* nothing is left to choose: R x = z */
    for (int k = n - 1; k >= 0; k--) {
      for (int j = k + 1; j < n; j++) z[k] -= R[order[j] * stride + k] * z[j];
      z[k] /= R[order[k] * stride + k];
      s->x[order[k]] += z[k];
    }
    s->left = 0;
    return;
  }
  for (int k = 0; k < r; k++)
    for (int j = 0; j < n; j++) A[k * n + j] = R[j * stride + k];
  sr_orthonormal(A, n, r, 0, Q, T, stride, 0); /* R' = Q T, so that x = Q T^-T z is the smallest solution */
  for (int k = 0; k < r; k++) {
    for (int i = 0; i < k; i++) z[k] -= T[k * stride + i] * z[i];
    z[k] /= T[k * stride + k];
    for (int j = 0; j < n; j++) s->x[j] += z[k] * Q[k * n + j];
  }
  s->left -= r;
  if (s->left == 0) return;
  for (int k = 0; k < r; k++)
    for (int j = 0; j < n; j++)
      for (int i = 0; i < n; i++) s->N[j * n + i] -= Q[k * n + i] * Q[k * n + j];
}

SR_FN long sr_inputs(const sr_stack *s, real *u) {
  for (int j = 0; j < s->n; j++) u[j] = (s->scale ? s->scale[j] : 1) * s->x[j];
  return sr_lost(u, s->n) != 0;
}

/* level of the motion: B2 u = p + (free part of a column) */
SR_FN void sr_move(sr_stack *s, const sr_split *x, int at_b, int at_h, const real *p) {
  real b[SR_DIM(SR_NV)] = {0};
  for (int i = 0; i < SR_NV - x->r; i++) b[i] = (p ? p[i] : 0) + SR_COLUMN(x, at_h)[x->r + i];
  sr_level(s, SR_COLUMN(x, at_b) + x->r, 1, SR_NV, SR_NV - x->r, b);
}

#endif
