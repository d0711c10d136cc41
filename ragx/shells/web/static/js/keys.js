/** The keyboard. Nothing here fires while one types, or together with Ctrl or Meta. */

import { byId } from "./dom.js";
import { fit, pan, walk, zoom } from "./mapview.js";
import { clearQuestion, revertDraft } from "./options.js";
import { moveRow } from "./rows.js";
import { go, opening, state } from "./state.js";

const ARROWS = { ArrowLeft: "left", ArrowRight: "right", ArrowUp: "up", ArrowDown: "down" };
const types = (element) =>
  element?.matches?.("input:not([type=checkbox]), textarea, select, [contenteditable]") ?? false;
const onMap = () => document.activeElement === byId("map") || document.activeElement === document.body;
const inList = () => byId("list").contains(document.activeElement);

export function openHelp() {
  if (!byId("help").open) byId("help").showModal();
}

/** Closes the innermost thing that is open. */
function escape() {
  if (document.activeElement === byId("q") && revertDraft()) return;
  if (byId("options").open) {
    byId("options").open = false;
    byId("options").querySelector("summary").focus();
  } else if (state.view.from !== null) go({ from: null });
  else if (state.view.chunk !== null || state.view.topic !== null || state.view.file) go(opening.nothing());
  else if (state.view.q) clearQuestion();
  else if (document.activeElement === byId("q")) byId("map").focus();
}

function pressed(event) {
  if (event.ctrlKey || event.metaKey || event.isComposing || event.defaultPrevented || byId("help").open) return;
  const { key } = event;
  if (run(event, key)) event.preventDefault();
}

function run(event, key) {
  if (key === "Escape") {
    escape();
    return true;
  }
  if (event.target === byId("q") && !event.altKey && key === "ArrowDown") return moveRow(0) || false;
  if (types(event.target)) return false;
  const arrow = ARROWS[key];
  if (event.altKey) return Boolean(arrow && onMap() && walk(arrow));
  if (arrow && onMap()) {
    pan(arrow);
    return true;
  }
  if ((key === "ArrowDown" || key === "ArrowUp") && inList()) return moveRow(key === "ArrowDown" ? 1 : -1);
  switch (key) {
    case "/":
      byId("q").focus();
      byId("q").select();
      return true;
    case "?":
      openHelp();
      return true;
    case "j":
    case "k":
      return moveRow(key === "j" ? 1 : -1);
    case "+":
    case "=":
      zoom(1);
      return true;
    case "-":
      zoom(-1);
      return true;
    case "0":
      fit();
      return true;
    default:
      return false;
  }
}

export function startKeys() {
  document.addEventListener("keydown", pressed);
  byId("ask-help").addEventListener("click", openHelp);
  byId("help").addEventListener("click", ({ target }) => target === byId("help") && byId("help").close());
}
