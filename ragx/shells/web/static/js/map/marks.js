/** What stands out of the map: found, selected, pointed at, and the ways between. */

import { EDGE_KINDS, kindRgb } from "./color.js";

const STRONG_LINES = 600;

/** No place on the map. */
export const NOTHING = Object.freeze({ type: null, nodes: [], files: [], community: -1 });

/**
 * Finds a target of the page on the map.
 * @param {object} graph of `readGraph`
 * @param {{type: string, id?: number, file?: string, community?: number}|null} target
 * @returns {{type: string|null, nodes: number[], files: number[], community: number}} places; NOTHING for what is not there
 */
export function locate(graph, target) {
  if (!graph || !target) return NOTHING;
  if (target.type === "chunk") {
    const node = graph.nodeAt(target.id);
    return node < 0 ? NOTHING : { type: "chunk", nodes: [node], files: [], community: -1 };
  }
  if (target.type === "file") {
    const groups = graph.groupAt.get(target.file);
    if (!groups) return NOTHING;
    const one = target.community == null ? undefined : groups.get(target.community);
    return { type: "file", nodes: [], files: one === undefined ? [...groups.values()] : [one], community: -1 };
  }
  const community = graph.communityAt.get(target.id) ?? -1;
  return target.type !== "community" || community < 0 ? NOTHING : { type: "community", nodes: [], files: [], community };
}

/**
 * What is lit, as places on the map; what is not on it is left out.
 * @param {object} graph
 * @param {{hits?: object[], path?: number[], steps?: object[]}|null} lit as given by the page
 */
export function locateLit(graph, lit) {
  if (!graph || !lit) return null;
  const hits = (lit.hits ?? [])
    .map(({ id, rank }) => ({ node: graph.nodeAt(id), rank }))
    .filter(({ node }) => node >= 0);
  const path = (lit.path ?? []).map((id) => graph.nodeAt(id));
  const ways = [];
  for (let k = 0; k + 1 < path.length; k += 1) {
    const [from, to] = [path[k], path[k + 1]];
    if (from < 0 || to < 0 || from === to) continue;
    const [p, q] = [lit.path[k], lit.path[k + 1]];
    const joins = ({ source, target }) => (source === p && target === q) || (source === q && target === p);
    const step = lit.steps?.[k] && joins(lit.steps[k]) ? lit.steps[k] : lit.steps?.find(joins);
    ways.push({ from, to, kind: step?.kind });
  }
  return { hits, path: path.filter((node) => node >= 0), ways };
}

/**
 * Everything that is drawn on top, from the state of the map.
 * @param {object} graph
 * @param {object} theme of `readTheme`
 * @param {{selected: object, hovered: object, lit: object|null, mask: number}} state places (`locate`, `locateLit`)
 * @returns {{rings: object[], dots: number[], ways: object[], lines: Uint32Array, named: Map<number, number>, badges: object[]}}
 *   `named`: nodes with a label of their own, with its priority; `badges`: ranks to be shown
 */
export function marksOf(graph, theme, { selected, hovered, lit, mask }) {
  const rings = [];
  const dots = new Set();
  const named = new Map();
  const name = (node, priority) => named.set(node, Math.max(priority, named.get(node) ?? 0));
  const ring = (disc, least, away, width, rgb, alpha) =>
    rings.push({ disc, ring: [least, away, width], tint: [...rgb, alpha] });
  const dot = (i) => [graph.x[i], graph.y[i], graph.size[i]];
  const fileDisc = (k) => [graph.groups.x[k], graph.groups.y[k], graph.groups.radius[k]];
  const badges = [];

  for (const { node, rank } of [...(lit?.hits ?? [])].sort((p, q) => q.rank - p.rank)) {
    const first = rank <= 10;
    ring(dot(node), first ? 5.5 : 4, 3, first ? 2.2 : 1.5, theme.accent, first ? 1 : 0.75);
    dots.add(node);
    if (first) badges.push({ node, rank });
    name(node, first ? 60 - rank : 20);
  }
  badges.reverse();
  lit?.path.forEach((node) => {
    ring(dot(node), 5.5, 3, 2.2, theme.accent, 1);
    dots.add(node);
    name(node, 80);
  });
  const ways = (lit?.ways ?? []).map(({ from, to, kind }) => {
    const rgb = kind === undefined ? theme.accent : kindRgb(kind, theme.dark);
    const size = [graph.size[from], graph.size[to]];
    return {
      ends: [graph.x[from], graph.y[from], graph.x[to], graph.y[to]],
      trim: [...size, 4.5, 5.5],
      from: [...rgb, 1],
      to: [...rgb, 1],
      shape: [4, 0.16, 15, 0],
      of: [-1, -1, 0, 0],
    };
  });

  const lines = [];
  const addLines = (node, far) => {
    for (let k = graph.start[node]; k < graph.start[node + 1] && lines.length < 2 * STRONG_LINES; k += 1) {
      const e = graph.incident[k];
      if (!((mask >> graph.kind[e]) & 1)) continue;
      const other = graph.source[e] === node ? graph.target[e] : graph.source[e];
      if (!far(other)) continue;
      lines.push(e, (graph.kind[e] << 8) | Math.round(graph.weight[e] * 255));
      dots.add(other);
    }
  };
  const everywhere = () => true;
  for (const [place, strong] of [[hovered, false], [selected, true]]) {
    const [width, alpha] = strong ? [2.6, 1] : [1.4, 0.8];
    for (const node of place.nodes) {
      addLines(node, everywhere);
      dots.add(node);
      ring(dot(node), strong ? 8.5 : 6, strong ? 6 : 3, width, theme.ink, alpha);
      name(node, strong ? 99 : 100);
    }
    for (const file of place.files) {
      ring(fileDisc(file), 5, 1, width, theme.ink, alpha);
      if (!strong) continue;
      graph.grid.visit(boxRound(fileDisc(file)), (node) => {
        if (graph.group[node] === file) addLines(node, (other) => graph.group[other] !== file);
      });
    }
    if (place.community >= 0 && strong) {
      const { x, y, radius } = graph.communities;
      const c = place.community;
      ring([x[c], y[c], radius[c]], 6, 1.5, width, theme.ink, alpha);
    }
  }
  return { rings, dots: [...dots], ways, lines: Uint32Array.from(lines), named, badges };
}

function boxRound([x, y, radius]) {
  return { minX: x - radius, minY: y - radius, maxX: x + radius, maxY: y + radius };
}

/** The target that callbacks get for places found by `pick`. */
export function targetOf(graph, place) {
  if (place.type === "chunk") {
    const node = graph.nodes[place.nodes[0]];
    return { type: "chunk", id: node.id, label: node.label ?? "" };
  }
  if (place.type === "file") {
    const one = graph.groups.items[place.files[0]];
    return { type: "file", file: one.file, community: one.community ?? null, label: one.file };
  }
  if (place.type === "community") {
    const one = graph.communities.items[place.community];
    return { type: "community", id: one.community_id, community: one.community_id, label: one.label ?? "" };
  }
  return null;
}

/** Bits of the kinds that are drawn. @param {Iterable<string>} kinds */
export function maskOf(kinds) {
  const wanted = new Set(kinds);
  return EDGE_KINDS.reduce((mask, kind, code) => (wanted.has(kind) ? mask | (1 << code) : mask), 0);
}
