/** Colours of kinds and topics, the same as on the map, in both themes. */

import { h } from "./dom.js";
import { EDGE_KINDS, communityColor, kindColor } from "./map/index.js";
import { isDark } from "./theme.js";

/** Sets the colours of all that is on the page to the theme. */
export function recolor() {
  const dark = isDark();
  for (const kind of EDGE_KINDS) document.documentElement.style.setProperty(`--kind-${kind}`, kindColor(kind, dark));
  for (const one of document.querySelectorAll("[data-community]")) paint(one);
}

function paint(element) {
  const text = element.dataset.community;
  element.style.setProperty("--c", communityColor(text === "" ? null : Number(text), isDark()));
}

/** A dot in the colour of a topic. @param {number|null} number */
export function topicDot(number) {
  const dot = h("i", { class: "dot", "aria-hidden": "true", data: { community: number ?? "" } });
  paint(dot);
  return dot;
}

/** A short line in the colour of a kind of edge. */
export const kindMark = (kind) => h("i", { class: "kind", "aria-hidden": "true", data: { kind } });
