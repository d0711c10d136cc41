/** A `ragx.graph.v1` document as typed arrays: what the map draws, without strings in the way. */

import { EDGE_KINDS } from "./color.js";
import { Grid } from "./grid.js";

/** Discs of one level. `color` is the row in the palette: the place of the community, or the last. */
function discs(count) {
  return {
    count,
    x: new Float32Array(count),
    y: new Float32Array(count),
    radius: new Float32Array(count),
    size: new Uint32Array(count),
    color: new Uint16Array(count),
  };
}

const finite = (value, otherwise = 0) => (Number.isFinite(value) ? value : otherwise);

/**
 * Reads a document; nodes met twice, edges with an unknown end or kind and loops are left out.
 *
 * Result, for n nodes, m edges (heaviest first), g groups (a file's chunks in one community) and
 * c communities: `nodes` (n objects of the document), `x`, `y` (n, map units), `size` (n, radius of
 * the dot: 0.7 to 1, larger with degree), `color`, `group`, `community` (n; -1 for none),
 * `source`, `target` (m, places of nodes), `weight`, `kind` (m), `start` (n + 1) and `incident`
 * (2m): edges of node i are `incident[start[i]..start[i + 1]]`; `groups`, `communities`: discs.
 * @param {object} doc ragx.graph.v1
 */
export function readGraph(doc) {
  const at = new Map();
  const nodes = [];
  for (const node of doc?.nodes ?? []) {
    if (node == null || at.has(node.id)) continue;
    at.set(node.id, nodes.length);
    nodes.push(node);
  }
  const given = (doc?.communities ?? []).filter(Boolean);
  const communityAt = new Map(given.map((one, place) => [one.community_id, place]));
  const none = given.length; // the palette's last colour: of chunks in no community
  const communities = Object.assign(discs(given.length), { items: given });
  given.forEach((one, place) => {
    fill(communities, place, one);
    communities.color[place] = place;
  });

  const groupItems = (doc?.groups ?? []).filter(Boolean);
  const groups = Object.assign(discs(groupItems.length), { items: groupItems });
  const groupAt = new Map();
  groups.community = new Int32Array(groupItems.length);
  groupItems.forEach((one, place) => {
    fill(groups, place, one);
    groups.community[place] = communityAt.get(one.community) ?? -1;
    groups.color[place] = communityAt.get(one.community) ?? none;
    if (!groupAt.has(one.file)) groupAt.set(one.file, new Map());
    groupAt.get(one.file).set(one.community ?? null, place);
  });

  const n = nodes.length;
  const graph = {
    n,
    nodes,
    x: new Float32Array(n),
    y: new Float32Array(n),
    size: new Float32Array(n),
    color: new Uint16Array(n),
    group: new Int32Array(n).fill(-1),
    community: new Int32Array(n).fill(-1),
    groups,
    communities,
    groupAt,
    communityAt,
  };
  nodes.forEach((node, i) => {
    graph.x[i] = finite(node.x);
    graph.y[i] = finite(node.y);
    graph.community[i] = communityAt.get(node.community) ?? -1;
    graph.color[i] = communityAt.get(node.community) ?? none;
    graph.group[i] = groupAt.get(node.file)?.get(node.community ?? null) ?? -1;
  });
  graph.nodeAt = (id) => at.get(id) ?? at.get(Number(id)) ?? -1;
  readEdges(graph, doc, at);
  sizeDots(graph);
  graph.box = boxOf(graph);
  graph.grid = new Grid(graph.x, graph.y, graph.box);
  return graph;
}

function fill(disc, place, one) {
  disc.x[place] = finite(one.x);
  disc.y[place] = finite(one.y);
  disc.radius[place] = Math.max(0, finite(one.radius));
  disc.size[place] = Math.max(0, finite(one.size));
}

function readEdges(graph, doc, at) {
  const edges = doc?.edges ?? [];
  const kinds = doc?.edge_kinds ?? [];
  const codes = new Map(EDGE_KINDS.map((kind, code) => [kind, code]));
  const source = new Uint32Array(edges.length);
  const target = new Uint32Array(edges.length);
  const weight = new Float32Array(edges.length);
  const kind = new Uint8Array(edges.length);
  let m = 0;
  let sorted = true;
  for (let e = 0; e < edges.length; e += 1) {
    const a = at.get(edges[e]?.[0]);
    const b = at.get(edges[e]?.[1]);
    const code = codes.get(kinds[e]);
    if (a === undefined || b === undefined || code === undefined || a === b) continue;
    source[m] = a;
    target[m] = b;
    weight[m] = Math.min(1, Math.max(0, finite(edges[e][2])));
    kind[m] = code;
    sorted &&= m === 0 || weight[m - 1] >= weight[m];
    m += 1;
  }
  let order = null;
  if (!sorted) order = Uint32Array.from({ length: m }, (_, e) => e).sort((a, b) => weight[b] - weight[a] || a - b);
  const put = (values) => (order ? values.constructor.from(order, (e) => values[e]) : values.subarray(0, m));
  graph.m = m;
  graph.source = put(source);
  graph.target = put(target);
  graph.weight = put(weight);
  graph.kind = put(kind);

  graph.start = new Uint32Array(graph.n + 1);
  for (let e = 0; e < m; e += 1) {
    graph.start[graph.source[e] + 1] += 1;
    graph.start[graph.target[e] + 1] += 1;
  }
  for (let i = 0; i < graph.n; i += 1) graph.start[i + 1] += graph.start[i];
  graph.incident = new Uint32Array(2 * m);
  const next = graph.start.slice();
  for (let e = 0; e < m; e += 1) {
    graph.incident[next[graph.source[e]]++] = e;
    graph.incident[next[graph.target[e]]++] = e;
  }
}

function sizeDots(graph) {
  let most = 1;
  for (const node of graph.nodes) most = Math.max(most, finite(node.degree));
  graph.nodes.forEach((node, i) => {
    graph.size[i] = 0.7 + 0.3 * (Math.log1p(Math.max(0, finite(node.degree))) / Math.log1p(most));
  });
}

/** The least rectangle round all dots and discs, in map units. */
function boxOf(graph) {
  const box = emptyBox();
  for (let i = 0; i < graph.n; i += 1) grow(box, graph.x[i], graph.y[i], 1.5);
  for (const level of [graph.groups, graph.communities]) {
    for (let k = 0; k < level.count; k += 1) grow(box, level.x[k], level.y[k], level.radius[k]);
  }
  return box.minX <= box.maxX ? box : { minX: -10, minY: -10, maxX: 10, maxY: 10 };
}

/** A rectangle that holds nothing yet; see `grow`. */
export function emptyBox() {
  return { minX: Infinity, minY: Infinity, maxX: -Infinity, maxY: -Infinity };
}

/** Widens a rectangle so that it holds the disc; map units. */
export function grow(box, x, y, radius) {
  box.minX = Math.min(box.minX, x - radius);
  box.minY = Math.min(box.minY, y - radius);
  box.maxX = Math.max(box.maxX, x + radius);
  box.maxY = Math.max(box.maxY, y + radius);
}
