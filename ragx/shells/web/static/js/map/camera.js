/** What of the map is on the screen, and how that changes over time. */

const ZOOM_MS = 70; // time constant of a zoom by wheel or button
const MAX_SCALE = 48;
const FIT_SCALE = 22;

/**
 * A camera looks at the map point (x, y), which lies in the middle of the host; `scale` is in CSS
 * pixels per map unit. The map's y axis points down, as the screen's.
 */
export class Camera {
  constructor() {
    this.x = 0;
    this.y = 0;
    this.scale = 1;
    this.width = 1; // CSS pixels
    this.height = 1;
    this.insets = { left: 0, right: 0, top: 0, bottom: 0 };
    this.box = { minX: -10, minY: -10, maxX: 10, maxY: 10 };
    this.still = false; // jumps instead of flights
    this.flight = null;
    this.zoom = null;
  }

  /** Scale at which the whole map fits. */
  get fitScale() {
    return this.fitting(this.box).scale;
  }

  get view() {
    return { x: this.x, y: this.y, scale: this.scale };
  }

  get moving() {
    return this.flight !== null || this.zoom !== null;
  }

  /** Rectangle of the map on the screen, in map units, widened by `margin` times its size. */
  seen(margin = 0) {
    const w = (this.width / this.scale) * (0.5 + margin);
    const h = (this.height / this.scale) * (0.5 + margin);
    return { minX: this.x - w, minY: this.y - h, maxX: this.x + w, maxY: this.y + h };
  }

  /** Map point under a point of the host, in CSS pixels from its top left. */
  toMap(px, py) {
    return [this.x + (px - this.width / 2) / this.scale, this.y + (py - this.height / 2) / this.scale];
  }

  /** Middle of what panels leave free, in CSS pixels from the host's top left. */
  get middle() {
    const { left, right, top, bottom } = this.insets;
    return [(left + this.width - right) / 2, (top + this.height - bottom) / 2];
  }

  /**
   * The view that shows a rectangle in what panels leave free.
   * @param {{minX: number, minY: number, maxX: number, maxY: number}} box map units
   * @param {{scale?: number, most?: number, pad?: number}} options fixed scale, or its limit; pad in CSS pixels
   */
  fitting(box, { scale, most = FIT_SCALE, pad = 28 } = {}) {
    const { left, right, top, bottom } = this.insets;
    const w = Math.max(60, this.width - left - right - 2 * pad);
    const h = Math.max(60, this.height - top - bottom - 2 * pad);
    const fits = Math.min(w / Math.max(1e-6, box.maxX - box.minX), h / Math.max(1e-6, box.maxY - box.minY));
    const s = Math.min(MAX_SCALE, scale ?? Math.min(most, fits));
    const [mx, my] = this.middle;
    return {
      x: (box.minX + box.maxX) / 2 - (mx - this.width / 2) / s,
      y: (box.minY + box.maxY) / 2 - (my - this.height / 2) / s,
      scale: s,
    };
  }

  /** Jumps to a view; missing or unusable numbers stay as they are. */
  jump({ x, y, scale }) {
    this.stop();
    this.#set(x, y, scale);
  }

  stop() {
    this.flight = null;
    this.zoom = null;
  }

  #set(x, y, scale) {
    if (Number.isFinite(scale) && scale > 0) {
      this.scale = Math.min(MAX_SCALE, Math.max(Math.min(0.45 * this.fitScale, MAX_SCALE), scale));
    }
    // The middle of the screen stays on the map or near it: nobody loses the map.
    const spare = 0.4 * (Math.max(this.width, this.height) / this.scale);
    const { minX, minY, maxX, maxY } = this.box;
    if (Number.isFinite(x)) this.x = Math.min(maxX + spare, Math.max(minX - spare, x));
    if (Number.isFinite(y)) this.y = Math.min(maxY + spare, Math.max(minY - spare, y));
  }

  /** Moves the view by CSS pixels: positive dx shows what lies further right. */
  pan(dx, dy) {
    this.flight = null;
    this.#set(this.x + dx / this.scale, this.y + dy / this.scale);
  }

  /** Zooms so that the map point under (px, py), CSS pixels, stays there; at once or smoothly. */
  zoomAt(factor, px, py, smooth) {
    this.flight = null;
    const from = smooth && this.zoom ? this.zoom.scale : this.scale;
    const scale = Math.min(MAX_SCALE, Math.max(0.45 * this.fitScale, from * factor));
    if (smooth && !this.still) {
      this.zoom = { scale, px, py };
      return;
    }
    this.zoom = null;
    this.#zoomTo(scale, px, py);
  }

  #zoomTo(scale, px, py) {
    const [x, y] = this.toMap(px, py);
    this.#set(x - (px - this.width / 2) / scale, y - (py - this.height / 2) / scale, scale);
  }

  /** Starts a flight to a view, or jumps where motion is unwanted. */
  fly(view, now) {
    this.stop();
    if (this.still) this.jump(view);
    else this.flight = { ...flightPath(this.view, view, Math.hypot(this.width, this.height)), since: now };
  }

  /** Moves on to the time `now`, `dt` after the last frame; both in milliseconds. */
  step(now, dt) {
    if (this.flight) {
      const t = Math.min(1, (now - this.flight.since) / this.flight.duration);
      const eased = t < 0.5 ? 4 * t ** 3 : 1 - (2 - 2 * t) ** 3 / 2;
      const { x, y, scale } = this.flight.at(Math.max(0, eased));
      this.#set(x, y, scale);
      if (t >= 1) this.flight = null;
    } else if (this.zoom) {
      const { scale, px, py } = this.zoom;
      const left = Math.log(scale / this.scale) * Math.exp(-dt / ZOOM_MS);
      const done = Math.abs(left) < 0.002;
      this.#zoomTo(done ? scale : scale / Math.exp(left), px, py);
      if (done) this.zoom = null;
    }
  }
}

/**
 * The way between two views along which speed looks even: out, over, in (van Wijk and Nuij, 2003).
 * @param {{x: number, y: number, scale: number}} from
 * @param {{x: number, y: number, scale: number}} to
 * @param {number} size of the screen in CSS pixels
 * @returns {{duration: number, at: (t: number) => {x: number, y: number, scale: number}}} milliseconds; t from 0 to 1
 */
export function flightPath(from, to, size) {
  const rho = 1.25;
  const w0 = size / from.scale;
  const w1 = size / to.scale;
  const dx = to.x - from.x;
  const dy = to.y - from.y;
  const u = Math.hypot(dx, dy);
  const r = (w, sign) => {
    const b = (w1 * w1 - w0 * w0 + sign * rho ** 4 * u * u) / (2 * w * rho ** 2 * u);
    return Math.log(Math.sqrt(b * b + 1) - b);
  };
  let length;
  let at;
  if (u < 1e-3 * Math.min(w0, w1)) {
    length = Math.abs(Math.log(w1 / w0)) / rho;
    at = (t) => ({ x: from.x + dx * t, y: from.y + dy * t, scale: from.scale * (to.scale / from.scale) ** t });
  } else {
    const r0 = r(w0, 1);
    length = (r(w1, -1) - r0) / rho;
    at = (t) => {
      if (t >= 1) return to;
      const s = rho * t * length + r0;
      const done = (w0 / (rho ** 2 * u)) * (Math.cosh(r0) * Math.tanh(s) - Math.sinh(r0));
      return { x: from.x + done * dx, y: from.y + done * dy, scale: (size / w0) * (Math.cosh(s) / Math.cosh(r0)) };
    };
  }
  return { duration: Math.min(1100, 320 + 260 * length), at };
}
