/** The head of the right panel, the same for all that it shows. */

import { button, h, icon } from "./dom.js";
import { go, opening } from "./state.js";

/** @param {Node|string} title @param {string} [more] beside it */
export function panelHead(title, more = "") {
  return h(
    "header",
    { class: "panelhead" },
    h("h2", { tabindex: "-1" }, title, more && h("span", { class: "mono muted" }, more)),
    button(
      {
        class: "icon",
        "aria-label": "Close the panel",
        title: "Close (Esc)",
        on: { click: () => go(opening.nothing()) },
      },
      icon("close"),
    ),
  );
}
