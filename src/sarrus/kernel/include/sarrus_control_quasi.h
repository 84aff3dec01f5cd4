/* Control of all coordinates (sheet 5, 6, 9.3, 9.4), with wanted multipliers: Z'B u = Z'(a wanted force), that is B u = R of it
   with the oblique projection R = B (P B)^+.

   set point   Z'B u = Z'PULL,  PULL = G - Kp q~ - damping
   tracking    Z'B u = d/dt s + Gr s - Kd (v_r - s) + Z'(h - C v),  s = Z'M w,  w = v_d - Kp q~,  Gr skew, without a basis
               at q_d: d/dt s + Gr s = Z'(M w. + C w) - Z'(A.'mu - C'w_n),  w_n = M^-1 A'mu the part of w across the manifold
   Columns: B, h; set point: PULL; tracking: MV = M v, MW = M w, AHEAD = M w. + C w + h - C v. */
#ifndef SARRUS_CONTROL_QUASI_H
#define SARRUS_CONTROL_QUASI_H

#include "sarrus_control_force.h"

/* inputs for the free force w2 and, of what is left, for the wanted multipliers */
SR_FN void sr_quasi_inputs(const sr_split *x, const real *force, const real *goal, const real *scale, sr_stack *u) {
  sr_start_stack(u, SR_NU, scale);
  sr_level(u, SR_COLUMN(x, SR_AT_B) + x->r, 1, SR_NV, SR_NV - x->r, force);
  sr_push(u, x, SR_AT_B, SR_AT_H, sr_wanted, SR_NF, goal);
}

#ifdef SR_AT_PULL
SR_FN void sr_control_point(const sr_split *x, const real *goal, const real *scale, sr_stack *u) {
  sr_quasi_inputs(x, SR_COLUMN(x, SR_AT_PULL) + x->r, goal, scale, u);
}
#endif

#ifdef SR_AT_AHEAD
SR_FN void sr_control_tracking(const real *t, const real *q, const real *v, const real *p, const sr_split *x,
                               const real *goal, real kd, const real *inverse, const real *on, const real *scale,
                               sr_stack *u) {
  real mu[SR_DIM(SR_K)], across[SR_DIM(SR_NV)], w[SR_DIM(SR_NV)];
  const int r = x->r;
  for (int j = 0; j < SR_K; j++) mu[j] = 0;
  for (int k = r - 1; k >= 0; k--) { /* R mu~ = held part of M w, in the rows of the pivots */
    real sum = SR_COLUMN(x, SR_AT_MW)[k];
    for (int j = k + 1; j < r; j++) sum -= sr_entry(x, k, j) * mu[x->order[j]];
    mu[x->order[k]] = sum / x->diagonal[k];
  }
  for (int j = 0; j < SR_K; j++) mu[j] *= inverse[j] * on[j];
  sr_control_across(t, q, v, p, mu, across);
  sr_turn_column(x, across);
  for (int i = 0; i < SR_NV - r; i++) {
    const real eps = SR_COLUMN(x, SR_AT_MV)[r + i] - SR_COLUMN(x, SR_AT_MW)[r + i];
    w[i] = SR_COLUMN(x, SR_AT_AHEAD)[r + i] - across[r + i] - kd * eps;
  }
  sr_quasi_inputs(x, w, goal, scale, u);
}
#endif

#endif
