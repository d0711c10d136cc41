/** What is said in passing: to screen readers always, to eyes where it is of use. */

import { byId } from "./dom.js";

let hiding = 0;

/** Says a line to screen readers; the same line twice is said twice. */
export function say(text) {
  const live = byId("live");
  live.textContent = live.textContent === text ? `${text}\u00a0` : text;
}

/** Says a line and shows it for a while. */
export function tell(text, forMs = 5000) {
  say(text);
  const toast = byId("toast");
  toast.textContent = text;
  toast.hidden = false;
  clearTimeout(hiding);
  hiding = setTimeout(() => (toast.hidden = true), forMs);
}
