/** Asking: one question at a time; a new one ends the last. */

import { Refused, sendQuery } from "./api.js";
import { back, noteFault } from "./connection.js";
import { counted } from "./words.js";
import { say } from "./live.js";
import { stemsOf } from "./mark.js";
import { bodyOf } from "./route.js";
import { emit, on, state } from "./state.js";

let running = null;
let waiting = false;

export function startQuestions() {
  on("question", (how) => ask(how));
  on("back", () => waiting && ask("back"));
  on("again", (how) => how === "asked" && ask(how));
}

/** Asks what the view says, again if it was asked before. */
export async function ask(how) {
  running?.abort();
  running = null;
  waiting = false;
  state.fault = null;
  if (!state.view.q) {
    Object.assign(state, { asking: false, answer: null });
    emit("answer", how);
    return;
  }
  const stop = new AbortController();
  running = stop;
  state.asking = true;
  emit("asking");
  const view = state.view;
  try {
    const doc = await sendQuery(bodyOf(view), stop.signal);
    if (running !== stop) return;
    back();
    const hits = new Map();
    doc.results.forEach((entry, at) =>
      entry.chunks.forEach((part) => hits.set(part.chunk_id, { rank: at + 1, entry, part })),
    );
    state.answer = { doc, view, hits, stems: stemsOf(view.q), corpus: state.corpus };
    say(doc.results.length ? `${counted(doc.results.length, "file")} found` : "Nothing found");
  } catch (fault) {
    if (running !== stop || fault.name === "AbortError") return;
    waiting = noteFault(fault);
    state.answer = null;
    state.fault = waiting
      ? { waiting: true }
      : { status: fault instanceof Refused ? fault.status : 0, message: fault.message };
    if (!waiting) say(fault.message);
  }
  running = null;
  state.asking = false;
  emit("answer", how);
}
