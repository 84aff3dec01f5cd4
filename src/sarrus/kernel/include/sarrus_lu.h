/* Gaussian elimination with row exchanges for small dense matrices, row major. */
#ifndef SARRUS_LU_H
#define SARRUS_LU_H

/* P A = L U in place; 0 if singular */
SR_FN int sr_lu(real *a, int *swap, int n) {
  for (int k = 0; k < n; k++) {
    int best = k;
    for (int i = k + 1; i < n; i++)
      if (fabs(a[i * n + k]) > fabs(a[best * n + k])) best = i;
    swap[k] = best;
    if (!(fabs(a[best * n + k]) > 0)) return 0;
    if (best != k)
      for (int j = 0; j < n; j++) {
        const real x = a[k * n + j];
        a[k * n + j] = a[best * n + j], a[best * n + j] = x;
      }
    for (int i = k + 1; i < n; i++) {
      const real f = a[i * n + k] /= a[k * n + k];
      if (f != 0)
        for (int j = k + 1; j < n; j++) a[i * n + j] -= f * a[k * n + j];
    }
  }
  return 1;
}

SR_FN void sr_lu_solve(const real *a, const int *swap, int n, real *x) {
  for (int k = 0; k < n; k++) { /* rows were exchanged whole, so all exchanges come first */
    const real t = x[k];
    x[k] = x[swap[k]], x[swap[k]] = t;
  }
  for (int i = 0; i < n; i++)
    for (int j = 0; j < i; j++) x[i] -= a[i * n + j] * x[j];
  for (int i = n - 1; i >= 0; i--) {
    for (int j = i + 1; j < n; j++) x[i] -= a[i * n + j] * x[j];
    x[i] /= a[i * n + i];
  }
}

/* sr_lu for complex matrices, real and imaginary parts apart */
SR_FN int sr_complex_lu(real *a, real *b, int *swap, int n) {
  for (int k = 0; k < n; k++) {
    int best = k;
    real most = -1;
    for (int i = k; i < n; i++) {
      const real size = a[i * n + k] * a[i * n + k] + b[i * n + k] * b[i * n + k];
      if (size > most) most = size, best = i;
    }
    swap[k] = best;
    if (!(most > 0)) return 0;
    if (best != k)
      for (int j = 0; j < n; j++) {
        const real x = a[k * n + j], y = b[k * n + j];
        a[k * n + j] = a[best * n + j], a[best * n + j] = x;
        b[k * n + j] = b[best * n + j], b[best * n + j] = y;
      }
    const real pr = a[k * n + k] / most, pi = -b[k * n + k] / most; /* 1 / pivot */
    for (int i = k + 1; i < n; i++) {
      const real fr = a[i * n + k] * pr - b[i * n + k] * pi, fi = a[i * n + k] * pi + b[i * n + k] * pr;
      a[i * n + k] = fr, b[i * n + k] = fi;
      for (int j = k + 1; j < n; j++) {
        a[i * n + j] -= fr * a[k * n + j] - fi * b[k * n + j];
        b[i * n + j] -= fr * b[k * n + j] + fi * a[k * n + j];
      }
    }
  }
  return 1;
}

SR_FN void sr_complex_solve(const real *a, const real *b, const int *swap, int n, real *x, real *y) {
  for (int k = 0; k < n; k++) {
    const real t = x[k], s = y[k];
    x[k] = x[swap[k]], x[swap[k]] = t;
    y[k] = y[swap[k]], y[swap[k]] = s;
  }
  for (int i = 0; i < n; i++)
    for (int j = 0; j < i; j++) {
      x[i] -= a[i * n + j] * x[j] - b[i * n + j] * y[j];
      y[i] -= a[i * n + j] * y[j] + b[i * n + j] * x[j];
    }
  for (int i = n - 1; i >= 0; i--) {
    for (int j = i + 1; j < n; j++) {
      x[i] -= a[i * n + j] * x[j] - b[i * n + j] * y[j];
      y[i] -= a[i * n + j] * y[j] + b[i * n + j] * x[j];
    }
    const real p = a[i * n + i], q = b[i * n + i], size = p * p + q * q, t = x[i];
    x[i] = (t * p + y[i] * q) / size;
    y[i] = (y[i] * p - t * q) / size;
  }
}

#endif
