/** Elements from script: text is only ever text, and attributes come from the page's own code. */

/**
 * An element. Names of properties: `class`, `on` (listeners by event), `data` (dataset), `style`
 * (CSS properties), else attributes; null, undefined and false leave one out.
 * @param {string} tag
 * @param {object} [properties]
 * @param {...(Node|string|number|null|undefined|false|Array)} children
 */
export function h(tag, properties = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties ?? {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name === "class") element.className = value;
    else if (name === "on") for (const [event, run] of Object.entries(value)) element.addEventListener(event, run);
    else if (name === "data") Object.assign(element.dataset, value);
    else if (name === "style") for (const [key, set] of Object.entries(value)) element.style.setProperty(key, set);
    else element.setAttribute(name, value === true ? "" : value);
  }
  add(element, children);
  return element;
}

function add(element, children) {
  for (const child of children) {
    if (Array.isArray(child)) add(element, child);
    else if (child !== null && child !== undefined && child !== false) element.append(child);
  }
}

/** A button that does something on this page. */
export function button(properties, ...children) {
  return h("button", { type: "button", ...properties }, ...children);
}

/** Replaces what an element holds, in one go. */
export function fill(element, ...children) {
  const part = document.createDocumentFragment();
  add(part, children);
  element.replaceChildren(part);
}

const ICONS = {
  close: ["M6 6l8 8M14 6l-8 8"],
  plus: ["M10 5v10M5 10h10"],
  minus: ["M5 10h10"],
  fit: ["M4 8V4h4M12 4h4v4M16 12v4h-4M8 16H4v-4"],
  sun: [
    "M10 6.8a3.2 3.2 0 1 0 0 6.4a3.2 3.2 0 1 0 0-6.4",
    "M10 2.5v1.6M10 15.9v1.6M2.5 10h1.6M15.9 10h1.6M4.7 4.7l1.1 1.1M14.2 14.2l1.1 1.1M4.7 15.3l1.1-1.1M14.2 5.8l1.1-1.1",
  ],
  moon: ["M16 11.8A6.4 6.4 0 0 1 8.2 4a6.4 6.4 0 1 0 7.8 7.8z"],
  back: ["M12 5l-5 5l5 5"],
  copy: ["M8 7.5h7.5V16H8z", "M12 7.5V4H4.5v8.5H8"],
  way: ["M5 15a1.6 1.6 0 1 0 0-.1M15 5a1.6 1.6 0 1 0 0-.1", "M6.5 14c3-1 1-6 6.5-8"],
  down: ["M10 4v11M5.5 10.5L10 15l4.5-4.5"],
  open: ["M11 4h5v5M16 4l-7 7", "M14 11.5V16H4V6h4.5"],
};

/** A small drawing for a button that has a name of its own. */
export function icon(name) {
  const space = "http://www.w3.org/2000/svg";
  const drawing = document.createElementNS(space, "svg");
  for (const [key, value] of [
    ["viewBox", "0 0 20 20"],
    ["aria-hidden", "true"],
    ["class", "icon-drawing"],
  ])
    drawing.setAttribute(key, value);
  for (const line of ICONS[name]) {
    const path = document.createElementNS(space, "path");
    path.setAttribute("d", line);
    drawing.append(path);
  }
  return drawing;
}

/**
 * A list that shows so many entries and a button for more.
 * @param {string} tag of the list
 * @param {Array} items
 * @param {(item: *, at: number) => Node} show
 * @param {{first?: number, more?: number, data?: object, class?: string, label?: string}} options
 */
export function paged(tag, items, show, { first = 100, more = 100, what = "more", ...properties } = {}) {
  const list = h(tag, properties);
  const rest = button({ class: "more" });
  let shown = 0;
  const grow = (count) => {
    const part = document.createDocumentFragment();
    const from = shown;
    shown = Math.min(items.length, shown + count);
    for (let at = from; at < shown; at += 1) part.append(show(items[at], at));
    list.append(part);
    const left = items.length - shown;
    rest.hidden = left === 0;
    rest.textContent = `Show ${Math.min(more, left)} ${what}${left > more ? ` of ${left.toLocaleString("en")}` : ""}`;
    return list.children[from];
  };
  rest.addEventListener("click", () => {
    const next = grow(more);
    (next?.matches("button, a") ? next : next?.querySelector("button, a"))?.focus();
  });
  grow(first);
  return h("div", { class: "paged" }, list, rest);
}

export const byId = (id) => document.getElementById(id);
