/** Mouse, pen and fingers on the map: pan, pinch, wheel, click. */

const CLICK_PX = 4; // a press that moves less is a click

export class Pointer {
  /**
   * @param {HTMLElement} surface that takes the events
   * @param {object} on what is to be done, in CSS pixels from the surface's top left:
   *   pan(dx, dy), zoom(factor, x, y, smooth), hover(x, y), leave(), click(x, y, touch), grab(held)
   */
  constructor(surface, on) {
    this.surface = surface;
    this.on = on;
    this.down = new Map();
    this.moved = 0;
    this.stop = new AbortController();
    surface.style.touchAction = "none";
    const listen = (type, act, options = {}) =>
      surface.addEventListener(type, act, { signal: this.stop.signal, ...options });
    listen("pointerdown", (event) => this.#press(event));
    listen("pointermove", (event) => this.#move(event));
    for (const type of ["pointerup", "pointercancel", "lostpointercapture"]) listen(type, (event) => this.#release(event));
    listen("pointerleave", () => this.down.size || on.leave());
    listen("wheel", (event) => this.#wheel(event), { passive: false });
    listen("dblclick", (event) => {
      event.preventDefault();
      on.zoom(event.shiftKey ? 0.5 : 2, ...this.#place(event), true);
    });
  }

  #place(event) {
    const box = this.surface.getBoundingClientRect();
    return [event.clientX - box.left, event.clientY - box.top];
  }

  #press(event) {
    if (event.button > 0 || this.down.size > 1) return;
    this.surface.setPointerCapture?.(event.pointerId);
    if (!this.down.size) this.moved = 0;
    this.down.set(event.pointerId, this.#place(event));
  }

  #move(event) {
    const at = this.#place(event);
    const before = this.down.get(event.pointerId);
    if (!before) {
      if (event.pointerType !== "touch" && !this.down.size) this.on.hover(...at);
      return;
    }
    const [dx, dy] = [at[0] - before[0], at[1] - before[1]];
    if (this.down.size === 1) {
      this.moved = Math.max(this.moved, Math.hypot(dx, dy));
      if (this.moved < CLICK_PX) return; // the place of the press stays: nothing is lost of the way
      this.on.grab(true);
      this.on.pan(-dx, -dy);
    } else {
      const other = [...this.down].find(([id]) => id !== event.pointerId)[1];
      const spread = (p) => Math.max(8, Math.hypot(p[0] - other[0], p[1] - other[1]));
      this.on.pan(-dx / 2, -dy / 2);
      this.on.zoom(spread(at) / spread(before), (at[0] + other[0]) / 2, (at[1] + other[1]) / 2, false);
      this.moved = CLICK_PX; // no click, whatever the fingers do now
    }
    this.down.set(event.pointerId, at);
  }

  #release(event) {
    if (!this.down.delete(event.pointerId) || this.down.size) return;
    this.on.grab(false);
    if (event.type === "pointerup" && this.moved < CLICK_PX) {
      this.on.click(...this.#place(event), event.pointerType === "touch");
    }
  }

  #wheel(event) {
    event.preventDefault();
    // Lines and pages as pixels; a pinch on a touchpad comes as small steps with ctrlKey.
    const unit = [1, 18, 400][event.deltaMode] ?? 1;
    const delta = Math.max(-240, Math.min(240, event.deltaY * unit));
    const factor = Math.exp(-delta * (event.ctrlKey ? 0.01 : 0.0022));
    this.on.zoom(factor, ...this.#place(event), Math.abs(delta) > 30);
  }

  destroy() {
    this.stop.abort();
  }
}
