/** Labels on a 2D canvas over the map: greedy, without collisions, fading in and out. */

import { toHex } from "./color.js";
import { Names } from "./names.js";
import { Measure } from "./text.js";

const MOST = 80;
const TRIED = 500;
const FADE_MS = 160;
const BADGE_PX = 8;

export class Labels {
  /** @param {HTMLCanvasElement} canvas */
  constructor(canvas) {
    this.canvas = canvas;
    this.context = canvas.getContext("2d");
    this.measure = new Measure(this.context);
    this.shown = new Map();
    this.badges = [];
  }

  setGraph(graph) {
    this.graph = graph;
    this.names = new Names(graph);
    this.shown.clear();
    this.badges = [];
  }

  setTheme(theme) {
    this.theme = Object.fromEntries(["bg", "ink", "muted", "accent"].map((name) => [name, toHex(theme[name])]));
    this.font = theme.font;
    this.measure.widths.clear();
    this.shown.clear();
  }

  get count() {
    let count = 0;
    for (const label of this.shown.values()) count += label.goal > 0 ? 1 : 0;
    return count;
  }

  /** Chooses the labels of a view: the most wanted first, each where no other one is. */
  choose(camera, levels, marks, lit) {
    const taken = [];
    const free = (box) => {
      for (const other of taken) {
        if (box[0] < other[2] && box[2] > other[0] && box[1] < other[3] && box[3] > other[1]) return false;
      }
      taken.push(box);
      return true;
    };
    this.badges = marks.badges.filter(({ node }) => {
      const [px, py] = this.#badgeAt(camera, node);
      return free([px - BADGE_PX, py - BADGE_PX, px + BADGE_PX, py + BADGE_PX]);
    });

    const wanted = this.names.wanted(camera, levels, marks, lit);
    // What is shown already gives way only to what is clearly more wanted: labels do not flicker.
    for (const one of wanted) if (one.priority < 1e9 && (this.shown.get(one.key)?.goal ?? 0) > 0) one.priority *= 1.15;
    wanted.sort((p, q) => q.priority - p.priority);
    const chosen = new Set();
    for (const one of wanted.slice(0, TRIED)) {
      if (chosen.size >= MOST) break;
      this.#setLines(one, camera.scale);
      if (!one.lines.length) continue;
      const [px, py] = placeOf(one, camera, levels);
      const [w, h] = [one.width / 2 + 5, one.height / 2 + 2];
      if (px + w < 0 || px - w > camera.width || py + h < 0 || py - h > camera.height) continue;
      if (!free([px - w, py - h, px + w, py + h])) continue;
      chosen.add(one.key);
      const before = this.shown.get(one.key);
      this.shown.set(one.key, { ...one, shade: before?.shade ?? 0, goal: one.alpha });
    }
    for (const [key, label] of this.shown) if (!chosen.has(key)) label.goal = 0;
  }

  #setLines(one, scale) {
    const family = this.font;
    if (one.style === "chunk") one.text = this.names.chunk(one.node);
    one.color = one.style === "file" ? this.theme.muted : this.theme.ink;
    one.font = `${{ topic: 600, file: 500, chunk: 400, named: 600 }[one.style]} ${one.size}px ${family}`;
    one.lines = one.text ? [one.text] : [];
    if (one.style === "topic") {
      const width = Math.min(200, Math.max(112, Math.round((one.radius * scale * 1.8) / 24) * 24));
      one.lines = this.measure.wrap(one.text, one.font, width, 3);
    }
    one.width = Math.max(0, ...one.lines.map((line) => this.measure.width(line, one.font)));
    one.height = one.lines.length * one.size * 1.22;
    if (one.more) {
      one.moreFont = `400 11px ${family}`;
      one.width = Math.max(one.width, this.measure.width(one.more, one.moreFont));
      one.height += 14;
      one.dy += 7;
    }
  }

  #badgeAt(camera, node) {
    const away = Math.max(this.graph.size[node] * camera.scale + 3, 5.5) * 0.72 + 5;
    const px = (this.graph.x[node] - camera.x) * camera.scale + camera.width / 2;
    const py = (this.graph.y[node] - camera.y) * camera.scale + camera.height / 2;
    return [px + away, py - away];
  }

  /**
   * Draws the chosen labels where the view has them now.
   * @param {number} dt milliseconds since the last picture; Infinity where nothing is to fade
   * @returns {boolean} whether labels are still fading
   */
  draw(camera, levels, dpr, dt) {
    const { context, canvas, theme } = this;
    context.setTransform(dpr, 0, 0, dpr, 0, 0);
    context.clearRect(0, 0, canvas.width / dpr, canvas.height / dpr);
    context.textAlign = "center";
    context.textBaseline = "middle";
    context.lineJoin = "round";
    context.direction = "ltr";
    const step = Math.min(1, dt / FADE_MS);
    let fading = false;
    // Crisp when the map rests, smooth when it moves.
    const snap = camera.moving ? (v) => v : (v) => Math.round(v * dpr) / dpr;
    for (const [key, label] of this.shown) {
      const change = label.goal - label.shade;
      label.shade = Math.abs(change) <= step ? label.goal : label.shade + Math.sign(change) * step;
      if (label.shade !== label.goal) fading = true;
      if (label.shade <= 0) {
        if (label.goal <= 0) this.shown.delete(key);
        continue;
      }
      const [px, py] = placeOf(label, camera, levels);
      context.globalAlpha = label.shade * label.shade * (3 - 2 * label.shade);
      const lineHeight = label.size * 1.22;
      let y = py - label.height / 2 + lineHeight / 2;
      for (const line of label.lines) {
        this.#text(line, snap(px), snap(y), label.font, label.color);
        y += lineHeight;
      }
      if (label.more) this.#text(label.more, snap(px), snap(y), label.moreFont, theme.muted);
    }
    context.globalAlpha = 1;
    for (const { node, rank } of this.badges) {
      const [px, py] = this.#badgeAt(camera, node);
      context.beginPath();
      context.arc(px, py, BADGE_PX, 0, 2 * Math.PI);
      context.fillStyle = theme.accent;
      context.fill();
      context.lineWidth = 1.5;
      context.strokeStyle = theme.bg;
      context.stroke();
      context.font = `700 10px ${this.font}`;
      context.fillStyle = theme.bg;
      context.fillText(String(rank), px, py + 0.5);
    }
    return fading;
  }

  #text(text, x, y, font, color) {
    const { context } = this;
    if (context.font !== font) context.font = font;
    context.lineWidth = 3.5;
    context.strokeStyle = this.theme.bg;
    context.strokeText(text, x, y);
    context.fillStyle = color;
    context.fillText(text, x, y);
  }
}

/**
 * Middle of a label on the screen, CSS pixels. A topic's name lies in its disc; where files come
 * forward it rises to the rim, and stays at the edge of the screen as long as the disc reaches there.
 */
function placeOf(label, camera, levels) {
  const { scale } = camera;
  let px = (label.x - camera.x) * scale + camera.width / 2;
  let py = (label.y + label.lift - camera.y) * scale + camera.height / 2 + label.dy;
  if (label.style === "named" || label.style === "chunk" || label.style === "file") {
    return [px, py + (label.lines.length - 1) * label.size * 0.61];
  }
  const r = label.radius * scale;
  const rise = levels.files;
  if (rise > 0) {
    const { left, right, top } = camera.insets;
    const half = label.height / 2;
    const bottom = py + r;
    const highest = top + half + 10;
    py -= rise * (r + half + 3);
    if (py < highest && bottom > highest + 70) py += (highest - py) * rise;
    const [leftmost, rightmost] = [left + label.width / 2 + 12, camera.width - right - label.width / 2 - 12];
    if (leftmost < rightmost) {
      const inside = Math.min(rightmost, Math.max(leftmost, px));
      if (Math.abs(inside - px) < r * 0.8) px += (inside - px) * rise;
    }
  }
  return [px, py];
}
