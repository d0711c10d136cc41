/** The map, and what it is told: what is lit, selected, flown to. Without WebGL2 there is none. */

import { button, byId, fill, h, icon } from "./dom.js";
import { EDGE_KINDS, GraphMap } from "./map/index.js";
import { kindMark } from "./colors.js";
import { say } from "./live.js";
import { go, noteView, on, patchFor, state } from "./state.js";
import { isDark } from "./theme.js";
import { KINDS, counted } from "./words.js";

const STEP_PX = 90;
const ZOOM = 1.5;
const NOTE_MS = 500;

export let map = null;
let kinds = new Set(EDGE_KINDS);
let noting = 0;
let byHand = false;

export function startMap() {
  try {
    map = new GraphMap(byId("map"), { onSelect: chosen, onHover: hovered, onView: viewed });
  } catch (fault) {
    note(`No map: this browser offers no WebGL2 (${fault.message}). Lists and panels show all that it would.`);
    byId("map").removeAttribute("tabindex");
    byId("tools").querySelector(".zoom").hidden = true;
  }
  fill(byId("zoom-in"), icon("plus"));
  fill(byId("zoom-out"), icon("minus"));
  fill(byId("fit"), icon("fit"));
  byId("zoom-in").addEventListener("click", () => zoom(1));
  byId("zoom-out").addEventListener("click", () => zoom(-1));
  byId("fit").addEventListener("click", () => fit());
  on("shown", (how) => (inset(), relight(), select(), reveal(how)));
  on("answer", (how) => {
    relight();
    select();
    if (how === "load" || target() ? how === "load" : !state.view.at) reveal(how);
  });
  on("view", (how) => how === "address" && !target() && state.view.at && map?.setView(state.view.at));
  on("again", (how) => (select(), reveal(how)));
  const sizes = new ResizeObserver(inset);
  for (const id of ["left", "panel", "tools"]) sizes.observe(byId(id));
}

/** Shows a graph. @param {boolean} again whether another was there, whose view stays */
export function showGraph(again) {
  const { corpus } = state;
  inset();
  map?.setGraph(corpus.doc, { keepView: again });
  relight();
  select();
  if (!again) {
    if (state.view.at) map?.setView(state.view.at);
    else reveal("load");
  }
  legend();
  noteMap();
}

/** Says what the map leaves out, and why; where there is no map, that stays said. */
export function noteMap() {
  const { corpus } = state;
  if (!map || !corpus) return;
  note(
    !corpus.meta.nodes
      ? "There is nothing to draw: the index is empty."
      : corpus.capped
        ? `The map shows ${corpus.shown} and ${counted(corpus.meta.shown_edges, "edge")}. Questions search all of them.`
        : "",
  );
}

export function note(text) {
  byId("map-note").textContent = text;
  byId("map-note").hidden = !text;
}

function chosen(target) {
  if (!target) {
    select(); // The map let go of what is open here.
    return;
  }
  byHand = true;
  go(patchFor(target), { how: "map" });
}

function hovered(target) {
  const tip = byId("tip");
  const node = target?.type === "chunk" && state.corpus?.node(target.id);
  const text = node
    ? `${node.file}${node.line_start ? `:${node.line_start}` : ""}`
    : target?.type === "file"
      ? target.file
      : "";
  tip.hidden = !text;
  tip.textContent = text;
}

/** The view goes into the address once it rests, and only if the user moved it. */
function viewed(at) {
  clearTimeout(noting);
  noting = setTimeout(() => (byHand || state.view.at) && noteView(at), NOTE_MS);
}

for (const event of ["wheel", "pointerdown"])
  byId("map").addEventListener(event, () => (byHand = true), { passive: true });

/** What is covered by the panels; the map centres in the rest. */
function inset() {
  if (!map) return;
  const stage = byId("map").getBoundingClientRect();
  const over = (id) => {
    const box = byId(id).getBoundingClientRect();
    const floats = getComputedStyle(byId(id)).position === "fixed";
    return floats && box.width > 0 && box.width < 0.75 * stage.width ? box : null;
  };
  const [left, right, below] = ["left", "panel", "tools"].map(over);
  map.setInsets({
    left: left ? left.right - stage.left : 0,
    right: right ? stage.right - right.left : 0,
    top: 0,
    bottom: below ? stage.bottom - below.top : 0,
  });
}

const target = () => {
  const { chunk, topic, file } = state.view;
  if (chunk !== null) return { type: "chunk", id: chunk };
  if (topic !== null) return { type: "community", id: topic };
  return file ? { type: "file", file } : null;
};

/** Rings what is open; while a way is lit its edges would hide that, and the way marks its end. */
function select() {
  map?.select(state.lit?.path.length > 1 ? null : target());
}

/** Lights the way to what is open, or all that was found. */
export function relight() {
  const { view, way, answer } = state;
  const open = view.chunk === null ? null : answer?.hits.get(view.chunk);
  let lit = null;
  if (way?.steps?.length) {
    lit = { hits: [], path: way.path, steps: way.steps };
  } else if (open && view.from === null) {
    const { explain } = open.part;
    const led = explain?.hop > 0;
    const ids = led ? explain.path : [view.chunk];
    lit = {
      hits: ids.filter((id) => answer.hits.has(id)).map((id) => ({ id, rank: answer.hits.get(id).rank })),
      path: led ? explain.path : [],
      steps: led ? explain.steps : [],
    };
  } else if (answer?.doc.results.length) {
    lit = {
      hits: answer.doc.results.map((entry, at) => ({ id: entry.chunks[0].chunk_id, rank: at + 1 })),
      path: [],
      steps: [],
    };
  }
  state.lit = lit && { ...lit, steps: lit.steps.map(({ source, target: to, kind }) => ({ source, target: to, kind })) };
  map?.light(state.lit);
}

/** Flies to what is open. What was chosen on the map is in view already, unless the panel covers it. */
function reveal(how) {
  if (!map || (how === "load" && state.view.at)) return;
  const wanted = target();
  byHand = how !== "load";
  if (!wanted) {
    if (how !== "map" && !state.asking) showHits();
    return;
  }
  if (how === "map" && !covered(wanted)) return;
  const path = state.lit?.path ?? [];
  if (path.length > 1) map.flyTo({ ids: path });
  else map.flyTo(wanted);
}

function showHits() {
  const ids = (state.lit?.hits ?? []).map(({ id }) => id);
  if (ids.length) map?.flyTo({ ids });
}

function covered({ type, id }) {
  const node = type === "chunk" && state.corpus?.node(id);
  if (!node) return false;
  const box = byId("map").getBoundingClientRect();
  const { x, y, scale } = map.view();
  const px = box.left + box.width / 2 + (node.x - x) * scale;
  const py = box.top + box.height / 2 + (node.y - y) * scale;
  return (
    document.elementsFromPoint(px, py).every((one) => !byId("map").contains(one)) ||
    ["panel", "left", "tools"].some((over) => document.elementsFromPoint(px, py).includes(byId(over)))
  );
}

export const zoom = (direction) => ((byHand = true), map?.zoomBy(ZOOM ** direction));
export const fit = () => map?.fit();

const PAN = { left: [-STEP_PX, 0], right: [STEP_PX, 0], up: [0, -STEP_PX], down: [0, STEP_PX] };

export function pan(direction) {
  byHand = true;
  map?.panBy(...PAN[direction]);
}

/** Walks to the neighbour that lies there. @returns {boolean} whether something is selected to walk from */
export function walk(direction) {
  if (!map || !target()) return false;
  map.select(target());
  const next = map.neighbourIn(direction);
  select();
  if (next) go(patchFor(next), { how: "walk" });
  else say("No neighbour lies there");
  return true;
}

/** The kinds of edges with their counts, as switches of what is drawn. */
function legend() {
  const { edge_counts: counts } = state.corpus.meta;
  fill(
    byId("legend"),
    EDGE_KINDS.map((kind) => {
      const n = counts[kind] ?? 0;
      const one = button(
        {
          class: "legend-kind",
          data: { test: "legend-kind", kindName: kind },
          title: n ? KINDS[kind] : `${KINDS[kind]}; this index has none`,
          "aria-pressed": String(kinds.has(kind) && n > 0),
          disabled: !n,
          on: { click: () => toggle(kind, one) },
        },
        kindMark(kind),
        h("span", {}, kind),
        h("span", { class: "n" }, n.toLocaleString("en")),
      );
      return one;
    }),
  );
  if (!state.corpus.meta.edges && state.corpus.meta.nodes)
    byId("legend").append(h("p", { class: "muted small" }, "No edges: nothing joins these chunks yet."));
}

function toggle(kind, one) {
  kinds = new Set(kinds);
  if (!kinds.delete(kind)) kinds.add(kind);
  one.setAttribute("aria-pressed", String(kinds.has(kind)));
  map?.setKinds(kinds);
}

export const retheme = () => map?.setTheme(isDark());
