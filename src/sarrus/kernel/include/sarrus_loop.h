/* What stands between a control law and the machine: sampling, noise on what is measured, delay, limits.

   The law is asked for at the ticks (first_sample + k period) with what is measured then; its answer takes effect after the
   delay, held until the next one does, and cut to what the drives can do. Without a period the law is asked for at every
   evaluation, and only the limits of effort apply. */
#ifndef SARRUS_LOOP_H
#define SARRUS_LOOP_H

typedef struct {
  const real *numbers;             /* what the law is given in place of the machine's parameters; null: those */
  /* (t, q, v, numbers, lambda, memory, u): a law with memory and measured forces, asked instead of the plain one */
  long (*step)(const real *, const real *, const real *, const real *, const real *, real *, real *);
  real *memory;
  const real *low, *high, *rate;   /* of each input; rate: largest change in a second */
  const real *noise;               /* standard deviations of each velocity coordinate's position, then of its rate; or null */
  real delay;
  unsigned long long random;       /* state of the generator */
  real *queue;                     /* commands on their way: when they take effect, and the inputs */
  long room, head, count;
} sr_loop;

/* a number with the standard normal distribution: SplitMix64 and the polar method of Marsaglia */
SR_FN real sr_uniform(sr_loop *l) {
  unsigned long long z = (l->random += 0x9E3779B97F4A7C15ull);
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
  return (real)((z ^ (z >> 31)) >> 11) * (real)1.1102230246251565e-16; /* 2^-53 */
}

SR_FN real sr_normal(sr_loop *l) {
  real x, square;
  do {
    const real y = 2 * sr_uniform(l) - 1;
    x = 2 * sr_uniform(l) - 1;
    square = x * x + y * y;
  } while (!(square > 0 && square < 1));
  return x * SR_MATH(sqrt)(-2 * SR_MATH(log)(square) / square);
}

SR_FN void sr_limit(const sr_loop *l, real period, const real *before, real *u) {
  for (int i = 0; i < SR_NU; i++) {
    if (period > 0 && u[i] > before[i] + l->rate[i] * period) u[i] = before[i] + l->rate[i] * period;
    if (period > 0 && u[i] < before[i] - l->rate[i] * period) u[i] = before[i] - l->rate[i] * period;
    if (u[i] > l->high[i]) u[i] = l->high[i];
    if (u[i] < l->low[i]) u[i] = l->low[i];
  }
}

/* what the sensors say */
SR_FN void sr_measure(sr_loop *l, const real *q, const real *v, real *mq, real *mv) {
  real step[SR_DIM(SR_NV)];
  for (int i = 0; i < SR_NV; i++) {
    step[i] = l->noise ? l->noise[i] * sr_normal(l) : 0;
    mv[i] = v[i] + (l->noise ? l->noise[SR_NV + i] * sr_normal(l) : 0);
  }
  if (l->noise)
    sr_retract(q, step, mq);
  else
    for (int i = 0; i < SR_NQ; i++) mq[i] = q[i];
}

#endif
