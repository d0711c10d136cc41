/** A list that one walks with arrows, j and k: one row at a time can be reached with Tab. */

import { byId } from "./dom.js";

const list = byId("list");
const rows = () => [...list.querySelectorAll("[data-row]")];

/** Makes the row of an element the one that Tab reaches. */
function hold(row) {
  for (const one of rows()) {
    const held = one === row;
    one.tabIndex = held ? 0 : -1;
    for (const more of one.closest("li").querySelectorAll("[data-more]")) more.tabIndex = held ? 0 : -1;
  }
}

/** After the list was filled. @param {number|null} chosen place of the row that is open */
export function settleRows(chosen = null) {
  const all = rows();
  if (all.length) hold(all[chosen ?? 0] ?? all[0]);
}

list.addEventListener("focusin", ({ target }) => {
  const row = target.closest("li")?.querySelector("[data-row]");
  if (row && row.tabIndex !== 0) hold(row);
});

/** Moves by so many rows, from the one in focus or else to the first. @returns {boolean} whether there are rows */
export function moveRow(step) {
  const all = rows();
  if (!all.length) return false;
  const inside = document.activeElement?.closest?.("#list li")?.querySelector("[data-row]");
  const from = all.indexOf(inside);
  const open = all.findIndex((row) => row.hasAttribute("aria-current"));
  const to = from >= 0 ? from + step : open >= 0 ? open + step : 0;
  if (to < 0) {
    byId("q").focus();
    return true;
  }
  const row = all[Math.min(all.length - 1, to)];
  hold(row);
  row.focus();
  row.closest("li").scrollIntoView({ block: "nearest" });
  return true;
}
