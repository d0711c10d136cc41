/** Light or dark: as the system says, unless the user chose the other. */

import { byId, fill, icon } from "./dom.js";

const KEY = "ragx.theme";
const system = matchMedia("(prefers-color-scheme: dark)");

export const isDark = () => (document.documentElement.dataset.theme ?? (system.matches ? "dark" : "light")) === "dark";

/** @param {(dark: boolean) => void} changed is called whenever it changes */
export function startTheme(changed) {
  const button = byId("theme");
  const show = () => {
    const next = isDark() ? "light" : "dark";
    fill(button, icon(isDark() ? "sun" : "moon"));
    button.setAttribute("aria-label", `Use the ${next} theme`);
    button.title = `Use the ${next} theme`;
    changed(isDark());
  };
  button.addEventListener("click", () => {
    const wanted = isDark() ? "light" : "dark";
    const follows = wanted === (system.matches ? "dark" : "light");
    if (follows) delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = wanted;
    try {
      if (follows) localStorage.removeItem(KEY);
      else localStorage.setItem(KEY, wanted);
    } catch {
      // It stays until the page is left.
    }
    show();
  });
  system.addEventListener("change", show);
  show();
}
