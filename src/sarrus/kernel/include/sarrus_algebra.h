/* Dense linear algebra of small sizes: products, Cholesky, an orthonormal basis by pivoting, symmetric eigenvalues. */
#ifndef SARRUS_ALGEBRA_H
#define SARRUS_ALGEBRA_H

SR_FN real sr_inner(const real *a, const real *b, int n) {
  real s = 0;
  for (int i = 0; i < n; i++) s += a[i] * b[i];
  return s;
}

/* y = S x, y = S' x for a square matrix */
SR_FN void sr_times(const real *S, const real *x, real *y, int n) {
  for (int i = 0; i < n; i++) y[i] = sr_inner(S + i * n, x, n);
}

/* S = L L' in place, the lower half; returns the smallest pivot, not positive (or NaN) if S is not positive definite */
SR_FN real sr_cholesky(real *a, int n) {
  real least = (real)INFINITY;
  for (int j = 0; j < n; j++) {
    const real pivot = a[j * n + j] - sr_inner(a + j * n, a + j * n, j);
    if (!(pivot >= least)) least = pivot;
    const real root = SR_MATH(sqrt)(pivot > 0 ? pivot : (real)1e-300);
    a[j * n + j] = root;
    for (int i = j + 1; i < n; i++) a[i * n + j] = (a[i * n + j] - sr_inner(a + i * n, a + j * n, j)) / root;
  }
  return least;
}

SR_FN void sr_forward(const real *L, real *x, int n) {
  for (int i = 0; i < n; i++) x[i] = (x[i] - sr_inner(L + i * n, x, i)) / L[i * n + i];
}

SR_FN void sr_backward(const real *L, real *x, int n) {
  for (int i = n - 1; i >= 0; i--) {
    for (int k = i + 1; k < n; k++) x[i] -= L[k * n + i] * x[k];
    x[i] /= L[i * n + i];
  }
}

/* Orthonormal basis of the m columns of Y, each n long, largest first: Y P = Q R, Q left in the first r columns, R upper
   triangular in its first r rows (row major, m wide). Stops at `most` columns or when none is longer than tol. */
SR_FN int sr_basis(real *Y, int n, int m, int most, real tol, int *order, real *R, real *least, real *rest) {
  int r = 0;
  *least = (real)INFINITY;
  for (int j = 0; j < m; j++) order[j] = j;
  for (;; r++) {
    int best = -1;
    real largest = 0, sum = 0;
    for (int j = r; j < m; j++) {
      const real s = sr_inner(Y + j * n, Y + j * n, n);
      sum += s;
      if (s > largest) largest = s, best = j;
    }
    *rest = SR_MATH(sqrt)(sum);
    if (best < 0 || r >= n || r >= most || !(largest > tol * tol)) break;
    const int label = order[r];
    order[r] = order[best], order[best] = label;
    for (int i = 0; i < n; i++) {
      const real y = Y[r * n + i];
      Y[r * n + i] = Y[best * n + i], Y[best * n + i] = y;
    }
    for (int i = 0; i < r; i++) {
      const real y = R[i * m + r];
      R[i * m + r] = R[i * m + best], R[i * m + best] = y;
    }
    real *q = Y + r * n;
    for (int i = 0; i < r; i++) { /* once more, against rounding */
      const real c = sr_inner(Y + i * n, q, n);
      R[i * m + r] += c;
      for (int k = 0; k < n; k++) q[k] -= c * Y[i * n + k];
    }
    const real length = SR_MATH(sqrt)(sr_inner(q, q, n));
    if (length < *least) *least = length;
    for (int k = 0; k < n; k++) q[k] /= length;
    for (int j = 0; j < r; j++) R[r * m + j] = 0;
    R[r * m + r] = length;
    for (int j = r + 1; j < m; j++) {
      const real c = R[r * m + j] = sr_inner(q, Y + j * n, n);
      for (int k = 0; k < n; k++) Y[j * n + k] -= c * q[k];
    }
  }
  return r;
}

/* eigenvalues (on the diagonal of a) and eigenvectors (columns of v) of a symmetric matrix by Jacobi's rotations */
SR_FN void sr_jacobi(real *a, real *v, int n) {
  for (int i = 0; i < n * n; i++) v[i] = i % (n + 1) == 0;
  for (int sweep = 0; sweep < 40; sweep++) {
    real off = 0, all = 0;
    for (int i = 0; i < n; i++)
      for (int j = 0; j < n; j++) {
        all += a[i * n + j] * a[i * n + j];
        if (i != j) off += a[i * n + j] * a[i * n + j];
      }
    if (!(off > (real)1e-34 * all)) return;
    for (int p = 0; p < n; p++)
      for (int q = p + 1; q < n; q++) {
        if (a[p * n + q] == 0) continue;
        const real theta = (a[q * n + q] - a[p * n + p]) / (2 * a[p * n + q]);
        const real size = SR_MATH(fabs)(theta) + SR_MATH(sqrt)(theta * theta + 1), t = theta < 0 ? -1 / size : 1 / size;
        const real c = 1 / SR_MATH(sqrt)(t * t + 1), s = t * c;
        for (int k = 0; k < n; k++) {
          const real x = a[k * n + p], y = a[k * n + q], w = v[k * n + p], z = v[k * n + q];
          a[k * n + p] = c * x - s * y, a[k * n + q] = s * x + c * y;
          v[k * n + p] = c * w - s * z, v[k * n + q] = s * w + c * z;
        }
        for (int k = 0; k < n; k++) {
          const real x = a[p * n + k], y = a[q * n + k];
          a[p * n + k] = c * x - s * y, a[q * n + k] = s * x + c * y;
        }
      }
  }
}

#endif
