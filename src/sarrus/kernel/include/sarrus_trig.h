/* Sine and cosine of one angle, in line: generated code needs little else, and most often both.

   The angle less the nearest multiple n of pi/2 is exact but for one rounding (pi/2 in two parts, fused operations), and
   what is left goes into the polynomials of Sun's fdlibm (k_sin.c, k_cos.c). Errors stay below two units in the last place;
   beyond 1e15, where neighbouring numbers are a radian apart, an angle counts as zero. */
#ifndef SARRUS_TRIG_H
#define SARRUS_TRIG_H

#if defined(SARRUS_FLOAT) || defined(__CUDACC__) || !(defined(__FMA__) || defined(__ARM_FEATURE_FMA))

SR_FN void sr_sincos(real x, real *sine, real *cosine) {
  *sine = SR_MATH(sin)(x);
  *cosine = SR_MATH(cos)(x);
}

#else

SR_FN void sr_sincos(real x, real *sine, real *cosine) {
  const real n = rint(x * 6.36619772367581343e-01);
  const real near = fma(-n, 6.12323399573676604e-17, fma(-n, 1.57079632679489656, x));
  const real r = fabs(x) > 1e15 ? 0 * x : near, z = r * r, w = z * z;
  const real s1 = -1.66666666666666324e-01 + z * 8.33333333332248946e-03;
  const real s2 = -1.98412698298579493e-04 + z * 2.75573137070700677e-06;
  const real s3 = -2.50507602534068634e-08 + z * 1.58969099521155010e-10;
  const real c1 = 4.16666666666666019e-02 + z * -1.38888888888741096e-03;
  const real c2 = 2.48015872894767294e-05 + z * -2.75573143513906633e-07;
  const real c3 = 2.08757232129817483e-09 + z * -1.13596475577881948e-11;
  const real s = r + r * z * (s1 + w * (s2 + w * s3)), c = 1 - z / 2 + w * (c1 + w * (c2 + w * c3));
  const long quarter = (long)n;
  const real a = quarter & 1 ? c : s, b = quarter & 1 ? s : c;
  *sine = quarter & 2 ? -a : a;
  *cosine = (quarter + 1) & 2 ? -b : b;
}

#endif
#endif
