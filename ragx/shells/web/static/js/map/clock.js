/** Frames on demand: an idle map asks for none. Keeps how long the script of each took. */

const KEPT = 200;

export class Clock {
  /** @param {(now: number, dt: number) => boolean} frame draws; true asks for another; milliseconds */
  constructor(frame) {
    this.frame = frame;
    this.pending = 0;
    this.last = 0;
    this.frames = 0;
    this.took = new Float32Array(KEPT);
  }

  request() {
    if (!this.pending) this.pending = requestAnimationFrame((now) => this.run(now));
  }

  /** Runs a frame now, also outside of the browser's own time for it. */
  run(now = performance.now()) {
    cancelAnimationFrame(this.pending);
    this.pending = 0;
    const begin = performance.now();
    const dt = Math.min(64, Math.max(0, now - this.last)) || 16;
    this.last = now;
    const more = this.frame(now, dt);
    this.took[this.frames % KEPT] = performance.now() - begin;
    this.frames += 1;
    if (more) this.request();
  }

  /** Script time of the last 200 frames, in milliseconds. @returns {{last: number, max: number, p95: number}} */
  get scriptMs() {
    const count = Math.min(this.frames, KEPT);
    if (!count) return { last: 0, max: 0, p95: 0 };
    const sorted = this.took.slice(0, count).sort();
    return {
      last: this.took[(this.frames - 1) % KEPT],
      max: sorted[count - 1],
      p95: sorted[Math.min(count - 1, Math.floor(count * 0.95))],
    };
  }

  stop() {
    cancelAnimationFrame(this.pending);
    this.pending = 0;
  }
}

const SLOW_MS = 34;
const FAST_MS = 21;
const REST_MS = 140;

/**
 * How many lines are drawn while the view moves: fewer where pictures come too slowly, as without
 * graphics hardware; the heaviest come first. When the view rests, all are.
 */
export class Pace {
  /** @param {boolean} software whether there is no graphics hardware */
  constructor(software) {
    this.lines = software ? 2000 : 20000;
    this.before = -Infinity;
    this.apart = 16; // milliseconds between pictures of one movement, smoothed
  }

  /** @returns {number} most lines in the picture at `now`, milliseconds; Infinity at rest */
  most(now, moved) {
    const apart = now - this.before;
    if (moved) {
      this.before = now;
      if (apart < 1000) {
        this.apart += (apart - this.apart) * 0.3;
        if (this.apart > SLOW_MS) this.lines = Math.max(400, this.lines * Math.max(0.4, SLOW_MS / this.apart));
        else if (this.apart < FAST_MS) this.lines = Math.min(20000, this.lines * 1.1);
      }
    }
    return (moved || apart < REST_MS) && this.lines < 20000 ? this.lines : Infinity;
  }
}
