/** Which labels could be shown in a view, the with how much. Nothing is measured here. */

import { cleanText } from "./text.js";

const CHUNK_CHARACTERS = 28;
const NAMED_CHARACTERS = 64;
const CROWDED_SCALE = 15; // from which dots leave room for a label between them
const MOST_OF_A_STYLE = 160; // candidates; about half of the most labels will find room

/** Labels of one graph; texts are made once, when they are first wanted. */
export class Names {
  constructor(graph) {
    this.graph = graph;
    this.chunks = new Map();
    this.files = fileNames(graph.groups.items);
    this.topics = graph.communities.items.map((one) => cleanText(one.label, 80));
    this.sides = new Int8Array(graph.n);
    this.largest = Math.max(1, ...graph.communities.size);
  }

  chunk(node, limit = CHUNK_CHARACTERS) {
    const key = node * 128 + limit;
    if (!this.chunks.has(key)) this.chunks.set(key, cleanText(this.graph.nodes[node].label, limit));
    return this.chunks.get(key);
  }

  /** 1 where a chunk's label goes below its dot, -1 for above: where other dots leave room; 2 where none do. */
  side(node) {
    let side = this.sides[node];
    if (!side) {
      const { x, y, grid } = this.graph;
      const [cx, cy] = [x[node], y[node]];
      const taken = { above: false, below: false };
      grid.visit({ minX: cx - 2.6, minY: cy - 2.9, maxX: cx + 2.6, maxY: cy + 2.9 }, (other) => {
        const [dx, dy] = [Math.abs(x[other] - cx), y[other] - cy];
        if (other === node || dx > 2.6 || Math.abs(dy) > 2.9 || Math.abs(dy) < 0.6) return;
        taken[dy > 0 ? "below" : "above"] = true;
      });
      side = !taken.below ? 1 : taken.above ? 2 : -1;
      this.sides[node] = side;
    }
    return side;
  }

  /** Where a chunk stands, in words: "spread.py:56". */
  place(node) {
    const { file, line_start: line, place } = this.graph.nodes[node];
    const name = cleanText(String(file ?? "").split(/[/\\]/u).at(-1), 40);
    return Number.isFinite(line) ? `${name}:${line}` : cleanText(place ? `${name}, ${place}` : name, 60);
  }

  /**
   * Candidates in no order. A label's anchor is (x, y), map units, moved by `lift` map units
   * and `dy` CSS pixels; `style` is "topic", "file", "chunk" or "named".
   * @param {object} camera
   * @param {object} levels
   * @param {object} marks of `marksOf`
   * @param {boolean} lit whether anything is: the rest then steps back
   * @returns {{key: string, style: string, x: number, y: number, radius: number, lift: number, dy: number, text: string, more?: string, size: number, priority: number, alpha: number}[]}
   */
  wanted(camera, levels, marks, lit) {
    const found = [];
    const { graph } = this;
    const { scale } = camera;
    const box = camera.seen(0.04);
    const back = lit ? 0.38 : 1;
    const inBox = (x, y, r) => x + r >= box.minX && x - r <= box.maxX && y + r >= box.minY && y - r <= box.maxY;

    for (const [node, priority] of marks.named) {
      const [x, y] = [graph.x[node], graph.y[node]];
      if (!inBox(x, y, 1) || (priority < 80 && levels.far > 0.9)) continue;
      const exact = priority >= 99;
      const text = this.chunk(node, exact ? NAMED_CHARACTERS : CHUNK_CHARACTERS);
      const away = exact ? 14 : 11;
      found.push({ key: `n${node}`, style: "named", x, y, radius: 1, lift: graph.size[node], dy: away, text, more: exact ? this.place(node) : "", size: 12, priority: 1e9 + priority, alpha: 1 });
    }
    const { communities, groups } = graph;
    for (let k = 0; k < communities.count; k += 1) {
      const [x, y, r] = [communities.x[k], communities.y[k], communities.radius[k]];
      if (communities.size[k] === 1 || !this.topics[k] || r * scale < 9 || !inBox(x, y, r)) continue;
      const share = Math.sqrt(communities.size[k] / this.largest);
      found.push({ key: `c${k}`, style: "topic", x, y, radius: r, lift: 0, dy: 0, text: this.topics[k], size: Math.round(2 * (11 + 6 * share)) / 2, priority: 1e6 + communities.size[k], alpha: back });
    }
    if (levels.files > 0.35) {
      const seen = [];
      for (let k = 0; k < groups.count; k += 1) {
        const r = groups.radius[k];
        if (r * scale >= 8 && inBox(groups.x[k], groups.y[k], r)) seen.push(k);
      }
      for (const k of largest(seen, groups.size, MOST_OF_A_STYLE)) {
        const [x, y, r] = [groups.x[k], groups.y[k], groups.radius[k]];
        found.push({ key: `f${k}`, style: "file", x, y, radius: r, lift: r, dy: 9, text: this.files[k], size: 11.5, priority: 1e4 + groups.size[k], alpha: back });
      }
    }
    if (levels.near > 0.4) {
      const seen = [];
      graph.grid.visit(box, (node) => {
        if (marks.named.has(node) || !inBox(graph.x[node], graph.y[node], 1)) return;
        if (scale >= CROWDED_SCALE || this.side(node) < 2) seen.push(node);
      });
      for (const node of largest(seen, graph.size, MOST_OF_A_STYLE)) {
        const side = Math.min(1, this.side(node));
        const size = graph.size[node];
        found.push({ key: `n${node}`, style: "chunk", x: graph.x[node], y: graph.y[node], radius: 1, lift: side * size, dy: side * 9, text: "", size: 11, priority: 1000 * size, alpha: back, node });
      }
    }
    return found;
  }
}

/** The places with the largest values, at most so many. */
function largest(places, values, most) {
  if (places.length <= most) return places;
  const sorted = Float32Array.from(places, (k) => values[k]).sort();
  const least = sorted[sorted.length - most];
  return places.filter((k) => values[k] >= least).slice(0, 2 * most);
}

/** Short names of files: the last part, and one part more where others are called the same. */
function fileNames(items) {
  const parts = items.map((one) => String(one.file ?? "").split(/[/\\]/u));
  const files = new Map();
  for (const path of parts) {
    const name = path.at(-1);
    if (!files.has(name)) files.set(name, new Set());
    files.get(name).add(path.join("/"));
  }
  return parts.map((path) => cleanText(path.slice(files.get(path.at(-1)).size > 1 ? -2 : -1).join("/"), 34));
}
