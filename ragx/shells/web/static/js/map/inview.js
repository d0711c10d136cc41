/** Which edges and links are in view: a pass over typed arrays, heaviest first. */

// Together with the links between files 20,000: what a picture may hold at once.
export const EDGES_DRAWN = 17500;
const FILE_LINKS_DRAWN = 2500;

export class InView {
  constructor() {
    this.edges = new Uint32Array(2 * EDGES_DRAWN); // pairs for `Renderer.setLines`
    this.edgeCount = 0;
    this.fileLinks = new Uint32Array(2 * FILE_LINKS_DRAWN);
    this.fileLinkCount = 0;
  }

  setGraph(graph) {
    this.forget();
    this.graph = graph;
    this.seen = new Uint8Array(graph.n);
    this.seenFiles = new Uint8Array(graph.groups.count);
  }

  /** The next look finds everything anew. */
  forget() {
    this.last = null;
    this.edgeCount = 0;
    this.fileLinkCount = 0;
  }

  /**
   * Gives the renderer the lines in view, where the last answer, which reaches a quarter beyond the
   * screen, does not do any more.
   * @param {object} camera
   * @param {object} levels
   * @param {object} fileLinks of `sumLinks`
   * @param {number} mask kinds that are drawn
   * @param {object} renderer
   */
  look(camera, levels, fileLinks, mask, renderer) {
    const now = camera.seen();
    const wanted = `${levels.near > 0} ${levels.mid > 0}`;
    if (this.last && wanted === this.last.wanted && Math.abs(Math.log2(camera.scale / this.last.scale)) < 0.4) {
      const { minX, minY, maxX, maxY } = this.last.box;
      if (minX <= now.minX && minY <= now.minY && maxX >= now.maxX && maxY >= now.maxY) return;
    }
    const box = camera.seen(0.25);
    this.last = { box, scale: camera.scale, wanted };
    if (levels.near > 0) {
      this.findEdges(box, mask);
      renderer.setLines("edges", this.edges.subarray(0, 2 * this.edgeCount));
    }
    if (levels.mid > 0) {
      this.findFileLinks(box, fileLinks);
      renderer.setLines("fileLinks", this.fileLinks.subarray(0, 2 * this.fileLinkCount));
    }
  }

  /**
   * Lists the heaviest edges with an end in the rectangle; what only passes through joins nothing
   * that can be seen.
   * @param {object} box map units
   * @param {number} mask bit k is set where edges of kind k are drawn
   */
  findEdges(box, mask) {
    const { graph, seen, edges } = this;
    const { source, target, weight, kind, m } = graph;
    markSeen(seen, graph.x, graph.y, box);
    let count = 0;
    for (let e = 0; e < m && count < EDGES_DRAWN; e += 1) {
      if (!(seen[source[e]] | seen[target[e]]) || !((mask >> kind[e]) & 1)) continue;
      edges[2 * count] = e;
      edges[2 * count + 1] = (kind[e] << 8) | Math.round(weight[e] * 255);
      count += 1;
    }
    this.edgeCount = count;
  }

  /** Lists the strongest links (of `sumLinks`, between `graph.groups`) with an end in the rectangle. */
  findFileLinks(box, links) {
    const { graph, seenFiles, fileLinks } = this;
    const { x, y, color } = graph.groups;
    markSeen(seenFiles, x, y, box);
    const most = links.weight[0] || 1;
    let count = 0;
    for (let k = 0; k < links.count && count < FILE_LINKS_DRAWN; k += 1) {
      const a = links.a[k];
      const b = links.b[k];
      if (!(seenFiles[a] | seenFiles[b])) continue;
      const strength = Math.round(Math.sqrt(links.weight[k] / most) * 255);
      fileLinks[2 * count] = k;
      fileLinks[2 * count + 1] = ((color[b] & 4095) << 20) | ((color[a] & 4095) << 8) | strength;
      count += 1;
    }
    this.fileLinkCount = count;
  }
}

function markSeen(seen, x, y, { minX, minY, maxX, maxY }) {
  for (let i = 0; i < seen.length; i += 1) {
    seen[i] = x[i] >= minX && x[i] <= maxX && y[i] >= minY && y[i] <= maxY ? 1 : 0;
  }
}
