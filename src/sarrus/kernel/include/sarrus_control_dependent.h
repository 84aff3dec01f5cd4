/* Control in all, dependent coordinates by the oblique projection R = B (P B)^+ (sheet 5, 9.4):
     B u = R (G - Kp e - Kd (v - v_d) - friction),  that is Z'B u = Z'(...)
   Columns: B, PULL = the force in brackets. */
#ifndef SARRUS_CONTROL_DEPENDENT_H
#define SARRUS_CONTROL_DEPENDENT_H

SR_FN void sr_control_dependent(const sr_split *x, const real *scale, sr_stack *u) {
  sr_start_stack(u, SR_NU, scale);
  sr_level(u, SR_COLUMN(x, SR_AT_B) + x->r, 1, SR_NV, SR_NV - x->r, SR_COLUMN(x, SR_AT_PULL) + x->r);
}

#endif
