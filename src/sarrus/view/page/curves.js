"use strict";
// Curves against time with a cursor.

function nice(x) {
  const power = 10 ** Math.floor(Math.log10(x));
  return [1, 2, 5, 10].map((k) => k * power).find((s) => s >= x * 0.999) || x;
}

function plain(x) {
  if (!Number.isFinite(x)) return "–";
  if (x !== 0 && (Math.abs(x) < 1e-3 || Math.abs(x) >= 1e5)) return x.toExponential(1).replace("e+", "e");
  return String(Number(x.toPrecision(4)));
}

const DASHES = [[], [7, 4], [2, 3]];

class Plot {
  constructor(canvas, begin, duration, marks) {
    Object.assign(this, { canvas, begin, duration, marks });
    this.context = canvas.getContext("2d");
    this.still = document.createElement("canvas");
  }

  show(curve) {
    this.curve = curve;
    this.dirty = true;
  }

  // where a series is at a time
  value(series, time) {
    const { t } = this.curve, x = time - this.begin;
    let low = 0, high = t.length - 1;
    while (high - low > 1) {
      const middle = (low + high) >> 1;
      if (t[middle] <= x) low = middle;
      else high = middle;
    }
    const step = t[high] - t[low];
    const s = step > 0 ? Math.min(Math.max((x - t[low]) / step, 0), 1) : 0;
    return series.values[low] + s * (series.values[high] - series.values[low]);
  }

  limits() {
    let low = Infinity, high = -Infinity;
    const take = (y) => {
      const z = this.curve.log ? Math.log10(y) : y;
      if (!Number.isFinite(z)) return;
      low = Math.min(low, z);
      high = Math.max(high, z);
    };
    for (const series of this.curve.series) if (series.on) series.values.forEach(take);
    if (this.curve.level) take(this.curve.level.value);
    if (!Number.isFinite(low)) [low, high] = [0, 1];
    if (this.curve.log) return [Math.floor(low - 0.1), Math.max(Math.ceil(high + 0.1), Math.floor(low - 0.1) + 2)];
    const room = 0.06 * (high - low) || 0.1 * Math.abs(high) || 1;
    return [low - room, high + room];
  }

  resize() {
    const ratio = window.devicePixelRatio || 1;
    this.ratio = ratio;
    this.width = this.canvas.clientWidth;
    this.height = this.canvas.clientHeight;
    for (const c of [this.canvas, this.still]) {
      c.width = Math.max(Math.round(this.width * ratio), 1);
      c.height = Math.max(Math.round(this.height * ratio), 1);
    }
    this.dirty = true;
  }

  x(time) {
    const [left, right] = this.sides;
    return left + ((time - this.begin) / (this.duration || 1)) * (right - left);
  }

  time(x) {
    const [left, right] = this.sides;
    return this.begin + Math.min(Math.max((x - left) / (right - left), 0), 1) * this.duration;
  }

  draw(time, theme) {
    if (!this.width || !this.curve) return;
    if (this.dirty) this.background(theme);
    const c = this.context;
    c.setTransform(1, 0, 0, 1, 0, 0);
    c.clearRect(0, 0, this.canvas.width, this.canvas.height);
    c.drawImage(this.still, 0, 0);
    c.setTransform(this.ratio, 0, 0, this.ratio, 0, 0);
    c.fillStyle = theme.accent;
    c.fillRect(this.x(time) - 0.75, 6, 1.5, this.height - 24);
  }

  background(theme) {
    const c = this.still.getContext("2d");
    this.dirty = false;
    this.sides = [52, this.width - 8];
    const [top, bottom] = [6, this.height - 18];
    const [low, high] = this.limits();
    const y = (v) => bottom - ((v - low) / (high - low)) * (bottom - top);
    c.setTransform(this.ratio, 0, 0, this.ratio, 0, 0);
    c.clearRect(0, 0, this.width, this.height);
    c.font = "11px system-ui, sans-serif";
    c.fillStyle = theme.soft;
    const across = (at, text) => {
      c.fillStyle = theme.line;
      c.fillRect(this.sides[0], y(at) - 0.5, this.sides[1] - this.sides[0], 1);
      c.fillStyle = theme.soft;
      c.textAlign = "right";
      c.fillText(text, this.sides[0] - 5, y(at) + 4);
    };
    const step = this.curve.log ? Math.max(Math.ceil((high - low) / 5), 1) : nice((high - low) / 4);
    for (let k = Math.ceil(low / step - 1e-9); k * step <= high + 1e-9 * step; k += 1) {
      across(k * step, this.curve.log ? `1e${k * step}` : plain(k * step));
    }
    this.timeAxis(c, bottom, theme);
    for (const mark of this.marks) {
      c.fillStyle = mark.label[0] === "×" ? theme.crossing : theme.event;
      c.fillRect(this.x(mark.t) - 0.5, top, 1, bottom - top);
    }
    c.save();
    c.beginPath();
    c.rect(this.sides[0], top - 2, this.sides[1] - this.sides[0], bottom - top + 4);
    c.clip();
    if (this.curve.level) this.line(c, [0, this.duration], [this.curve.level.value, this.curve.level.value], y, theme.soft, [2, 3]);
    for (const s of this.curve.series) if (s.on) this.line(c, this.curve.t, s.values, y, s.colour, s.dash);
    c.restore();
  }

  timeAxis(c, bottom, theme) {
    c.fillStyle = theme.soft;
    const end = this.begin + this.duration;
    const step = nice((this.duration || 1) / Math.max(this.width / 90, 2));
    c.textAlign = "center";
    for (let k = Math.ceil(this.begin / step - 1e-9); k * step <= end + 1e-9 * step; k += 1) {
      const last = this.x(k * step) > this.sides[1] - 30;
      c.textAlign = last ? "right" : "center";
      c.fillText(plain(k * step) + (last ? " s" : ""), Math.min(this.x(k * step), this.sides[1]), bottom + 13);
      c.fillRect(this.x(k * step) - 0.5, bottom, 1, 3);
    }
  }

  line(c, t, values, y, colour, dash) {
    c.beginPath();
    let pen = false;
    for (let k = 0; k < t.length; k += 1) {
      const v = this.curve.log ? Math.log10(values[k]) : values[k];
      if (!Number.isFinite(v)) {
        pen = false;
        continue;
      }
      const px = this.x(this.begin + t[k]);
      if (pen) c.lineTo(px, y(v));
      else c.moveTo(px, y(v));
      if (t.length === 1) c.arc(px, y(v), 2, 0, 2 * Math.PI);
      pen = true;
    }
    c.strokeStyle = colour;
    c.lineWidth = 1.5;
    c.setLineDash(dash);
    c.lineJoin = "round";
    c.stroke();
    c.setLineDash([]);
  }
}
