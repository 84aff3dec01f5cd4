/* Wanted multipliers as a level for the inputs. */
#ifndef SARRUS_CONTROL_FORCE_H
#define SARRUS_CONTROL_FORCE_H

/* Level of the force: lambda~ = X (c + h1 - B1 u) in the wanted rows, X the pseudo-inverse of R, is to be `goal`. */
SR_FN void sr_push(sr_stack *u, const sr_split *x, int at_b, int at_h, const int *wanted, int rows, const real *goal) {
  real R[SR_DIM(SR_K * SR_K)], Q[SR_DIM(SR_K * SR_K)], T[SR_DIM(SR_K * SR_K)];
  real K[SR_DIM(SR_BIG * SR_SLIM)], b[SR_DIM(SR_BIG)], load[SR_DIM(SR_BIG)];
  const int r = x->r;
  if (rows == 0 || r == 0) return;
  /* R' = Q T, in the order of the pivots: X = Q T^-T */
  for (int k = 0; k < r; k++)
    for (int j = 0; j < SR_K; j++) R[k * SR_K + j] = sr_entry(x, k, j);
  sr_orthonormal(R, SR_K, r, 0, Q, T, SR_K, 0);
  for (int col = 0; col <= SR_NU; col++) { /* T^-T of the columns of B1, then of c + h1 */
    for (int i = 0; i < r; i++) {
      load[i] = col < SR_NU ? SR_COLUMN(x, at_b + col)[i] : x->c[i] + SR_COLUMN(x, at_h)[i];
      for (int k = 0; k < i; k++) load[i] -= T[i * SR_K + k] * load[k];
      load[i] /= T[i * SR_K + i];
    }
    for (int e = 0; e < rows; e++) {
      real sum = 0;
      for (int j = 0; j < SR_K; j++)
        if (x->order[j] == wanted[e])
          for (int i = 0; i < r; i++) sum += Q[i * SR_K + j] * load[i];
      if (col < SR_NU)
        K[col * rows + e] = sum;
      else
        b[e] = sum - goal[e];
    }
  }
  sr_level(u, K, 1, rows, rows, b);
}

#endif
