/* The coordinate-splitting form (sheet 10): Pc (q' - v) = 0, Pc (M v' + h - f) = 0, A v = a, Phi = 0, where Pc A' = 0.

   Made from the GGL form with its multipliers put to zero, whose first two rows of blocks are R1 = q' - v and
   R2 = M v' + h - f. Which coordinates depend on the others is decided with each matrix of derivatives and kept until the
   next, so that F stays smooth in between. On the motion R = A' lambda with (A Yp)' lambda = Yp' R, hence the derivative of
   Pc R is Pc d(R - A' lambda) at fixed lambda: no derivative of Pc is needed. */
#ifndef SARRUS_SPLIT_H
#define SARRUS_SPLIT_H

enum { SR_WHOLE = 2 * SR_NV + 2 * SR_K, SR_WIDE = SR_NV + SR_K };

/* G = B^-1 [A, 1], B = A Yp, on the rows that are on; of[j]: the row of G that gives coordinate j, or -1 if it is free */
SR_FN void sr_split_basis(const real *A, const real *on, long *dependent, int choose, real *G, int *of) {
  int used[SR_DIM(SR_K)], r = 0;
  for (int i = 0; i < SR_K; i++) {
    used[i] = !(on[i] > 0);
    r += on[i] > 0;
    for (int j = 0; j < SR_WIDE; j++) G[i * SR_WIDE + j] = j < SR_NV ? A[i * SR_NV + j] : j - SR_NV == i;
  }
  for (int j = 0; j < SR_NV; j++) {
    of[j] = -1;
    if (choose) dependent[j] = 1;
  }
  for (int step = 0; step < r; step++) {
    int row = -1, col = 0;
    real most = 0;
    for (int i = 0; i < SR_K; i++)
      for (int j = 0; j < SR_NV; j++)
        if (!used[i] && of[j] < 0 && dependent[j] && fabs(G[i * SR_WIDE + j]) > most)
          most = fabs(G[i * SR_WIDE + j]), row = i, col = j;
    if (row < 0) break;
    used[row] = 1, of[col] = row;
    const real pivot = G[row * SR_WIDE + col];
    for (int j = 0; j < SR_WIDE; j++) G[row * SR_WIDE + j] /= pivot;
    for (int i = 0; i < SR_K; i++) {
      const real c = G[i * SR_WIDE + col];
      if (i != row && c != 0)
        for (int j = 0; j < SR_WIDE; j++) G[i * SR_WIDE + j] -= c * G[row * SR_WIDE + j];
    }
  }
  if (choose)
    for (int j = 0; j < SR_NV; j++) dependent[j] = of[j] >= 0;
}

/* rows of F from a column of the whole: Pc R1, Pc R2, then slip and Phi of the rows that are on */
SR_FN void sr_split_column(const real *whole, const real *on, const real *G, const int *of, real *out) {
  int k = 0;
  for (int part = 0; part < 2; part++) {
    const real *R = whole + part * SR_NV;
    for (int j = 0; j < SR_NV; j++) {
      if (of[j] >= 0) continue;
      out[k] = R[j];
      for (int d = 0; d < SR_NV; d++)
        if (of[d] >= 0) out[k] -= G[of[d] * SR_WIDE + j] * R[d];
      k++;
    }
  }
  for (int part = 0; part < 2; part++)
    for (int i = 0; i < SR_K; i++)
      if (on[i] > 0) out[k++] = whole[2 * SR_NV + part * SR_K + i];
}

SR_FN void sr_split_equations(long *dependent, const real *t, const real *y, const real *yp, const real *u, const real *p,
                              const real *on, const real *scale, real *out) {
  real A[SR_DIM(SR_K * SR_NV)], G[SR_DIM(SR_K * SR_WIDE)], x[SR_WHOLE], xp[SR_WHOLE], F[SR_WHOLE];
  int of[SR_DIM(SR_NV)];
  for (int i = 0; i < SR_WHOLE; i++) x[i] = i < SR_N ? y[i] : 0, xp[i] = i < SR_N ? yp[i] : 0;
  sr_split_rows(t, y, p, on, scale, A);
  sr_split_basis(A, on, dependent, dependent[SR_NV] == 0, G, of);
  dependent[SR_NV] = 1;
  sr_whole_equations(t, x, xp, u, p, on, scale, F);
  sr_split_column(F, on, G, of, out);
}

SR_FN void sr_split_derivatives(long *dependent, const real *t, const real *y, const real *yp, const real *c, const real *u,
                                const real *p, const real *on, const real *scale, real *out) {
  real A[SR_DIM(SR_K * SR_NV)], G[SR_DIM(SR_K * SR_WIDE)], x[SR_WHOLE], xp[SR_WHOLE], F[SR_WHOLE];
  real J[SR_WHOLE * SR_WHOLE];
  int of[SR_DIM(SR_NV)];
  for (int i = 0; i < SR_WHOLE; i++) x[i] = i < SR_N ? y[i] : 0, xp[i] = i < SR_N ? yp[i] : 0;
  sr_split_rows(t, y, p, on, scale, A);
  sr_split_basis(A, on, dependent, 1, G, of);
  dependent[SR_NV] = 1;
  sr_whole_equations(t, x, xp, u, p, on, scale, F);
  for (int i = 0; i < SR_K; i++) /* lambda of R2 (first), mu of R1 */
    for (int part = 0; part < 2; part++) {
      real s = 0;
      for (int d = 0; d < SR_NV; d++)
        if (of[d] >= 0) s += F[(1 - part) * SR_NV + d] * G[of[d] * SR_WIDE + SR_NV + i];
      x[SR_N + part * SR_K + i] = on[i] > 0 ? s : 0;
    }
  sr_whole_derivatives(t, x, xp, c, u, p, on, scale, J);
  for (int j = 0; j < SR_N; j++) sr_split_column(J + j * SR_WHOLE, on, G, of, out + j * SR_N);
}

#endif
