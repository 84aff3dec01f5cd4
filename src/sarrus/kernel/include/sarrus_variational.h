/* A variational step: the discrete Lagrange-d'Alembert equations of the midpoint rule, of order 2, which keep the energy
   error bounded for as long as one likes (Marsden & West 2001; constraints as in RATTLE).

   With the discrete Lagrangian Ld(q0, delta) = h L(q0 [+] delta/2, delta/h) and half of the other forces at each end:
     left(delta) = dT/dv(q0, v0) + A(q0)' push,   Phi(q0 [+] delta) = 0,   dT/dv(q1, v1) = right(delta) + A(q1)' nu,  A v1 = a.
   left and right are the momenta that Ld gives at both ends; rest, what is missing in the first equation, and right are
   generated (simulation/derivatives.py). */
#ifndef SARRUS_VARIATIONAL_H
#define SARRUS_VARIATIONAL_H

SR_FN int sr_step_variational(sr_motion *m, real h, sr_trial *x) {
  real delta[SR_DIM(SR_NV)], push[SR_DIM(SR_K)], rest[SR_DIM(SR_NV)], right[SR_DIM(SR_NV)];
  real b[SR_DIM(SR_NV)], g[SR_DIM(SR_K)], dx[SR_DIM(SR_NV)], mu[SR_DIM(SR_K)], q[SR_DIM(SR_NQ)], zero[SR_DIM(SR_NV)];
  real phi[SR_DIM(SR_K)], rate[SR_DIM(SR_K)], last = 1e300;
  sr_report report;
  const real t1 = m->t + h, middle = m->t + h / 2;
  for (int i = 0; i < SR_NV; i++) zero[i] = 0, delta[i] = h * (m->v[i] + h / 2 * m->a[i]);
  for (int i = 0; i < SR_K; i++) push[i] = 0;
  if (m->law && m->sample == 0) { /* inputs at the middle, as far as it is known */
    real half[SR_DIM(SR_NV)], v[SR_DIM(SR_NV)];
    for (int i = 0; i < SR_NV; i++) half[i] = delta[i] / 2, v[i] = delta[i] / h;
    sr_retract(m->q, half, q);
    sr_input(m, middle, q, v);
    if (m->failed) return SR_CALL_FAILED;
  }
  for (int pass = 0;; pass++) {
    m->discrete(&m->t, m->q, m->v, delta, &h, m->u, m->setup.p, m->setup.active, push, rest, right);
    sr_retract(m->q, delta, q);
    m->correct(&t1, q, zero, &m->setup, phi, rate, 0, 0, &report);
    for (int i = 0; i < SR_NV; i++) b[i] = h * rest[i];
    for (int i = 0; i < SR_K; i++) g[i] = -phi[i];
    m->linear(&m->t, m->q, 0, &m->setup, 1, b, g, dx, mu, &report);
    m->evaluations++;
    if (!(report.inertia > 0)) return SR_NOT_FINITE;
    sr_weigh(x, report.accepted, m->t, x->y0);
    for (int i = 0; i < SR_K; i++) push[i] += mu[i] / h; /* M dx / h = rest + A' mu / h */
    real size = 0;
    for (int i = 0; i < SR_NV; i++) {
      delta[i] += dx[i];
      const real part = fabs(dx[i]) / m->scale[i];
      if (!(part <= size)) size = part;
    }
    if (!(size < 1e6)) return SR_NO_CONVERGENCE;
    if (size < 1e-15 || (pass > 3 && size >= 0.5 * last && size < 1e-11 + 10 * sr_digits(m, m->q))) break;
    if (pass > 60) return SR_NO_CONVERGENCE;
    last = size;
  }
  m->discrete(&m->t, m->q, m->v, delta, &h, m->u, m->setup.p, m->setup.active, push, rest, right);
  sr_retract(m->q, delta, q);
  m->correct(&t1, q, zero, &m->setup, phi, rate, 0, 0, &report);
  for (int i = 0; i < SR_K; i++) g[i] = -rate[i]; /* A v1 = a */
  m->linear(&t1, q, 0, &m->setup, 1, right, g, x->y1 + SR_NV, mu, &report);
  if (!(report.inertia > 0)) return SR_NOT_FINITE;
  for (int i = 0; i < SR_NV; i++) x->y1[i] = delta[i];
  return 0;
}

#endif
