/** Links that open a file at a line in an editor on this machine. */

const KEY = "ragx.editor";

/** What an editor is called, and its link. `path` begins with a slash and is encoded. */
export const EDITORS = {
  vscode: { name: "VS Code", link: (path, line) => `vscode://file${path}:${line}` },
  cursor: { name: "Cursor", link: (path, line) => `cursor://file${path}:${line}` },
  zed: { name: "Zed", link: (path, line) => `zed://file${path}:${line}` },
  jetbrains: {
    name: "JetBrains",
    link: (path, line) => `idea://open?file=${path.replace(/^\/(?=[A-Za-z]:)/, "")}&line=${line}`,
  },
};

/** A path as these links take it: `C:\a b` is `/C:/a%20b`; `#`, `?`, `%`, `&`, `+` and quotes are encoded. */
export function encodePath(root, file) {
  const windows = /^[A-Za-z]:[\\/]|^\\\\/.test(root);
  const base = (windows ? root.replaceAll("\\", "/") : root).replace(/\/+$/, "");
  const whole = `${base}/${file}`;
  const parts = whole
    .split("/")
    .map((part, at) =>
      windows && at === 0 && /^[A-Za-z]:$/.test(part)
        ? part
        : encodeURIComponent(part.toWellFormed?.() ?? part).replace(
            /[!'()*]/g,
            (c) => `%${c.charCodeAt(0).toString(16).toUpperCase()}`,
          ),
    );
  const path = parts.join("/");
  return path.startsWith("/") ? path : `/${path}`;
}

/** The link for a file of a corpus. @param {number|null} line from 1; null in a document */
export function editorLink(name, root, file, line) {
  return (Object.hasOwn(EDITORS, name) ? EDITORS[name] : EDITORS.vscode).link(encodePath(root, file), line ?? 1);
}

export function chosenEditor() {
  try {
    const name = localStorage.getItem(KEY);
    return Object.hasOwn(EDITORS, name ?? "") ? name : "vscode";
  } catch {
    return "vscode";
  }
}

export function chooseEditor(name) {
  try {
    localStorage.setItem(KEY, name);
  } catch {
    // It stays until the page is left.
  }
}
