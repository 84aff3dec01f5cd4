"use strict";
// Where everything is: numbers from the file, poses between frames, the camera.

const Vec = {
  add: (a, b) => [a[0] + b[0], a[1] + b[1], a[2] + b[2]],
  sub: (a, b) => [a[0] - b[0], a[1] - b[1], a[2] - b[2]],
  scale: (a, s) => [a[0] * s, a[1] * s, a[2] * s],
  dot: (a, b) => a[0] * b[0] + a[1] * b[1] + a[2] * b[2],
  cross: (a, b) => [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]],
  size: (a) => Math.hypot(a[0], a[1], a[2]),
  unit: (a) => Vec.scale(a, 1 / (Vec.size(a) || 1)),
  mean: (list) => Vec.scale(list.reduce(Vec.add, [0, 0, 0]), 1 / list.length),
};

function floats(text) {
  const raw = atob(text);
  const bytes = Uint8Array.from(raw, (c) => c.charCodeAt(0));
  return new Float32Array(bytes.buffer);
}

// Poses of all bodies at any time between the first and the last frame.
class Motion {
  constructor(data) {
    this.count = data.bodies.length;
    this.frames = data.frames;
    this.values = floats(data.poses);
    this.begin = data.begin;
    this.duration = data.end - data.begin;
  }

  // [{p, R}] for each body; the ground is at index -1
  at(time) {
    const last = this.frames - 1;
    const x = this.duration > 0 ? Math.min(Math.max((time - this.begin) / this.duration, 0), 1) * last : 0;
    const k = Math.min(Math.floor(x), Math.max(last - 1, 0));
    const s = x - k;
    const out = [];
    for (let b = 0; b < this.count; b += 1) {
      const i = (k * this.count + b) * 7;
      const j = last > 0 ? i + this.count * 7 : i;
      out.push(this.between(i, j, s));
    }
    out[-1] = { p: [0, 0, 0], R: [1, 0, 0, 0, 1, 0, 0, 0, 1] };
    return out;
  }

  between(i, j, s) {
    const f = this.values;
    const p = [0, 1, 2].map((c) => f[i + c] + s * (f[j + c] - f[i + c]));
    let dot = 0;
    for (let c = 3; c < 7; c += 1) dot += f[i + c] * f[j + c];
    const sign = dot < 0 ? -1 : 1;
    let q = [3, 4, 5, 6].map((c) => f[i + c] + s * (sign * f[j + c] - f[i + c]));
    const n = Math.hypot(...q);
    q = q.map((x) => x / n);
    const [w, x, y, z] = q;
    const R = [
      1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y),
      2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x),
      2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y),
    ];
    return { p, R };
  }
}

function turn(pose, d) {
  const R = pose.R;
  return [
    R[0] * d[0] + R[1] * d[1] + R[2] * d[2],
    R[3] * d[0] + R[4] * d[1] + R[5] * d[2],
    R[6] * d[0] + R[7] * d[1] + R[8] * d[2],
  ];
}

const place = (pose, at) => Vec.add(pose.p, turn(pose, at));

function back(pose, world) {
  const R = pose.R, d = Vec.sub(world, pose.p);
  return [
    R[0] * d[0] + R[3] * d[1] + R[6] * d[2],
    R[1] * d[0] + R[4] * d[1] + R[7] * d[2],
    R[2] * d[0] + R[5] * d[1] + R[8] * d[2],
  ];
}

// Looks at `target` from the direction (azimuth, elevation); z is up.
class Camera {
  constructor(planar) {
    this.planar = planar;
    this.moved = false;
    this.azimuth = planar ? -Math.PI / 2 : -0.95;
    this.elevation = planar ? 0 : 0.38;
    this.target = [0, 0, 0];
    this.distance = 10;
    this.resize(100, 100);
  }

  resize(width, height) {
    this.width = width;
    this.height = height;
    this.focus = 0.5 * Math.min(width, height) / Math.tan(0.26);
    this.update();
  }

  update() {
    const [ca, sa] = [Math.cos(this.azimuth), Math.sin(this.azimuth)];
    const [ce, se] = [Math.cos(this.elevation), Math.sin(this.elevation)];
    this.back = [ce * ca, ce * sa, se];
    this.right = [-sa, ca, 0];
    this.up = Vec.cross(this.back, this.right);
    this.eye = Vec.add(this.target, Vec.scale(this.back, this.distance));
  }

  // screen x and y, pixels for each metre there, and depth
  project(point) {
    const d = Vec.sub(point, this.target);
    const depth = Math.max(this.distance - Vec.dot(d, this.back), 1e-3 * this.distance);
    const s = this.focus / depth;
    return { x: this.width / 2 + Vec.dot(d, this.right) * s, y: this.height / 2 - Vec.dot(d, this.up) * s, s, depth };
  }

  // everything in the picture, with a margin
  fit(points, margin) {
    this.update();
    const axes = [this.right, this.up, this.back];
    const seen = points.map((p) => axes.map((a) => Vec.dot(p, a)));
    const ends = [0, 1, 2].map((k) => seen.reduce(([a, b], p) => [Math.min(a, p[k]), Math.max(b, p[k])], [Infinity, -Infinity]));
    const middle = ends.map(([a, b]) => (a + b) / 2);
    this.target = axes.reduce((sum, a, k) => Vec.add(sum, Vec.scale(a, middle[k])), [0, 0, 0]);
    const need = (p) => p[2] - middle[2] + this.focus * Math.max(
      (Math.abs(p[0] - middle[0]) + margin) / (0.47 * this.width), (Math.abs(p[1] - middle[1]) + margin) / (0.45 * this.height));
    this.distance = Math.max(seen.reduce((far, p) => Math.max(far, need(p)), 0), 1e-6);
    this.moved = false;
    this.update();
  }

  orbit(dx, dy) {
    this.azimuth -= dx * 0.008;
    this.elevation = Math.min(Math.max(this.elevation + dy * 0.008, -1.55), 1.55);
    this.moved = true;
    this.update();
  }

  pan(dx, dy) {
    const s = this.distance / this.focus;
    this.target = Vec.add(this.target, Vec.add(Vec.scale(this.right, -dx * s), Vec.scale(this.up, dy * s)));
    this.moved = true;
    this.update();
  }

  zoom(factor) {
    this.distance = Math.min(Math.max(this.distance * factor, 1e-4), 1e7);
    this.moved = true;
    this.update();
  }
}
