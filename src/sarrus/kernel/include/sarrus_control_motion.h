/* Projected inverse dynamics (sheet 9.1): a task x that is a chart of the free motion follows its reference,
     J v' + J.v = y,  y = x''d + Kd (x'd - x') + Kp (xd - x),
   by the inputs of smallest weighted norm. Columns: B, J', h; y less J.v. */
#ifndef SARRUS_CONTROL_MOTION_H
#define SARRUS_CONTROL_MOTION_H

/* what makes a row of a task one of size 1 in the mass metric: its units do not matter */
SR_FN real sr_task_unit(const sr_split *x, int column) {
  const real *J = SR_COLUMN(x, column);
  const real square = sr_product(J, J, SR_NV);
  return square > 0 ? 1 / SR_MATH(sqrt)(square) : 1;
}

/* p from the task: J2'p = y - J1'c */
SR_FN void sr_task_motion(sr_stack *s, const sr_split *x, int first, int rows, const real *y) {
  real K[SR_DIM(SR_BIG * SR_SLIM)] = {0}, b[SR_DIM(SR_BIG)];
  for (int i = 0; i < rows; i++) {
    const real *J = SR_COLUMN(x, first + i);
    const real unit = sr_task_unit(x, first + i);
    b[i] = unit * (y[i] - sr_product(J, x->c, x->r));
    for (int k = 0; k < s->n; k++) K[k * rows + i] = unit * J[x->r + k];
  }
  sr_level(s, K, 1, rows, rows, b);
}

SR_FN void sr_control_motion(const sr_split *x, const real *y, const real *scale, sr_stack *u) {
  sr_stack p;
  sr_start_stack(&p, SR_NV - x->r, 0);
  sr_task_motion(&p, x, SR_AT_J, SR_NT, y);
  sr_start_stack(u, SR_NU, scale);
  sr_move(u, x, SR_AT_B, SR_AT_H, p.x);
}

#endif
