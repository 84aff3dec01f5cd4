"use strict";
// Controls, and what turns them into pictures.

const THEME = ["paper", "ink", "soft", "line", "grid", "axis", "ground", "joint", "closure", "path", "accent", "crossing", "event"];

function make(tag, parent, className, text) {
  const node = document.createElement(tag);
  if (className) node.className = className;
  if (text !== undefined) node.textContent = text;
  parent.append(node);
  return node;
}

class Viewer {
  constructor(root) {
    this.root = root;
    this.data = JSON.parse(root.querySelector("script").textContent);
    const { data } = this;
    this.time = data.begin;
    this.speed = data.speed;
    this.playing = false;
    this.duration = data.end - data.begin;
    for (const curve of data.curves) {
      curve.t = floats(curve.t);
      let shown = 0;
      curve.series.forEach((s, k) => {
        s.values = floats(s.values);
        const place = s.on ? shown++ : k;
        s.plain = data.colours[place % data.colours.length];
        s.dash = DASHES[Math.floor(place / 3) % DASHES.length];
      });
    }
    this.head();
    this.stage();
    this.bar();
    this.marks();
    this.side();
    this.keys();
    this.look();
    new ResizeObserver(() => this.resize()).observe(root);
    window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.look());
    window.addEventListener("hashchange", () => this.hash());
    this.resize();
    this.hash();
  }

  head() {
    const head = make("div", this.root, "head");
    make("b", head, "", this.data.title);
    make("span", head, "", this.data.status);
  }

  stage() {
    const stage = make("div", this.root, "stage");
    if (this.data.message) {
      make("div", stage, "message", this.data.message);
      return;
    }
    const canvas = make("canvas", stage);
    canvas.setAttribute("role", "img");
    canvas.setAttribute("aria-label", `Moving picture of ${this.data.title}`);
    make("div", stage, "hint", "drag: turn · right drag: move · wheel: zoom · double click: reset · space: play");
    this.picture = new Picture(canvas, this.data);
    this.pointers(canvas);
  }

  pointers(canvas) {
    const held = new Map();
    canvas.addEventListener("contextmenu", (e) => e.preventDefault());
    canvas.addEventListener("pointerdown", (e) => {
      canvas.setPointerCapture(e.pointerId);
      held.set(e.pointerId, [e.clientX, e.clientY]);
    });
    for (const kind of ["pointerup", "pointercancel"]) canvas.addEventListener(kind, (e) => held.delete(e.pointerId));
    canvas.addEventListener("pointermove", (e) => {
      const before = held.get(e.pointerId);
      if (!before) return;
      const camera = this.picture.camera;
      const [dx, dy] = [e.clientX - before[0], e.clientY - before[1]];
      if (held.size === 1) {
        if (e.shiftKey || e.buttons & 6) camera.pan(dx, dy);
        else camera.orbit(dx, dy);
      } else if (held.size === 2) {
        const other = [...held].find(([id]) => id !== e.pointerId)[1];
        const gap = (p) => Math.hypot(p[0] - other[0], p[1] - other[1]) || 1;
        camera.zoom(gap(before) / gap([e.clientX, e.clientY]));
        camera.pan(dx / 2, dy / 2);
      }
      held.set(e.pointerId, [e.clientX, e.clientY]);
      this.draw();
    });
    canvas.addEventListener("wheel", (e) => {
      e.preventDefault();
      this.picture.camera.zoom(Math.exp(Math.max(-0.3, Math.min(0.3, e.deltaY * 0.0015))));
      this.draw();
    }, { passive: false });
    canvas.addEventListener("dblclick", () => this.reset());
  }

  reset() {
    if (this.picture) this.picture.reset();
    this.draw();
  }

  bar() {
    const bar = make("div", this.root, "bar");
    this.button = make("button", bar, "play", "Play");
    this.button.addEventListener("click", () => this.toggle());
    const track = make("div", bar, "track");
    this.slider = make("input", track);
    Object.assign(this.slider, { type: "range", min: 0, max: 1, step: "any", value: 0 });
    this.slider.setAttribute("aria-label", "time");
    this.slider.addEventListener("input", () => this.seek(this.data.begin + this.slider.value * this.duration));
    for (const mark of this.data.marks) {
      const tick = make("i", track, mark.label[0] === "×" ? "crossing" : "");
      tick.style.left = `${this.duration > 0 ? ((mark.t - this.data.begin) / this.duration) * 100 : 0}%`;
      tick.title = `${mark.label}: ${mark.text}`;
    }
    this.clock = make("span", bar, "clock");
    const speed = make("select", bar);
    speed.setAttribute("aria-label", "speed");
    for (const factor of [0.1, 0.25, 0.5, 1, 2, 4]) {
      const option = make("option", speed, "", `× ${plain(factor * this.data.speed)}`);
      Object.assign(option, { value: factor * this.data.speed, selected: factor === 1 });
    }
    speed.addEventListener("change", () => (this.speed = Number(speed.value)));
    this.loop = this.check(bar, "loop", true);
    if (!this.picture) return;
    const names = this.check(bar, "names", false);
    names.addEventListener("change", () => {
      this.picture.names = names.checked;
      this.draw();
    });
    make("button", bar, "", "Reset view").addEventListener("click", () => this.reset());
  }

  check(parent, text, on) {
    const label = make("label", parent);
    const box = make("input", label);
    Object.assign(box, { type: "checkbox", checked: on });
    label.append(` ${text}`);
    return box;
  }

  marks() {
    if (!this.data.marks.length) return;
    const row = make("div", this.root, "marks");
    for (const mark of this.data.marks.slice(0, 200)) {
      const button = make("button", row, mark.label[0] === "×" ? "crossing" : "", `${mark.label} at ${plain(mark.t)} s`);
      button.title = mark.text;
      button.addEventListener("click", () => this.seek(mark.t));
    }
  }

  side() {
    const side = make("div", this.root, "side");
    const titles = this.data.curves.map((c) => c.title);
    const wanted = [titles[0], "energies", "loop error"].map((t) => titles.indexOf(t)).filter((k) => k >= 0);
    this.plots = wanted.map((first) => {
      const box = make("div", side, "plot");
      const select = make("select", box);
      select.setAttribute("aria-label", "curves");
      this.data.curves.forEach((c, k) => {
        const option = make("option", select, "", c.unit ? `${c.title} [${c.unit}]` : c.title);
        Object.assign(option, { value: k, selected: k === first });
      });
      const canvas = make("canvas", box);
      const row = make("div", box, "legend");
      const note = make("div", box, "note");
      const plot = new Plot(canvas, this.data.begin, this.duration, this.data.marks);
      plot.row = row;
      const show = (k) => {
        plot.show(this.data.curves[k]);
        note.textContent = plot.curve.note;
        this.legend(plot);
        this.resize();
      };
      select.addEventListener("change", () => show(Number(select.value)));
      const scrub = (e) => e.buttons && this.seek(plot.time(e.offsetX));
      canvas.addEventListener("pointerdown", scrub);
      canvas.addEventListener("pointermove", scrub);
      plot.start = () => show(first);
      return plot;
    });
    for (const plot of this.plots) plot.start();
  }

  legend(plot) {
    const row = plot.row;
    row.replaceChildren();
    plot.values = plot.curve.series.map((series) => {
      const button = make("button", row);
      make("i", button).style.background = series.colour;
      button.append(`${series.name} `);
      button.setAttribute("aria-pressed", series.on);
      button.addEventListener("click", () => {
        series.on = !series.on;
        for (const other of this.plots) if (other.curve === plot.curve) other.dirty = true;
        button.setAttribute("aria-pressed", series.on);
        this.draw();
      });
      return [series, make("span", button)];
    });
  }

  keys() {
    const alone = document.body.classList.contains("alone");
    (alone ? document : this.root).addEventListener("keydown", (e) => {
      if (e.target.tagName === "SELECT" || e.ctrlKey || e.altKey || e.metaKey) return;
      if (e.key === " " && e.target.tagName === "BUTTON") return;
      const step = (e.shiftKey ? 10 : 1) * (this.duration / Math.max((this.data.frames || 301) - 1, 1));
      const actions = {
        " ": () => this.toggle(), ArrowLeft: () => this.seek(this.time - step), ArrowRight: () => this.seek(this.time + step),
        Home: () => this.seek(this.data.begin), End: () => this.seek(this.data.end), r: () => this.reset(),
      };
      if (!actions[e.key]) return;
      e.preventDefault();
      actions[e.key]();
    });
    // a button that was clicked must not take the space bar from play and pause
    this.root.addEventListener("click", (e) => e.detail && e.target.tagName === "BUTTON" && e.target.blur());
  }

  // colours of the page's style, light or dark
  look() {
    const style = getComputedStyle(this.root);
    this.theme = Object.fromEntries(THEME.map((name) => [name, style.getPropertyValue(`--${name}`).trim()]));
    this.theme.jointEdge = style.getPropertyValue("--joint-edge").trim();
    const dark = window.matchMedia("(prefers-color-scheme: dark)").matches;
    for (const series of this.data.curves.flatMap((curve) => curve.series)) {
      series.colour = dark ? shade(series.plain, 1.35) : series.plain;
    }
    for (const plot of this.plots) {
      plot.dirty = true;
      this.legend(plot);
    }
    this.draw();
  }

  resize() {
    if (this.picture) this.picture.resize();
    for (const plot of this.plots || []) plot.resize();
    this.draw();
  }

  // #t=0.5 in the address: stand still at that time; otherwise play
  hash() {
    const found = /[#&]t=([-+.\deE]+)/.exec(window.location.hash);
    const still = window.matchMedia("(prefers-reduced-motion: reduce)").matches;
    if (found) {
      this.pause();
      this.seek(Number(found[1]));
    } else if (document.body.classList.contains("alone") && !still && this.picture) this.play();
  }

  toggle() {
    if (this.playing) this.pause();
    else this.play();
  }

  play() {
    if (this.playing || this.duration <= 0) return;
    if (this.time >= this.data.end) this.time = this.data.begin;
    this.playing = true;
    this.button.textContent = "Pause";
    let before = null;
    const tick = (now) => {
      if (!this.playing) return;
      const passed = before === null ? 0 : Math.min((now - before) / 1000, 0.2);
      before = now;
      let next = this.time + passed * this.speed;
      if (next >= this.data.end) {
        if (this.loop.checked) next = this.data.begin;
        else this.pause();
      }
      this.seek(next);
      requestAnimationFrame(tick);
    };
    requestAnimationFrame(tick);
  }

  pause() {
    this.playing = false;
    this.button.textContent = "Play";
  }

  seek(time) {
    this.time = Math.min(Math.max(time, this.data.begin), this.data.end);
    this.draw();
  }

  draw() {
    if (!this.theme) return;
    const { time, theme } = this;
    if (this.picture && this.picture.ratio) this.root.dataset.items = this.picture.draw(time, theme);
    for (const plot of this.plots) {
      plot.draw(time, theme);
      for (const [series, node] of plot.values) {
        node.textContent = series.on ? plain(plot.value(series, time)) : "";
      }
    }
    this.slider.value = this.duration > 0 ? (time - this.data.begin) / this.duration : 0;
    this.clock.textContent = `${time.toFixed(this.duration < 1 ? 4 : 2)} / ${plain(this.data.end)} s`;
    this.root.dataset.time = time;
  }
}

// for scripts: sarrus.seek(t), sarrus.play(), sarrus.pause(), sarrus.time
window.sarrusViewers = [...document.querySelectorAll(".sarrus")].map((root) => new Viewer(root));
window.sarrus = window.sarrusViewers[0];
