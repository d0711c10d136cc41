/** Links between sets of nodes: the sums of the edges that join them. */

/**
 * Sums the weights of edges between different sets, strongest first.
 * @param {object} graph of `readGraph`
 * @param {Int32Array} setOf (n,) set of each node, -1 for none
 * @param {number} count of sets
 * @param {number} mask bit k is set where edges of kind k count
 * @returns {{count: number, a: Uint32Array, b: Uint32Array, weight: Float32Array}} a < b
 */
export function sumLinks(graph, setOf, count, mask) {
  const { m, source, target, weight, kind } = graph;
  // Edges by their lower set; then one pass per set adds up what goes to each other set.
  const start = new Uint32Array(count + 1);
  for (let e = 0; e < m; e += 1) {
    const low = lowerSet(setOf[source[e]], setOf[target[e]]);
    if (low >= 0 && (mask >> kind[e]) & 1) start[low + 1] += 1;
  }
  for (let k = 0; k < count; k += 1) start[k + 1] += start[k];
  const total = start[count];
  const far = new Uint32Array(total);
  const share = new Float32Array(total);
  const next = start.slice();
  for (let e = 0; e < m; e += 1) {
    const p = setOf[source[e]];
    const q = setOf[target[e]];
    const low = lowerSet(p, q);
    if (low < 0 || !((mask >> kind[e]) & 1)) continue;
    far[next[low]] = Math.max(p, q);
    share[next[low]++] = weight[e];
  }
  const a = new Uint32Array(total);
  const b = new Uint32Array(total);
  const sum = new Float64Array(total);
  const slotOf = new Int32Array(count).fill(-1);
  let links = 0;
  for (let low = 0; low < count; low += 1) {
    const first = links;
    for (let k = start[low]; k < start[low + 1]; k += 1) {
      let slot = slotOf[far[k]];
      if (slot < first) {
        slot = links;
        slotOf[far[k]] = slot;
        a[slot] = low;
        b[slot] = far[k];
        links += 1;
      }
      sum[slot] += share[k];
    }
  }
  // One number holds weight and place: numbers sort much faster than with a comparing function.
  const keys = new Float64Array(links);
  for (let k = 0; k < links; k += 1) keys[k] = -Math.round(sum[k] * 1024) * 4194304 + k;
  keys.sort();
  const out = { count: links, a: new Uint32Array(links), b: new Uint32Array(links), weight: new Float32Array(links) };
  for (let k = 0; k < links; k += 1) {
    const slot = ((keys[k] % 4194304) + 4194304) % 4194304;
    out.a[k] = a[slot];
    out.b[k] = b[slot];
    out.weight[k] = sum[slot];
  }
  return out;
}

function lowerSet(p, q) {
  return p < 0 || q < 0 || p === q ? -1 : Math.min(p, q);
}
