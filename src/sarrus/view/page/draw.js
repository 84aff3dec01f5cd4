"use strict";
// The picture: shaded bars, plates and balls on a plain canvas, far ones first.

const BODY_COLOURS = ["#4c86b8", "#6fa287", "#8c79b5", "#b59a5b", "#5ba3b0", "#a8798f", "#7c8a99", "#9bb35c"];

function shade(colour, factor) {
  const n = parseInt(colour.slice(1), 16);
  const part = [n >> 16, (n >> 8) & 255, n & 255].map((c) => (factor > 1 ? c + (255 - c) * (factor - 1) : c * factor));
  return `rgb(${part.map((c) => Math.round(Math.min(Math.max(c, 0), 255))).join(",")})`;
}

class Picture {
  constructor(canvas, data) {
    this.canvas = canvas;
    this.context = canvas.getContext("2d");
    this.data = data;
    this.motion = new Motion(data);
    this.camera = new Camera(data.planar);
    this.radius = data.radius;
    this.names = false;
    this.sample();
  }

  // what must be in view during the whole motion, and the paths of points
  sample() {
    const { data, motion } = this;
    const count = Math.min(motion.frames, 400);
    const times = Array.from({ length: count }, (_, k) => motion.begin + (motion.duration * k) / Math.max(count - 1, 1));
    const drop = [0, 0, 4 * this.radius];
    this.extent = data.feet.flatMap((at) => [at, Vec.sub(at, drop)]);
    this.paths = data.paths.map((path) => ({ ...path, points: [] }));
    const every = Math.ceil(count / 60);
    times.forEach((time, k) => {
      const poses = motion.at(time);
      if (k % every === 0 || k === count - 1) {
        for (const shape of data.shapes) for (const at of shape.points) this.extent.push(place(poses[shape.body], at));
      }
      for (const path of this.paths) path.points.push(back(poses[path.frame], place(poses[path.body], path.at)));
    });
    this.low = this.extent.reduce((z, p) => Math.min(z, p[2]), Infinity);
  }

  resize() {
    const ratio = window.devicePixelRatio || 1;
    const { clientWidth: width, clientHeight: height } = this.canvas;
    if (!width || !height) return;
    this.canvas.width = Math.round(width * ratio);
    this.canvas.height = Math.round(height * ratio);
    this.ratio = ratio;
    this.camera.resize(width, height);
    if (!this.camera.moved) this.fit();
  }

  fit() {
    this.camera.fit(this.extent, 2.5 * this.radius);
  }

  reset() {
    const fresh = new Camera(this.data.planar);
    fresh.resize(this.camera.width, this.camera.height);
    this.camera = fresh;
    this.fit();
  }

  draw(time, theme) {
    const { context: c, data } = this;
    this.theme = theme;
    this.items = [];
    c.setTransform(this.ratio, 0, 0, this.ratio, 0, 0);
    c.clearRect(0, 0, this.camera.width, this.camera.height);
    c.lineJoin = c.lineCap = "round";
    this.grid();
    const poses = this.motion.at(time);
    this.lines(poses);
    for (const at of data.feet) this.foot(at);
    for (const shape of data.shapes) this.shape(shape, poses[shape.body]);
    for (const joint of data.joints) this.joint(joint, poses[joint.body]);
    this.items.sort((a, b) => b.depth - a.depth || a.order - b.order);
    for (const item of this.items) item.draw();
    if (this.names) this.labels(poses);
    this.triad();
    return this.items.length;
  }

  // `lift` metres towards the eye: what sits on something else is drawn after it
  push(point, lift, draw) {
    const depth = this.camera.project(point).depth - lift;
    this.items.push({ depth: Math.round((depth / this.camera.distance) * 1e5), order: this.items.length, draw });
  }

  shape(shape, pose) {
    const colour = BODY_COLOURS[shape.body % BODY_COLOURS.length];
    const points = shape.points.map((at) => place(pose, at));
    if (shape.kind === "bar") this.bar(points[0], points[1], shape.size, colour, shape.inside ? -5 * this.radius : 0);
    if (shape.kind === "ball") this.ball(points[0], shape.size, colour, 0.5 * shape.size);
    if (shape.kind === "plate") this.plate(points, turn(pose, shape.normal), shape.size, colour, 0);
  }

  bar(a, b, radius, colour, lift) {
    const pieces = Math.min(Math.max(Math.ceil(Vec.size(Vec.sub(b, a)) / (4 * this.radius)), 1), 40);
    const pa = this.camera.project(a), pb = this.camera.project(b);
    const length = Math.hypot(pb.x - pa.x, pb.y - pa.y);
    if (length < 0.5) {
      this.ball(pa.depth < pb.depth ? a : b, radius, colour, lift);
      return;
    }
    const along = [(pb.x - pa.x) / length, (pb.y - pa.y) / length];
    let side = [-along[1], along[0]];
    if (side[0] * -0.5 + side[1] * -0.85 < 0) side = [-side[0], -side[1]];
    const wide = radius * Math.max(pa.s, pb.s);
    const fill = this.context.createLinearGradient(
      pa.x + side[0] * wide, pa.y + side[1] * wide, pa.x - side[0] * wide, pa.y - side[1] * wide);
    [[0, 0.92], [0.3, 1.3], [0.62, 0.95], [1, 0.55]].forEach(([at, f]) => fill.addColorStop(at, shade(colour, f)));
    const point = (s) => Vec.add(a, Vec.scale(Vec.sub(b, a), s));
    for (let k = 0; k < pieces; k += 1) {
      const from = this.camera.project(point(k / pieces)), to = this.camera.project(point((k + 1) / pieces));
      const ends = [k === 0, k === pieces - 1];
      this.push(point((k + 0.5) / pieces), lift, () => this.piece(from, to, radius, side, along, fill, ends));
    }
  }

  piece(from, to, radius, side, along, fill, ends) {
    const c = this.context;
    const r0 = radius * from.s, r1 = radius * to.s;
    const more = ends[1] ? 0 : 0.7; // pixels of overlap, so that no seam shows
    const end = [to.x + along[0] * more, to.y + along[1] * more];
    const angle = Math.atan2(side[1], side[0]);
    const clockwise = side[0] * along[1] - side[1] * along[0] > 0;
    c.beginPath();
    c.moveTo(from.x + side[0] * r0, from.y + side[1] * r0);
    c.lineTo(end[0] + side[0] * r1, end[1] + side[1] * r1);
    if (ends[1]) c.arc(to.x, to.y, r1, angle, angle + Math.PI, !clockwise);
    c.lineTo(end[0] - side[0] * r1, end[1] - side[1] * r1);
    c.lineTo(from.x - side[0] * r0, from.y - side[1] * r0);
    if (ends[0]) c.arc(from.x, from.y, r0, angle + Math.PI, angle + 2 * Math.PI, !clockwise);
    c.closePath();
    c.fillStyle = fill;
    c.fill();
  }

  ball(at, radius, colour, lift, edge) {
    const p = this.camera.project(at), r = Math.max(radius * p.s, 1);
    this.push(at, lift, () => {
      const c = this.context;
      const fill = c.createRadialGradient(p.x - 0.35 * r, p.y - 0.4 * r, 0.1 * r, p.x, p.y, r);
      [[0, 1.4], [0.5, 1], [1, 0.6]].forEach(([s, f]) => fill.addColorStop(s, shade(colour, f)));
      c.beginPath();
      c.arc(p.x, p.y, r, 0, 2 * Math.PI);
      c.fillStyle = fill;
      c.fill();
      if (edge) this.outline(edge);
    });
  }

  outline(colour) {
    this.context.strokeStyle = colour;
    this.context.lineWidth = 1;
    this.context.stroke();
  }

  plate(points, normal, half, colour, lift, edge) {
    const n = Vec.scale(normal, half);
    const top = points.map((p) => Vec.add(p, n)), bottom = points.map((p) => Vec.sub(p, n));
    const faces = [top, bottom];
    points.forEach((_, k) => {
      const next = (k + 1) % points.length;
      faces.push([top[k], top[next], bottom[next], bottom[k]]);
    });
    this.solid(faces, colour, lift, edge, points.length > 12);
  }

  // a convex solid: its visible faces do not cover each other
  solid(faces, colour, lift, edge, spokes) {
    const centre = Vec.mean(faces[0].concat(faces[1]));
    this.push(centre, lift, () => {
      const c = this.context;
      const light = Vec.unit(Vec.add(Vec.add(this.camera.back, Vec.scale(this.camera.up, 0.9)), Vec.scale(this.camera.right, -0.5)));
      faces.forEach((face, index) => {
        const middle = Vec.mean(face);
        let normal = Vec.unit(Vec.cross(Vec.sub(face[1], face[0]), Vec.sub(face[2], face[0])));
        if (Vec.dot(normal, Vec.sub(middle, centre)) < 0) normal = Vec.scale(normal, -1);
        if (Vec.dot(normal, Vec.sub(this.camera.eye, middle)) <= 0) return;
        const seen = face.map((p) => this.camera.project(p));
        c.beginPath();
        seen.forEach((p, k) => (k ? c.lineTo(p.x, p.y) : c.moveTo(p.x, p.y)));
        c.closePath();
        const bright = 0.62 + 0.5 * Math.max(Vec.dot(normal, light), 0);
        c.fillStyle = shade(colour, bright);
        c.globalAlpha = edge ? 1 : 0.93;
        c.fill();
        c.globalAlpha = 1;
        this.outline(edge || shade(colour, spokes && index > 1 ? bright : 0.6));
        if (spokes && index < 2) {
          const quarter = Math.floor(seen.length / 4);
          c.beginPath();
          for (const k of [0, quarter]) {
            c.moveTo(seen[k].x, seen[k].y);
            c.lineTo(seen[k + 2 * quarter].x, seen[k + 2 * quarter].y);
          }
          this.outline(shade(colour, 0.6));
        }
      });
    });
  }

  joint(joint, pose) {
    const { radius: r, theme } = this;
    const at = place(pose, joint.at), axis = turn(pose, joint.axis);
    const colour = joint.closes ? theme.closure : theme.joint;
    const lift = 3.2 * r;
    if (joint.kind === "revolute" || joint.kind === "helical" || joint.kind === "cylindrical") {
      const ends = [Vec.sub(at, Vec.scale(axis, 1.7 * r)), Vec.add(at, Vec.scale(axis, 1.7 * r))];
      const flat = Math.abs(Vec.dot(axis, this.camera.back)) > 0.97;
      if (flat) this.ball(at, 0.8 * r, colour, lift, theme.jointEdge);
      else this.bar(ends[0], ends[1], 0.8 * r, colour, lift);
    } else if (joint.kind === "prismatic") {
      const other = Vec.unit(Vec.cross(axis, Math.abs(axis[2]) < 0.9 ? [0, 0, 1] : [1, 0, 0]));
      const third = Vec.cross(axis, other);
      const corners = [[1, 1], [-1, 1], [-1, -1], [1, -1]].map(([a, b]) =>
        Vec.add(at, Vec.add(Vec.scale(axis, 1.9 * a * r), Vec.scale(third, 1.25 * b * r))));
      this.plate(corners, other, 1.25 * r, colour, lift, theme.jointEdge);
    } else {
      this.ball(at, 1.15 * r, colour, lift, theme.jointEdge);
    }
  }

  foot(at) {
    const r = this.radius, wide = 2.6 * r;
    const base = [[1, 1], [-1, 1], [-1, -1], [1, -1]].map(([a, b]) => Vec.add(at, [a * wide, b * wide, -4 * r]));
    const faces = [base];
    base.forEach((p, k) => faces.push([at, p, base[(k + 1) % 4]]));
    this.solid(faces, this.theme.ground, 0, shade(this.theme.ground, 0.7), false);
  }

  stroke(points, colour, width, dash) {
    const c = this.context;
    c.beginPath();
    points.map((p) => this.camera.project(p)).forEach((p, k) => (k ? c.lineTo(p.x, p.y) : c.moveTo(p.x, p.y)));
    c.strokeStyle = colour;
    c.lineWidth = width;
    c.setLineDash(dash || []);
    c.stroke();
    c.setLineDash([]);
  }

  lines(poses) {
    for (const path of this.paths) {
      const points = path.points.map((p) => place(poses[path.frame], p));
      if (path.kind === "rail") this.stroke(points, this.theme.axis, 3);
      else this.stroke(points, this.theme.path, 1.3, [5, 4]);
    }
    for (const line of this.data.lines) {
      const [a, b] = line.ends.map((end) => place(poses[end.body], end.at));
      const points = line.kind === "spring" ? this.coil(a, b) : [a, b];
      const colour = line.kind === "spring" ? this.theme.soft : this.theme.closure;
      this.push(Vec.mean([a, b]), 2 * this.radius, () => this.stroke(points, colour, 1.6));
    }
  }

  coil(a, b) {
    const along = Vec.sub(b, a);
    const across = Vec.scale(Vec.unit(Vec.cross(along, this.camera.back)), 1.6 * this.radius);
    const out = [a];
    for (let k = 1; k < 24; k += 1) {
      const sway = k < 3 || k > 21 ? 0 : k % 2 ? 1 : -1;
      out.push(Vec.add(Vec.add(a, Vec.scale(along, k / 24)), Vec.scale(across, sway)));
    }
    return [...out, b];
  }

  // a floor under the machine, or the plane of a planar machine
  grid() {
    const planar = this.data.planar;
    const [u, w] = planar ? [0, 2] : [0, 1];
    const ends = [u, w].map((k) => this.extent.reduce(([a, b], p) => [Math.min(a, p[k]), Math.max(b, p[k])], [Infinity, -Infinity]));
    const span = Math.max(ends[0][1] - ends[0][0], ends[1][1] - ends[1][0], 10 * this.radius);
    const step = nice(span / 8);
    const [first, last] = [0, 1].map((s) => ends.map((e) => (s ? Math.ceil(e[1] / step + 1) : Math.floor(e[0] / step - 1))));
    const at = (i, j) => (planar ? [i * step, 0, j * step] : [i * step, j * step, this.low]);
    const colour = (k) => (k === 0 ? this.theme.axis : this.theme.grid);
    for (let i = first[0]; i <= last[0]; i += 1) this.stroke([at(i, first[1]), at(i, last[1])], colour(i), 1);
    for (let j = first[1]; j <= last[1]; j += 1) this.stroke([at(first[0], j), at(last[0], j)], colour(j), 1);
    this.context.fillStyle = this.theme.soft;
    this.context.font = "11.5px system-ui, sans-serif";
    this.context.fillText(`grid ${plain(step)} m`, 58, this.camera.height - 10);
  }

  triad() {
    const c = this.context, [x, y] = [28, this.camera.height - 28];
    c.font = "11px system-ui, sans-serif";
    ["x", "y", "z"].forEach((name, k) => {
      const axis = [0, 1, 2].map((i) => (i === k ? 1 : 0));
      const [dx, dy] = [Vec.dot(axis, this.camera.right) * 18, -Vec.dot(axis, this.camera.up) * 18];
      if (Math.hypot(dx, dy) < 3) return;
      c.beginPath();
      c.moveTo(x, y);
      c.lineTo(x + dx, y + dy);
      this.outline(this.theme.soft);
      c.fillStyle = this.theme.soft;
      c.fillText(name, x + dx * 1.35 - 3, y + dy * 1.35 + 4);
    });
  }

  labels(poses) {
    const c = this.context, { data } = this;
    c.font = "12px system-ui, sans-serif";
    c.lineWidth = 3;
    const write = (text, at, colour) => {
      const p = this.camera.project(at);
      c.strokeStyle = this.theme.paper;
      c.strokeText(text, p.x + 8, p.y - 8);
      c.fillStyle = colour;
      c.fillText(text, p.x + 8, p.y - 8);
    };
    data.bodies.forEach((name, b) => {
      const own = data.shapes.filter((shape) => shape.body === b).flatMap((shape) => shape.points);
      write(name, place(poses[b], own.length ? Vec.mean(own) : [0, 0, 0]), this.theme.soft);
    });
    for (const joint of data.joints) {
      if (joint.name) write(joint.name, place(poses[joint.body], joint.at), joint.closes ? this.theme.closure : this.theme.ink);
    }
  }
}
