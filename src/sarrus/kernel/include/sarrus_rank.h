/* How many rows are independent along the motion, asked for before it begins. */
#ifndef SARRUS_RANK_H
#define SARRUS_RANK_H

/* Rank of the active rows near a state, away from singular positions. The rank at the state may be too small (it may be
   singular) and that at positions that break the loops too large (overconstrained machines), so neighbours on the
   manifold are asked, two that can be reached: moved off by spread out amounts and brought back by the smallest moves in
   the mass metric. */
SR_EXPORT long sarrus_generic_rank(sr_motion *m) {
  const real spreads[] = {1e-2, 1e-2, 3e-3}, drift = m->drift;
  const long projections = m->projections, correction = m->correction;
  real q[SR_DIM(SR_NQ)], v[SR_DIM(SR_NV)], delta[SR_DIM(SR_NV)], phi[SR_DIM(SR_K)], rate[SR_DIM(SR_K)];
  sr_setup all = m->setup;
  sr_report report;
  long on = 0, asked = 0, best;
  all.active = m->active;
  for (int i = 0; i < SR_K; i++) on += m->active[i] != 0;
  for (int i = 0; i < SR_NV; i++) v[i] = 0;
  m->correct(&m->t, m->q, v, &all, phi, rate, delta, 0, &report);
  best = m->here = (long)report.rank;
  m->correction = SR_PROJECT, m->drift = 1e-12;
  for (int k = 0; k < 3 && asked < 2 && best < on && best < SR_NV; k++) {
    for (int i = 0; i < SR_NV; i++) { /* multiples of an irrational number, without their whole parts: evenly spread */
      const real x = (k * SR_NV + i + 1) * 0.7548776662466927;
      delta[i] = spreads[k] * m->scale[i] * (2 * (x - floor(x)) - 1);
    }
    sr_retract(m->q, delta, q);
    for (int i = 0; i < SR_NV; i++) v[i] = 0;
    if (!(sr_project(m, m->t, &all, q, v) <= m->drift)) continue;
    m->correct(&m->t, q, v, &all, phi, rate, delta, 0, &report);
    asked++;
    if (report.rank > best) best = (long)report.rank;
  }
  m->projections = projections, m->correction = correction, m->drift = drift;
  return best;
}

#endif
