/* A reference given by samples: value, rate and second derivative by the quintic through both ends of the interval. */
#ifndef SARRUS_SAMPLES_H
#define SARRUS_SAMPLES_H

/* table: rows of (time, size values, size rates, size second derivatives); out: the three at t, held outside */
SR_FN void sr_lookup(const real *table, int rows, int size, real t, real *out) {
  const int width = 1 + 3 * size;
  int low = 0, high = rows - 1;
  if (!(t > table[0]) || !(t < table[high * width])) {
    const real *row = table + (t > table[0] ? high * width : 0);
    for (int i = 0; i < size; i++) out[i] = row[1 + i], out[size + i] = out[2 * size + i] = 0;
    return;
  }
  while (high - low > 1) {
    const int middle = (low + high) / 2;
    if (table[middle * width] <= t)
      low = middle;
    else
      high = middle;
  }
  const real *a = table + low * width + 1, *b = table + high * width + 1;
  const real h = b[-1] - a[-1], s = (t - a[-1]) / h;
  for (int i = 0; i < size; i++) {
    const real x = a[i], v = h * a[size + i], w = h * h * a[2 * size + i];
    const real d0 = b[i] - x - v - w / 2, d1 = h * b[size + i] - v - w, d2 = h * h * b[2 * size + i] - w;
    const real c3 = 10 * d0 - 4 * d1 + d2 / 2, c4 = -15 * d0 + 7 * d1 - d2, c5 = 6 * d0 - 3 * d1 + d2 / 2;
    out[i] = x + s * (v + s * (w / 2 + s * (c3 + s * (c4 + s * c5))));
    out[size + i] = (v + s * (w + s * (3 * c3 + s * (4 * c4 + s * 5 * c5)))) / h;
    out[2 * size + i] = (w + s * (6 * c3 + s * (12 * c4 + s * 20 * c5))) / (h * h);
  }
}

#endif
