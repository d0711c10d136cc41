/** What the page knows, and who wants to hear when that changes. */

import { emptyView, format, parse, sameQuestion, sameSelection } from "./route.js";

export const state = {
  view: emptyView(),
  corpus: null, // Corpus, once the map was read
  answer: null, // {doc, view, hits, stems} of the question in view
  asking: false,
  selected: null, // document of what is open in the panel
  way: null, // {from, to, doc} between two chunks
  lit: null, // what map.light() was given
};

const listeners = new Map();

/** Calls `run` whenever something of this name happens. */
export function on(name, run) {
  if (!listeners.has(name)) listeners.set(name, []);
  listeners.get(name).push(run);
}

export function emit(name, detail) {
  for (const run of listeners.get(name) ?? []) run(detail);
}

/**
 * Goes to another view: a step that Back undoes.
 * @param {object} patch fields of a view
 * @param {{how?: string}} options how it came about: "map" where it was chosen on the map
 */
export function go(patch, { how = "page" } = {}) {
  const view = { ...state.view, at: null, ...patch };
  if (sameQuestion(view, state.view) && sameSelection(view, state.view)) {
    emit("again", how);
    return;
  }
  history.pushState(null, "", address(view));
  apply(view, how);
}

/** Notes where the map is, without a step in the history. */
export function noteView(at) {
  state.view.at = at;
  history.replaceState(null, "", address(state.view));
}

/** Shows what the address says. */
export function follow(how) {
  apply(parse(location.hash), how);
}

const address = (view) => `#${format(view)}`;

function apply(view, how) {
  const before = state.view;
  state.view = view;
  if (how === "load" || !sameQuestion(before, view)) emit("question", how);
  if (how === "load" || !sameSelection(before, view)) emit("selection", how);
  emit("view", how);
}

/** Fields that open one thing and close the others. */
export const opening = {
  chunk: (chunk) => ({ chunk, topic: null, file: "" }),
  topic: (topic) => ({ topic, chunk: null, from: null, file: "" }),
  file: (file) => ({ file, chunk: null, from: null, topic: null }),
  nothing: () => ({ chunk: null, from: null, topic: null, file: "" }),
};

/** What `go` takes for a target of the map. */
export function patchFor(target) {
  if (target.type === "chunk") return opening.chunk(target.id);
  if (target.type === "file") return opening.file(target.file);
  return opening.topic(target.id ?? target.community);
}
