/** Places of the map: under a point of the screen, beside the selected one, round a target. */

import { emptyBox, grow } from "./graph.js";
import { NOTHING, locate } from "./marks.js";

/**
 * The place under (px, py), CSS pixels from the host's top left: a chunk where its dot can be met,
 * or else the file's or the community's disc where that is a shape and not the whole background.
 * @param {object} graph
 * @param {object} camera
 * @param {object} levels
 * @param {Set<number>} lit nodes that are met at any scale
 * @param {boolean} touch fingers need more room
 */
export function pick(graph, camera, levels, lit, px, py, touch = false) {
  const [x, y] = camera.toMap(px, py);
  const { scale } = camera;
  const chunk = (node) => ({ type: "chunk", nodes: [node], files: [], community: -1 });
  let best = -1;
  let least = (touch ? 18 : 10) / scale;
  for (const node of lit) {
    const away = Math.max(0, Math.hypot(graph.x[node] - x, graph.y[node] - y) - graph.size[node]);
    if (away < least) {
      best = node;
      least = away;
    }
  }
  if (best >= 0) return chunk(best);
  if (scale >= 2.6) {
    const node = graph.grid.nearest(x, y, Math.max(1.15, (touch ? 12 : 6) / scale));
    if (node >= 0) return chunk(node);
  }
  const most = 0.6 * Math.min(camera.width, camera.height);
  if (levels.files > 0.4) {
    const file = discAt(graph.groups, x, y, 4 / scale, most / scale);
    if (file >= 0) return { type: "file", nodes: [], files: [file], community: -1 };
  }
  const community = discAt(graph.communities, x, y, 3 / scale, (1.2 * most) / scale);
  return community < 0 ? NOTHING : { type: "community", nodes: [], files: [], community };
}

function discAt({ count, x, y, radius }, px, py, least, most) {
  for (let k = 0; k < count; k += 1) {
    const r = radius[k];
    if (r >= least && r <= most && (x[k] - px) ** 2 + (y[k] - py) ** 2 <= r * r) return k;
  }
  return -1;
}

const DIRECTIONS = { left: [-1, 0], right: [1, 0], up: [0, -1], down: [0, 1] };

/**
 * Of some points, the one that lies most in a direction: at most 60 degrees off, and rather near.
 * @param {number[]} from [x, y] map units
 * @param {Iterable<{place: number, x: number, y: number}>} points
 * @param {"left"|"right"|"up"|"down"} direction
 * @returns {number} its place, or -1
 */
function mostIn(from, points, direction) {
  const way = DIRECTIONS[direction];
  if (!way) return -1;
  const ahead = [];
  for (const { place, x, y } of points) {
    const away = Math.hypot(x - from[0], y - from[1]);
    const cosine = away > 0 ? ((x - from[0]) * way[0] + (y - from[1]) * way[1]) / away : 0;
    if (cosine > 0.5) ahead.push({ place, away, cosine });
  }
  const nearest = Math.min(...ahead.map(({ away }) => away));
  let best = -1;
  let most = -Infinity;
  for (const { place, away, cosine } of ahead) {
    const value = cosine - 0.12 * Math.log2(away / nearest);
    if (value > most) {
      most = value;
      best = place;
    }
  }
  return best;
}

/** Nodes that edges of the drawn kinds join to a node. */
function* joinedNodes(graph, node, mask) {
  for (let k = graph.start[node]; k < graph.start[node + 1]; k += 1) {
    const e = graph.incident[k];
    if (!((mask >> graph.kind[e]) & 1)) continue;
    const place = graph.source[e] === node ? graph.target[e] : graph.source[e];
    yield { place, x: graph.x[place], y: graph.y[place] };
  }
}

/** Discs that links (of `sumLinks`) join to one of them. */
function* joinedDiscs(discs, links, one) {
  for (let k = 0; k < links.count; k += 1) {
    if (links.a[k] !== one && links.b[k] !== one) continue;
    const place = links.a[k] === one ? links.b[k] : links.a[k];
    yield { place, x: discs.x[place], y: discs.y[place] };
  }
}

/**
 * What is joined to a place and lies most in a direction, as a place; NOTHING where nothing does.
 * @param {object} graph
 * @param {object} selected place of a chunk, file or community
 * @param {{communities: object, files: object}} links of `sumLinks`
 * @param {number} mask kinds that count
 * @param {"left"|"right"|"up"|"down"} direction
 */
export function besides(graph, selected, links, mask, direction) {
  const { type, nodes, files, community } = selected;
  let found = -1;
  if (type === "chunk") {
    const [node] = nodes;
    found = mostIn([graph.x[node], graph.y[node]], joinedNodes(graph, node, mask), direction);
  } else if (type) {
    const file = type === "file";
    const discs = file ? graph.groups : graph.communities;
    const one = file ? files[0] : community;
    const joined = joinedDiscs(discs, file ? links.files : links.communities, one);
    found = mostIn([discs.x[one], discs.y[one]], joined, direction);
  }
  if (found < 0) return NOTHING;
  return { type, nodes: [found], files: [found], community: found };
}

/**
 * Rectangle round a target or round the chunks of `ids`, in map units.
 * @returns {{box: object, count: number, single: boolean}} count 0: nothing of it is on the map; single: one chunk
 */
export function boxOfTarget(graph, target) {
  const place = target?.ids ? NOTHING : locate(graph, target);
  const nodes = target?.ids ? target.ids.map((id) => graph.nodeAt(id)).filter((node) => node >= 0) : place.nodes;
  const box = emptyBox();
  for (const node of nodes) grow(box, graph.x[node], graph.y[node], 4);
  for (const k of place.files) grow(box, graph.groups.x[k], graph.groups.y[k], graph.groups.radius[k] + 2);
  if (place.community >= 0) {
    const { x, y, radius } = graph.communities;
    grow(box, x[place.community], y[place.community], 1.06 * radius[place.community] + 2);
  }
  const count = nodes.length + place.files.length + (place.community >= 0 ? 1 : 0);
  return { box, count, single: nodes.length === 1 };
}
