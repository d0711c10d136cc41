/** Points in square cells, to find those near to a place without looking at all. */
export class Grid {
  /**
   * @param {Float32Array} x (n,) map units
   * @param {Float32Array} y (n,) map units
   * @param {{minX: number, minY: number, maxX: number, maxY: number}} box that holds all points
   */
  constructor(x, y, box) {
    const n = x.length;
    this.x = x;
    this.y = y;
    this.minX = box.minX;
    this.minY = box.minY;
    const width = Math.max(1, box.maxX - box.minX);
    const height = Math.max(1, box.maxY - box.minY);
    this.cell = Math.max(4, Math.sqrt((width * height) / Math.max(1, n)) * 1.5);
    this.columns = Math.min(2048, Math.floor(width / this.cell) + 1);
    this.rows = Math.min(2048, Math.floor(height / this.cell) + 1);
    this.start = new Uint32Array(this.columns * this.rows + 1);
    this.order = new Uint32Array(n);
    const cellOf = new Uint32Array(n);
    for (let i = 0; i < n; i += 1) {
      cellOf[i] = this.#row(y[i]) * this.columns + this.#column(x[i]);
      this.start[cellOf[i] + 1] += 1;
    }
    for (let c = 0; c < this.columns * this.rows; c += 1) this.start[c + 1] += this.start[c];
    const next = this.start.slice();
    for (let i = 0; i < n; i += 1) this.order[next[cellOf[i]]++] = i;
  }

  #column(x) {
    return Math.max(0, Math.min(this.columns - 1, Math.floor((x - this.minX) / this.cell)));
  }

  #row(y) {
    return Math.max(0, Math.min(this.rows - 1, Math.floor((y - this.minY) / this.cell)));
  }

  /**
   * Calls `visit(index)` for the points in the rectangle (map units) and some beside it.
   * @param {{minX: number, minY: number, maxX: number, maxY: number}} box
   * @param {(index: number) => void} visit
   */
  visit(box, visit) {
    const left = this.#column(box.minX);
    const right = this.#column(box.maxX);
    const bottom = this.#row(box.maxY);
    for (let row = this.#row(box.minY); row <= bottom; row += 1) {
      const from = this.start[row * this.columns + left];
      const to = this.start[row * this.columns + right + 1];
      for (let k = from; k < to; k += 1) visit(this.order[k]);
    }
  }

  /** Index of the point nearest to (x, y) within `reach` map units, or -1. */
  nearest(x, y, reach) {
    let best = -1;
    let least = reach * reach;
    this.visit({ minX: x - reach, minY: y - reach, maxX: x + reach, maxY: y + reach }, (i) => {
      const square = (this.x[i] - x) ** 2 + (this.y[i] - y) ** 2;
      if (square <= least) {
        least = square;
        best = i;
      }
    });
    return best;
  }
}
