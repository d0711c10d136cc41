/** The server's presence: a banner while it is gone, tries with growing pauses, and work resumed. */

import { Gone, Refused } from "./api.js";
import { button, byId, fill, h } from "./dom.js";
import { say } from "./live.js";
import { emit } from "./state.js";

const FIRST_S = 1;
const LONGEST_S = 30;

let pause = 0;
let left = 0;
let ticking = 0;
let attempt = async () => {};

/** @param {() => Promise<void>} run asks the server for anything; it throws while that is gone */
export function startConnection(run) {
  attempt = run;
}

export const isGone = () => pause > 0;

/** Takes note of a fault; true if it means that the server cannot answer for now. */
export function noteFault(fault) {
  const passing = fault instanceof Gone || (fault instanceof Refused && fault.status === 503);
  if (passing && !pause) {
    pause = FIRST_S;
    wait(fault);
  }
  return passing;
}

function wait(fault) {
  left = pause;
  const why =
    fault instanceof Refused ? sentence(fault.message) : "The server does not answer. Is ragx web still running?";
  const when = h("span", { class: "when" });
  fill(byId("banner"), h("span", {}, why), when, button({ on: { click: () => retry() } }, "Try now"));
  byId("banner").hidden = false;
  const show = () => (when.textContent = `Next try in ${left} s.`);
  show();
  clearInterval(ticking);
  ticking = setInterval(() => {
    left -= 1;
    if (left > 0) show();
    else retry();
  }, 1000);
}

async function retry() {
  clearInterval(ticking);
  const when = byId("banner").querySelector(".when");
  if (when) when.textContent = "Trying...";
  try {
    await attempt();
  } catch (fault) {
    if (fault instanceof Gone || (fault instanceof Refused && fault.status === 503)) {
      pause = Math.min(LONGEST_S, pause * 2);
      wait(fault);
      return;
    }
  }
  back();
}

/** The server answered. */
export function back() {
  if (!pause) return;
  pause = 0;
  clearInterval(ticking);
  byId("banner").hidden = true;
  say("The server answers again.");
  emit("back");
}

/** A line of the server as a sentence. */
export function sentence(line) {
  const text = line.trim();
  return text ? `${text[0].toUpperCase()}${text.slice(1)}${/[.!?]$/.test(text) ? "" : "."}` : "";
}
