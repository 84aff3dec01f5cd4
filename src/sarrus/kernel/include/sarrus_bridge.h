/* Across a singular position by analytic continuation.

   Near a position where rows vanish or become dependent, the direction in which they push is lost in rounding, but along
   the branch that the machine is on the motion itself is smooth. A bridge is one implicit collocation step over the whole
   neighbourhood: accelerations are taken at nodes on both sides, each brought back to the constraints first, where the
   rows carry well; nodes too near to the singular position are left out; a polynomial through the others gives the motion,
   and the nodes follow it until nothing changes. Several rows may vanish at once, the branch may be curved, and it is
   chosen by the velocity with which the machine arrives. */
#ifndef SARRUS_BRIDGE_H
#define SARRUS_BRIDGE_H

#define SR_STRICT_BRIDGE 30
#define SR_NODE_ERROR 4e-15 /* loop error to which nodes are brought, about that of rounding */
#define SR_ROUNDED 300 /* a bridge held up by rounding may miss its tolerance by so much (10 tolerances, by the above) */
#define SR_ROUNDING 1e-4 /* ... or by so much of the typical sizes: rounding grows with the inverse square of the support */

/* Below this support a position counts as nearly singular: a part of the most that the rows ever carried; more of it for
   a machine that never leaves the neighbourhood of a singular position. */
SR_FN real sr_near(const sr_motion *m) {
  const real half = 0.5 * m->s_ref, part = 0.1 * m->s_ref, small = half < 1e-3 ? half : 1e-3;
  return part > small ? part : small;
}

/* Legendre polynomials P_0 ... P_{count-1} at x, and their integrals from -1 */
SR_FN void sr_legendre(real x, int count, real *p, real *integral) {
  real all[SR_TERMS_D + 2];
  all[0] = 1, all[1] = x;
  for (int j = 1; j <= count; j++) all[j + 1] = ((2 * j + 1) * x * all[j] - j * all[j - 1]) / (j + 1);
  for (int j = 0; j < count; j++) {
    p[j] = all[j];
    integral[j] = j == 0 ? x + 1 : (all[j + 1] - all[j - 1]) / (2 * j + 1);
  }
}

/* weighted least squares: coefficients = fit x values, by modified Gram-Schmidt on the Legendre columns */
SR_FN void sr_fit(const real *x, const real *weight, int count, real fit[SR_TERMS_D][SR_NODES]) {
  real column[SR_TERMS_D][SR_NODES], r[SR_TERMS_D][SR_TERMS_D], p[SR_TERMS_D], unused[SR_TERMS_D];
  for (int k = 0; k < SR_NODES; k++) {
    sr_legendre(x[k], count, p, unused);
    for (int j = 0; j < count; j++) column[j][k] = p[j] * weight[k];
  }
  for (int j = 0; j < count; j++) {
    for (int twice = 0; twice < 2; twice++)
      for (int i = 0; i < j; i++) {
        real dot = 0;
        for (int k = 0; k < SR_NODES; k++) dot += column[i][k] * column[j][k];
        r[i][j] = twice ? r[i][j] + dot : dot;
        for (int k = 0; k < SR_NODES; k++) column[j][k] -= dot * column[i][k];
      }
    real length = 0;
    for (int k = 0; k < SR_NODES; k++) length += column[j][k] * column[j][k];
    r[j][j] = sqrt(length);
    for (int k = 0; k < SR_NODES; k++) column[j][k] /= r[j][j];
  }
  for (int k = 0; k < SR_NODES; k++)
    for (int j = count - 1; j >= 0; j--) {
      real s = column[j][k] * weight[k];
      for (int i = j + 1; i < count; i++) s -= r[j][i] * fit[i][k];
      fit[j][k] = s / r[j][j];
    }
}

/* (delta, v) of a bridge at x = -1 ... 1 */
SR_FN void sr_bridge_at(const sr_dense *d, real x, real *y) {
  real p[SR_TERMS_D], in[SR_TERMS_D];
  sr_legendre(x, SR_TERMS_D, p, in);
  for (int i = 0; i < SR_NV; i++) {
    y[i] = 0, y[SR_NV + i] = d->y0[SR_NV + i];
    for (int j = 0; j < SR_TERMS_A; j++) y[SR_NV + i] += d->h / 2 * d->ca[j][i] * in[j];
    for (int j = 0; j < SR_TERMS_D; j++) y[i] += d->h / 2 * d->cd[j][i] * in[j];
  }
}

SR_FN void sr_bridge_acceleration(const sr_dense *d, real x, real *a) {
  real p[SR_TERMS_D], unused[SR_TERMS_D];
  sr_legendre(x, SR_TERMS_A, p, unused);
  for (int i = 0; i < SR_NV; i++) {
    a[i] = 0;
    for (int j = 0; j < SR_TERMS_A; j++) a[i] += d->ca[j][i] * p[j];
  }
}

/* smallest singular value of the chosen rows at x, as exactly as it can be had */
SR_FN real sr_bridge_support(const sr_motion *m, const sr_dense *d, real x, sr_setup *setup) {
  real y[SR_DIM(SR_NY2)], q[SR_DIM(SR_NQ)], phi[SR_DIM(SR_K)], rate[SR_DIM(SR_K)], dq[SR_DIM(SR_NV)];
  sr_report report;
  const real t = d->t + (x + 1) / 2 * d->h;
  sr_bridge_at(d, x, y);
  sr_retract(d->q, y, q);
  m->correct(&t, q, y + SR_NV, setup, phi, rate, dq, 0, &report);
  return report.rank < m->rank ? 0 : report.accepted;
}

/* One sweep: node states from the polynomial, accelerations at them, new polynomial. support: of each node; weight: those
   used. Returns 0 or why it failed; moved: largest correction that a used node needed, in tolerances. */
SR_FN int sr_bridge_sweep(sr_motion *m, sr_dense *d, const real *x, sr_setup *setup, real *support, real *weight,
                          real fit_d[SR_TERMS_D][SR_NODES], const real *w, real *moved) {
  real a[SR_NODES][SR_DIM(SR_NV)], rate[SR_DIM(SR_NV)], fit[SR_TERMS_D][SR_NODES], best = 0;
  *moved = 0;
  for (int k = 0; k < SR_NODES; k++) {
    real y[SR_DIM(SR_NY2)], q[SR_DIM(SR_NQ)], v[SR_DIM(SR_NV)], before[SR_DIM(SR_NQ)], lam[SR_DIM(SR_M)];
    const real t = d->t + (x[k] + 1) / 2 * d->h;
    sr_bridge_at(d, x[k], y);
    sr_retract(d->q, y, q);
    for (int i = 0; i < SR_NQ; i++) before[i] = q[i];
    for (int i = 0; i < SR_NV; i++) v[i] = y[SR_NV + i];
    if (weight[k] > 0) { /* down to rounding: what is left is divided by the support twice */
      const real drift = m->drift;
      m->drift = SR_NODE_ERROR;
      sr_project(m, t, setup, q, v);
      m->drift = drift;
    }
    support[k] = sr_acceleration(m, t, q, v, setup, a[k], lam);
    if (support[k] < 0) return m->failed ? SR_CALL_FAILED : SR_NOT_FINITE;
    if (support[k] > best) best = support[k];
    if (weight[k] > 0) /* rounding alone moves a node by so much as its rows carry little */
      for (int i = 0; i < SR_PLAIN; i++) {
        const real rounded = SR_NODE_ERROR * m->scale[sr_plain_v[i]] / support[k];
        const real size = (fabs(q[sr_plain_q[i]] - before[sr_plain_q[i]]) - rounded) * w[sr_plain_v[i]];
        if (size > *moved) *moved = size;
      }
  }
  int used = 0;
  for (int k = 0; k < SR_NODES; k++) { /* rounding errors grow with the inverse square of the support */
    const real part = support[k] / best;
    weight[k] = part > 0.02 && support[k] > 1e-9 ? part * part : 0;
    used += weight[k] > 0;
  }
  if (used < SR_TERMS_A + 1) /* the machine stays in the singular set: its own, smaller rank is the right one */
    for (int k = 0; k < SR_NODES; k++) weight[k] = 1;
  sr_fit(x, weight, SR_TERMS_A, fit);
  for (int j = 0; j < SR_TERMS_A; j++)
    for (int i = 0; i < SR_NV; i++) {
      d->ca[j][i] = 0;
      for (int k = 0; k < SR_NODES; k++) d->ca[j][i] += fit[j][k] * a[k][i];
    }
  real next[SR_TERMS_D][SR_DIM(SR_NV)];
  for (int j = 0; j < SR_TERMS_D; j++)
    for (int i = 0; i < SR_NV; i++) next[j][i] = 0;
  for (int k = 0; k < SR_NODES; k++) {
    real y[SR_DIM(SR_NY2)];
    sr_bridge_at(d, x[k], y);
    sr_rate(y, y + SR_NV, rate);
    for (int j = 0; j < SR_TERMS_D; j++)
      for (int i = 0; i < SR_NV; i++) next[j][i] += fit_d[j][k] * rate[i];
  }
  for (int j = 0; j < SR_TERMS_D; j++)
    for (int i = 0; i < SR_NV; i++) d->cd[j][i] = next[j][i];
  return 0;
}

/* Where along the bridge the rows carry least, between the neighbours of the weakest node, by Brent's method: the square of
   the smallest singular value is smooth, so parabolas through the three best points soon find its minimum. */
SR_FN real sr_bridge_closest(sr_motion *m, const sr_dense *d, const real *x, const real *support, sr_setup *setup,
                             real *sigma) {
  int weakest = 0;
  for (int k = 1; k < SR_NODES; k++)
    if (support[k] < support[weakest]) weakest = k;
  real low = weakest > 0 ? x[weakest - 1] : -1, high = weakest < SR_NODES - 1 ? x[weakest + 1] : 1;
  real best = x[weakest], second = best, third = best, last = 0, older = 0; /* places, the last steps */
  real f_best = sr_bridge_support(m, d, best, setup), f_second = f_best, f_third = f_best; /* singular values */
  for (int pass = 0; pass < 60 && f_best > 0; pass++) {
    const real middle = (low + high) / 2, least = 1e-10 * fabs(best) + 1e-15;
    if (fabs(best - middle) <= 2 * least - (high - low) / 2) break;
    const real r = (best - second) * (f_best * f_best - f_third * f_third);
    const real w = (best - third) * (f_best * f_best - f_second * f_second);
    const real p = (best - second) * r - (best - third) * w, q = 2 * (w - r), jump = q != 0 ? p / q : 0;
    if (q != 0 && fabs(jump) < fabs(older) / 2 && best + jump > low && best + jump < high)
      older = last, last = jump;
    else
      older = best < middle ? high - best : low - best, last = 0.3819660112501051 * older;
    const real at = best + (fabs(last) > least ? last : (last > 0 ? least : -least));
    const real f = sr_bridge_support(m, d, at, setup);
    if (f <= f_best) {
      *(at < best ? &high : &low) = best;
      third = second, f_third = f_second, second = best, f_second = f_best, best = at, f_best = f;
    } else {
      *(at < best ? &low : &high) = at;
      if (f <= f_second || second == best)
        third = second, f_third = f_second, second = at, f_second = f;
      else if (f <= f_third || third == best || third == second)
        third = at, f_third = f;
    }
  }
  *sigma = f_best;
  return best;
}

/* iterate sweeps over an interval of length d->h; 0 when they have settled, else why not (SR_GO_ON: try a shorter one) */
SR_FN int sr_bridge_solve(sr_motion *m, sr_dense *d, const real *x, sr_setup *setup, real *support, real *error) {
  real weight[SR_NODES], ones[SR_NODES], fit_d[SR_TERMS_D][SR_NODES], w[SR_DIM(SR_NY2)], last[SR_DIM(SR_NY2)];
  real y[SR_DIM(SR_NY2)], moved = 0, change = 0, before = 1e300;
  int worse = 0;
  for (int k = 0; k < SR_NODES; k++) weight[k] = ones[k] = 1;
  sr_fit(x, ones, SR_TERMS_D, fit_d);
  sr_bridge_at(d, 1, last);
  for (int sweep = 0; sweep < 40; sweep++) {
    sr_weights(m, d->h, m->v, last + SR_NV, w);
    const int failed = sr_bridge_sweep(m, d, x, setup, support, weight, fit_d, w, &moved);
    if (failed == SR_CALL_FAILED) return failed;
    if (failed) return -1;
    sr_bridge_at(d, 1, y);
    real difference[SR_DIM(SR_NY2)];
    for (int i = 0; i < SR_NY2; i++) difference[i] = y[i] - last[i], last[i] = y[i];
    change = sr_norm(difference, w);
    if (!(change < 1e12)) return -1;
    if (change < 1e-3) break;
    worse = change > 0.7 * before ? worse + 1 : 0;
    if (worse > 4) break; /* rounding, or no contraction */
    before = change;
  }
  real tail[SR_DIM(SR_NY2)];
  for (int i = 0; i < SR_NV; i++) {
    const real c = fabs(d->ca[SR_TERMS_A - 1][i]) + fabs(d->ca[SR_TERMS_A - 2][i]);
    tail[SR_NV + i] = d->h / 2 * c / (2 * SR_TERMS_A - 3);
    tail[i] = d->h / 2 * (fabs(d->cd[SR_TERMS_D - 1][i]) + fabs(d->cd[SR_TERMS_D - 2][i])) / (2 * SR_TERMS_D - 3);
  }
  *error = SR_STRICT_BRIDGE * sr_norm(tail, w);
  if (change > 0.3) *error += change;
  if (moved > 30) *error += moved; /* the polynomial left the branch that the nodes are on */
  return 0;
}

/* a first guess: the acceleration now, going on as it has been changing */
SR_FN void sr_bridge_start(const sr_motion *m, sr_dense *d, real h) {
  d->kind = SR_BRIDGED, d->t = m->t, d->h = h;
  for (int i = 0; i < SR_NQ; i++) d->q[i] = m->q[i];
  for (int j = 0; j < SR_TERMS_A; j++)
    for (int i = 0; i < SR_NV; i++) d->ca[j][i] = 0;
  for (int j = 0; j < SR_TERMS_D; j++)
    for (int i = 0; i < SR_NV; i++) d->cd[j][i] = 0;
  for (int i = 0; i < SR_NV; i++) {
    const real slope = m->has_old ? (m->a[i] - m->a_old[i]) / m->h_old : 0;
    d->y0[i] = 0, d->y0[SR_NV + i] = m->v[i];
    d->ca[0][i] = m->a[i] + slope * h / 2, d->ca[1][i] = slope * h / 2;
    d->cd[0][i] = m->v[i] + m->a[i] * h / 2, d->cd[1][i] = m->a[i] * h / 2;
  }
}

/* Bridge an interval of about h. On success d holds the motion, (q, v) its end, *where (-1 ... 1) and *sigma the place
   where the rows carry least and how much, *around the most that they carry. */
SR_FN int sr_bridge(sr_motion *m, real h, sr_dense *d, real *q, real *v, real *where, real *sigma, real *around) {
  real x[SR_NODES], support[SR_NODES], y[SR_DIM(SR_NY2)], error = 0;
  sr_setup setup = m->setup, exact = m->setup;
  setup.options.fast_pivot = m->pivot;
  setup.options.tolerance = exact.options.tolerance = 1e-13;
  setup.options.max_rank = exact.options.max_rank = m->rank;
  exact.options.mode = 1;
  exact.active = m->active; /* a weak choice of rows is no singular position of the machine */
  for (int k = 0; k < SR_NODES; k++) x[k] = -cos(3.14159265358979323846 * (2 * k + 1) / (2 * SR_NODES));
  const real floor = 1e-14 * (fabs(m->t) + m->s_floor), least = h * 1e-6 > floor ? h * 1e-6 : floor;
  /* positions where rows carry so much are known to no more than rounding over their support */
  const real limit = 1 + SR_STRICT_BRIDGE * SR_NODE_ERROR / ((m->s > 1e-9 ? m->s : 1e-9) * m->rtol);
  const real rounded = SR_ROUNDING > SR_ROUNDED * m->rtol ? SR_ROUNDING / m->rtol : SR_ROUNDED;
  real last_h = 0, last_error = 0, before = 0;
  int tries = 0, rounding = 0;
  for (int attempt = 0; attempt < 40 && h > least; attempt++) {
    if (m->t + h > m->t_end) h = m->t_end - m->t;
    sr_bridge_start(m, d, h);
    const int failed = sr_bridge_solve(m, d, x, &setup, support, &error);
    if (failed == SR_CALL_FAILED) return failed;
    if (failed || !(error <= limit || rounding)) {
      if (before > 0) { /* too long to reach beyond the singular position: end well before it */
        h = before, before = 0, tries = 6;
        continue;
      }
      if (!failed && last_h > 0 && error > 0.3 * last_error && last_error < rounded) {
        h = last_h, rounding = 1; /* shorter is no better: what is left is rounding, and that is least in a long one */
        continue;
      }
      last_h = failed ? 0 : h, last_error = error;
      const real shrink = failed || !(error < 1e10) ? 0.35 : 0.9 * pow(error, -1.0 / SR_TERMS_A);
      h *= shrink < 0.25 ? 0.25 : (shrink > 0.8 ? 0.8 : shrink);
      continue;
    }
    *around = 0;
    for (int k = 0; k < SR_NODES; k++) {
      if (m->dependent) support[k] = sr_bridge_support(m, d, x[k], &exact);
      if (support[k] > *around) *around = support[k];
    }
    *where = sr_bridge_closest(m, d, x, support, &exact, sigma);
    /* what starts from a weak end cannot find back to its branch: the singular position belongs into the middle */
    const real first = sr_bridge_support(m, d, -1, &exact), last = sr_bridge_support(m, d, 1, &exact);
    const real enough = 0.5 * (first < sr_near(m) ? first : sr_near(m));
    if (last < enough && m->t + h < m->t_end && tries < 6) {
      const real at = (*where + 1) / 2;
      before = 0.5 * at * h;
      h *= at > 0.7 ? 2 * at : 1.4;
      tries++, last_h = 0, rounding = 0;
      continue;
    }
    sr_bridge_at(d, 1, y);
    sr_retract(m->q, y, q);
    for (int i = 0; i < SR_NV; i++) v[i] = y[SR_NV + i];
    m->bridges++;
    return 0;
  }
  return SR_TOO_SMALL;
}

#endif
